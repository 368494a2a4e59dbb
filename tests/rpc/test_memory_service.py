"""Memories over a real socket: written, read, changed and deleted."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2, status_pb2
from memoryranker.client import Client, RankerRpcError
from memoryranker.v1 import memory_pb2

from tests.serving import Running

CREATED = memory_pb2.WRITE_OUTCOME_CREATED
UPDATED = memory_pb2.WRITE_OUTCOME_UPDATED
UNCHANGED = memory_pb2.WRITE_OUTCOME_UNCHANGED
DELETED = memory_pb2.WRITE_OUTCOME_DELETED
INVALID, NOT_FOUND = 3, 5
BLANKS = ["", "\t\n", "\u200b", "  "]


def violations(status: status_pb2.Status) -> list[str]:
    bad = error_details_pb2.BadRequest()
    assert any(each.Unpack(bad) for each in status.details)
    return [each.field for each in bad.field_violations]


def test_a_bad_memory_is_refused_alone(client: Client, namespace: str) -> None:
    """The other nine are saved, and the answer says in order what became of each."""
    batch: list[dict[str, Any]] = [{"id": f"m{i}", "content": f"memory {i}"} for i in range(10)]
    batch[4]["content"] = "log\0tail"
    batch[7]["relevance"] = 3.0
    results = client.upsert(namespace, batch).results
    assert [each.memory_id for each in results] == [f"m{i}" for i in range(10)]
    assert [i for i, each in enumerate(results) if each.status.code] == [4, 7]
    assert {each.outcome for i, each in enumerate(results) if i not in (4, 7)} == {CREATED}
    assert results[4].status.code == INVALID
    assert violations(results[4].status) == ["memories[4].content"]
    assert violations(results[7].status) == ["memories[7].relevance"]
    assert [each.id for each in client.list(namespace)] == [f"m{i}" for i in range(10) if i not in (4, 7)]


def test_a_batch_in_which_all_is_wrong_writes_nothing(client: Client, namespace: str) -> None:
    """Blank memories are refused, each with its reason, and the namespace stays as it was."""
    answer = client.upsert(namespace, [{"id": f"m{i}", "content": blank} for i, blank in enumerate(BLANKS)])
    assert {each.status.code for each in answer.results} == {INVALID}
    assert answer.score_version == 0
    assert list(client.list(namespace)) == []


def test_an_id_that_stands_twice_is_refused_the_second_time(client: Client, namespace: str) -> None:
    """Which of the two would have won is nobody's guess: the first one."""
    one, two = client.upsert(namespace, [{"id": "m", "content": "one"}, {"id": "m", "content": "two"}]).results
    assert one.outcome == CREATED
    assert violations(two.status) == ["memories[1].id"]
    assert client.get(namespace, "m").content == "one"


@pytest.mark.parametrize("count", [0, 1001])
def test_a_batch_holds_1_to_1000(refused: Any, namespace: str, count: int) -> None:
    """An empty batch and one that is too large are refused as a whole."""
    error = refused("upsert", namespace, [{"id": f"m{i}", "content": "x"} for i in range(count)])
    assert error.reason == "INVALID_REQUEST"
    assert error.violations[0].field == "memories"


def test_a_thousand_refusals_fit_into_one_answer(client: Client, namespace: str) -> None:
    """However much is wrong with each memory, the answer stays below the largest message."""
    awful: list[dict[str, Any]] = [
        {"id": "メ" * 85, "content": "\0", "relevance": 9.0, "tags": ["", "\0"] * 32, "kind": "k" * 99}
        for _ in range(1000)
    ]
    answer = client.upsert(namespace, awful, timeout=30)
    assert len(answer.results) == 1000
    assert {each.status.code for each in answer.results} == {INVALID}


def test_ids_and_namespaces_are_taken_as_they_are(client: Client, namespace: str) -> None:
    """Slashes, percent signs, backslashes, letter case and scripts name different memories, and come back as sent."""
    ids = [
        "C:\\notes\\todo",
        "a/b/../c",
        "a/c",
        "x%2Fy",
        "x/y",
        "メモ/一",
        "Plan",
        "plan",
        "กาแฟ",
        "ขนุน",
        " ",
        "é",
        "e\u0301",
    ]
    for _ in range(2):
        client.upsert(namespace, [{"id": each, "content": f"about {each}"} for each in ids])
    assert [each.id for each in client.list(namespace)] == sorted(ids, key=str.encode)
    for each in ids:
        assert client.get(namespace, each).content == f"about {each}"
    upper = client.upsert(f"{namespace}K", [{"id": "m", "content": "upper"}])
    lower = client.upsert(f"{namespace}k", [{"id": "m", "content": "lower"}])
    assert (upper.score_version, lower.score_version) == (1, 1)
    assert client.get(f"{namespace}K", "m").content == "upper"
    assert client.delete(namespace, ids).deleted_count == len(ids)


def test_an_update_changes_the_named_fields(client: Client, namespace: str) -> None:
    """Pins and unpins, sets and clears; the answer is the memory as it is now."""
    client.upsert(namespace, [{"id": "m", "content": "one", "subject": "Ann", "relevance": 0.5}])
    answer = client.update(namespace, "m", pinned=True, kind="decision", subject="Bob")
    assert (answer.memory.pinned, answer.memory.kind, answer.memory.subject) == (True, "decision", "Bob")
    assert answer.memory.relevance == 0.5
    answer = client.update(namespace, "m", pinned=False, relevance=None, subject="")
    assert (answer.memory.pinned, answer.memory.kind, answer.memory.subject) == (False, "decision", "")
    assert not answer.memory.HasField("relevance")
    assert answer.memory == client.get(namespace, "m")
    assert answer.score_version == 3
    assert client.update(namespace, "m", suppressed=True).memory.suppressed


def test_an_update_of_what_is_not_there_says_so(refused: Any, namespace: str) -> None:
    """Nothing is made by an update."""
    assert refused("update", namespace, "m", pinned=True).reason == "MEMORY_NOT_FOUND"
    assert refused("update", namespace, "m", content="x").reason == "MEMORY_NOT_FOUND"
    assert refused("get", namespace, "m").reason == "MEMORY_NOT_FOUND"
    assert refused("update", namespace, "m").violations[0].field == "update_mask"


def test_a_delete_tells_what_was_there(client: Client, namespace: str) -> None:
    """Unknown ids, and shortened ones, are told apart from what is gone."""
    client.upsert(namespace, [{"id": "a long id", "content": "x"}, {"id": "other", "content": "x"}])
    answer = client.delete(namespace, ["a long id", "a long", "typo", ""])
    assert answer.deleted_count == 1
    assert [(each.memory_id, each.status.code, each.outcome) for each in answer.results] == [
        ("a long id", 0, DELETED),
        ("a long", NOT_FOUND, 0),
        ("typo", NOT_FOUND, 0),
        ("", NOT_FOUND, 0),
    ]
    assert [each.id for each in client.list(namespace)] == ["other"]


def test_a_delete_by_filter_stays_in_its_namespace(client: Client, namespace: str) -> None:
    """What passes the filter goes, here and nowhere else."""
    neighbour = f"{namespace}2"
    for each in (namespace, neighbour):
        client.upsert(each, [{"id": f"m{i}", "content": "x", "tags": ["old"] if i < 3 else []} for i in range(5)])
    assert client.delete(namespace, filter={"any_tags": ["old"]}).deleted_count == 3
    assert [each.id for each in client.list(namespace)] == ["m3", "m4"]
    assert len(list(client.list(neighbour))) == 5
    assert client.delete(namespace, filter={"any_tags": ["old"]}).deleted_count == 0


def test_nothing_deletes_everything_by_mistake(refused: Any, client: Client, namespace: str) -> None:
    """An empty filter, neither or both of ids and filter, and an empty namespace are refused."""
    client.upsert(namespace, [{"id": "m", "content": "x"}])
    assert refused("delete", namespace, filter={}).violations[0].field == "filter"
    assert refused("delete", namespace).violations[0].field == "memory_ids"
    assert refused("delete", namespace, ["m"], filter={"kinds": ["fact"]}).violations[0].field == "memory_ids"
    assert refused("delete", "", ["m"]).violations[0].field == "namespace"
    assert refused("delete", namespace, filter={"metadata_equals": {"colour": "red"}}).reason == "INVALID_REQUEST"
    assert len(list(client.list(namespace))) == 1


@pytest.mark.parametrize("method", ["rank", "get", "rate", "upsert", "get_packet", "explain_miss"])
def test_no_namespace_means_no_namespace(client: Client, method: str) -> None:
    """The empty name is never taken for all, nor for nothing."""
    more: dict[str, tuple[Any, ...]] = {
        "rank": (),
        "rate": ("m", "helpful"),
        "upsert": ([{"id": "m", "content": "x"}],),
    }
    with pytest.raises(RankerRpcError) as caught:
        getattr(client, method)("", *more.get(method, ("m",)))
    assert caught.value.code is grpc.StatusCode.INVALID_ARGUMENT
    assert "namespace" in [each.field for each in caught.value.violations]


def test_a_list_goes_page_by_page_in_the_order_of_ids(client: Client, namespace: str) -> None:
    """Each memory comes once, in the order of the bytes of its id, whatever the page size and the filter."""
    ids = [f"{letter}{i}" for letter in "aZé\U0001f9e0\uffee" for i in range(7)]
    client.upsert(
        namespace, [{"id": each, "content": "x", "tags": ["odd"] if int(each[-1]) % 2 else []} for each in ids]
    )
    for size in (1, 3, 35, 1000, None):
        assert [each.id for each in client.list(namespace, page_size=size)] == sorted(ids, key=str.encode)
    odd = [each for each in sorted(ids, key=str.encode) if int(each[-1]) % 2]
    for size in (1, 5, 15, None):
        assert [each.id for each in client.list(namespace, {"any_tags": ["odd"]}, page_size=size)] == odd


def test_a_page_never_outgrows_a_message(client: Client, namespace: str) -> None:
    """A thousand large memories come in pages that fit."""
    for start in range(0, 150, 50):
        client.upsert(namespace, [{"id": f"m{i}", "content": "x" * 65_000} for i in range(start, start + 50)])
    assert len({each.id for each in client.list(namespace, page_size=1000)}) == 150


def test_a_page_token_is_for_its_own_list(shared_server: Running, namespace: str) -> None:
    """A token of another namespace or filter, or one that was made up, is refused; the page size may change."""
    client = shared_server.client
    client.upsert(namespace, [{"id": f"m{i}", "content": "x"} for i in range(5)])
    stub = client._memory
    token = stub.ListMemories(memory_pb2.ListMemoriesRequest(namespace=namespace, page_size=2)).next_page_token
    rest = stub.ListMemories(memory_pb2.ListMemoriesRequest(namespace=namespace, page_token=token))
    assert [each.id for each in rest.memories] == ["m2", "m3", "m4"]
    assert not rest.next_page_token
    for bad in (
        memory_pb2.ListMemoriesRequest(namespace=f"{namespace}2", page_token=token),
        memory_pb2.ListMemoriesRequest(namespace=namespace, filter={"kinds": ["fact"]}, page_token=token),
        memory_pb2.ListMemoriesRequest(namespace=namespace, page_token="m2"),
        memory_pb2.ListMemoriesRequest(namespace=namespace, page_token="メモ"),
        memory_pb2.ListMemoriesRequest(namespace=namespace, page_size=0),
        memory_pb2.ListMemoriesRequest(namespace=namespace, page_size=1001),
    ):
        with pytest.raises(grpc.RpcError) as caught:
            stub.ListMemories(bad)
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_namespaces_are_listed_with_their_numbers(running_server: Running) -> None:
    """Each namespace comes once, in order, with its count and version."""
    client = running_server.client
    assert list(client.namespaces()) == []
    for name in ("b", "a", "é", "A"):
        client.upsert(name, [{"id": "m", "content": "ferry"}, {"id": "n", "content": "invoice"}])
    client.delete("b", ["m"])
    found = list(client.namespaces(page_size=3))
    assert [(each.namespace, each.memory_count, each.score_version) for each in found] == [
        ("A", 2, 1),
        ("a", 2, 1),
        ("b", 1, 2),
        ("é", 2, 1),
    ]
    assert all(each.update_time.seconds for each in found)


def test_a_retry_is_answered_as_the_first_time(client: Client, namespace: str, refused: Any) -> None:
    """The same request with the same request_id does nothing again; another request with that id is refused."""
    batch = [{"id": "m", "content": "one"}, {"id": "", "content": "bad"}]
    first = client.upsert(namespace, batch, request_id="r1")
    client.update(namespace, "m", content="two", request_id="r1")
    assert client.upsert(namespace, batch, request_id="r1") == first
    assert client.get(namespace, "m").content == "two"
    updated = client.update(namespace, "m", content="two", request_id="r1")
    deleted = client.delete(namespace, ["m"], request_id="r1")
    assert client.delete(namespace, ["m"], request_id="r1") == deleted
    assert deleted.results[0].outcome == DELETED
    assert refused("delete", namespace, ["n"], request_id="r1").reason == "REQUEST_ID_REUSED"
    assert (
        refused("upsert", namespace, [{"id": "m", "content": "three"}], request_id="r1").code.name == "ALREADY_EXISTS"
    )
    assert updated.memory.content == "two"
    elsewhere = client.upsert(f"{namespace}2", [{"id": "m", "content": "three"}], request_id="r1")
    assert elsewhere.results[0].outcome == CREATED


def test_deleted_text_does_not_come_back_through_a_retry(client: Client, namespace: str, refused: Any) -> None:
    """The answer that is kept for retries goes with the memory whose text it holds."""
    client.upsert(namespace, [{"id": "m", "content": "one"}])
    client.update(namespace, "m", content="secret", request_id="r1")
    client.delete(namespace, ["m"])
    assert refused("update", namespace, "m", content="secret", request_id="r1").reason == "MEMORY_NOT_FOUND"


def test_an_id_that_is_used_again_inherits_nothing(client: Client, namespace: str) -> None:
    """A memory that was deleted and written again is a new one."""
    client.upsert(namespace, [{"id": "m", "content": "ferry timetable", "pinned": True, "tags": ["a"]}])
    client.rate(namespace, "m", "helpful")
    client.delete(namespace, ["m"])
    client.upsert(namespace, [{"id": "m", "content": "lasagne recipe"}])
    read = client.get(namespace, "m")
    assert (read.pinned, list(read.tags), read.ratings.helpful) == (False, [], 0)
