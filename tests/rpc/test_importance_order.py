"""What is stored of importances once all is scored follows from what is stored, not from how it came there."""

from __future__ import annotations

import datetime
import random
from pathlib import Path
from typing import Any

import pytest
from memoryranker.client import Client

from tests.rpc.test_stored_importance import parts
from tests.serving import Running, running, wait_until_scored

DAY = datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC)


def memory(
    name: str, content: str, day: float, claim: tuple[str, str, Any] | None = None, **fields: Any
) -> dict[str, Any]:
    if claim is not None:
        fields |= {"subject": claim[0], "metadata": {"attribute": claim[1], "value": claim[2]}}
    return {"id": name, "content": content, "create_time": DAY + datetime.timedelta(days=day), **fields}


EXPORT = "The nightly export fails when the warehouse disk is full"
MEMORIES = [
    memory("port1", "db-1 listens on 5432", 0, ("db-1", "port", 5432)),
    memory("port2", "Since the move everybody has to dial another number there", 3, ("db-1", "port", "6543")),
    memory("port3", "Kim says that nothing was ever moved", 5, ("DB-1", "Port", "5432.0")),
    memory("port4", "Nobody knows any more what it is", 3, ("db-1", "port", 7777)),
    memory("port5", "An old plan had it elsewhere", 1, ("db-1", "port", 1), suppressed=True),
    memory("text1", "The staging server is in Frankfurt", 0, source_thread="a"),
    memory("text2", "The staging server is in Helsinki", 2, source_thread="b"),
    memory("text3", "The staging server is in Frankfurt!", 4, source_thread="c"),
    memory("text4", "The staging server is in Dublin", 2, source_thread="d"),
    memory("theme1", EXPORT, 0, source_thread="a"),
    memory("theme2", "Warehouse disk full: the nightly export fails", 1, source_thread="b"),
    memory("theme3", f"Again: {EXPORT}", 2, source_thread="c"),
    memory("theme4", EXPORT + " and nobody looks", 3, valid_until_time=DAY + datetime.timedelta(days=9)),
    memory("rev1", "Deploys are made by hand on Tuesdays", 0, superseded_by="rev2"),
    memory("rev2", "Deploys are made by hand on Wednesdays", 1, superseded_by="rev3"),
    memory("rev3", "Deploys are made by Argo, whenever main is green", 2),
    memory("gone", "Deploys were made by a robot", 2, superseded_by="never written"),
    memory("link1", "OPS-4711 is about the slow cache", 0),
    memory("link2", "Somebody closed OPS-4711 without a word", 1),
    memory("link3", "OPS-4711 was opened again by Priya", 2),
]
PASSING = [
    memory("x1", "It listens on 9999, they say", 4, ("db-1", "port", 9999)),
    memory("x2", "The staging server is in Oslo", 3),
    memory("x3", EXPORT, -1, source_thread="x"),
    memory("x4", "OPS-4711 again", -1),
]
"""What is written, too, and deleted."""


def stored(server: Running, namespace: str) -> dict[str, Any]:
    wait_until_scored(server.client, namespace)
    found = {each.id: parts(server, namespace, each.id)["content"] for each in server.client.list(namespace)}
    return {
        name: (part.score, part.confidence, tuple(part.factors), tuple(map(str, part.lines)))
        for name, part in found.items()
    }


def write_one_by_one(client: Client, namespace: str, order: random.Random) -> None:
    """Some with waits in between, so that they are scored without the others."""
    written = [*MEMORIES, *PASSING]
    order.shuffle(written)
    for each in written:
        client.upsert(namespace, [each])
        if order.random() < 0.5:
            wait_until_scored(client, namespace)
    for each in order.sample(PASSING, len(PASSING)):
        client.delete(namespace, [each["id"]])


def write_in_calls(client: Client, namespace: str, order: random.Random) -> None:
    """Several at once, those that go deleted in between."""
    written = order.sample(MEMORIES, len(MEMORIES))
    client.upsert(namespace, PASSING + written[:9])
    client.delete(namespace, [each["id"] for each in PASSING])
    client.upsert(namespace, written[9:])


def write_in_a_stream(client: Client, namespace: str, order: random.Random) -> None:
    """Scored after they are written, while others are."""
    client.ingest(namespace, order.sample(MEMORIES, len(MEMORIES)), chunk_size=3)


def write_other_things_first(client: Client, namespace: str, order: random.Random) -> None:
    """Each is something else, suppressed or replaced at first, and is corrected one by one."""
    wrong = [
        {**each, "content": order.choice(MEMORIES)["content"], "suppressed": order.random() < 0.3} for each in MEMORIES
    ]
    client.upsert(namespace, wrong)
    wait_until_scored(client, namespace)
    for each in order.sample(MEMORIES, len(MEMORIES)):
        client.upsert(namespace, [{"suppressed": False, **each}])


WAYS = [write_one_by_one, write_in_calls, write_in_a_stream, write_other_things_first]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("write", WAYS)
def test_the_content_parts_do_not_depend_on_the_order_of_writing(
    client: Client, shared_server: Running, namespace: str, write: Any, seed: int
) -> None:
    """Score, confidence, lines and words are those of the same memories written in one call."""
    client.upsert(f"{namespace}-once", MEMORIES)
    write(client, namespace, random.Random(seed))
    wanted, found = stored(shared_server, f"{namespace}-once"), stored(shared_server, namespace)
    assert set(found) == {each["id"] for each in MEMORIES}
    assert {name: (wanted[name], found[name]) for name in wanted if wanted[name] != found[name]} == {}


def test_what_cannot_be_served_takes_nothing_and_other_words_hide_no_value(
    client: Client, shared_server: Running, namespace: str
) -> None:
    """A suppressed value contradicts nobody, and what is replaced takes no novelty from what replaces it; a value in
    quite other words is found by its subject and attribute."""
    client.upsert(namespace, [each for each in MEMORIES if each["id"] != "gone"])
    found = stored(shared_server, namespace)
    words = {name: " ".join(part[2]) for name, part in found.items()}
    assert "contradicted by port4, which is newer" in words["port1"] or "contradicted by port2" in words["port1"]
    assert "port5" not in " ".join(words[name] for name in ("port1", "port2", "port3", "port4"))
    assert "contradicted" not in words["port3"]
    assert "superseded by a newer memory" in words["rev2"]
    assert "new beside what is known (1.00)" in words["rev3"]
    client.delete(namespace, ["port2", "port4"])
    assert "contradicted" not in " ".join(stored(shared_server, namespace)["port1"][2])


def test_who_bore_a_handle_alone_learns_of_another_bearer_however_it_came_to_it(
    client: Client, shared_server: Running, namespace: str
) -> None:
    """By a correction of a memory that was there before it; and where the other says a little of the same, too, but
    less than a third one does."""
    alone = memory("m", "OPS-4711: engine timber anchor bridge velvet", 0)
    lesson = memory("x", "The violin teacher comes on Thursdays, lamp copper river OPS-4711", 0)
    near = memory("a", "violin engine copper velvet bridge", 0)
    told = memory("t", "OPS-1024: violin engine copper velvet bridge", 0)
    telling = memory("s", "OPS-1024: bridge candle timber copper engine", 0)
    client.upsert(f"{namespace}-once", [alone, lesson, near, told, telling])
    client.upsert(namespace, [{**lesson, "content": "Lunch is served at noon"}])
    for each in (alone, near, told):
        client.upsert(namespace, [each])
    wait_until_scored(client, namespace)
    client.update(namespace, "x", content=lesson["content"])
    client.upsert(namespace, [telling])
    assert stored(shared_server, namespace) == stored(shared_server, f"{namespace}-once")


@pytest.mark.parametrize("order", ["ab bc ca", "ca ab bc", "bc ca ab"])
def test_who_survives_a_ring_of_replacements_does_not_depend_on_the_link_that_closed_it(
    client: Client, shared_server: Running, namespace: str, order: str
) -> None:
    """Nor, when it is opened again, on who survived it: each link is written when the ones before are scored."""
    texts = {"a": "Lunch is at noon", "b": "Rust compiles slowly", "c": "The garden needs water"}
    days = {"a": 2, "b": 0, "c": 1}

    def linked(links: str) -> list[dict[str, Any]]:
        names = {link[0]: link[1] for link in links.split()}
        return [memory(name, text, days[name], superseded_by=names.get(name, "")) for name, text in texts.items()]

    client.upsert(f"{namespace}-closed", linked(order))
    client.upsert(f"{namespace}-open", linked("ab bc"))
    client.upsert(namespace, linked(""))
    for link in order.split():
        wait_until_scored(client, namespace)
        client.update(namespace, link[0], superseded_by=link[1])
    closed = stored(shared_server, namespace)
    assert closed == stored(shared_server, f"{namespace}-closed")
    lost = {name for name, part in closed.items() if any('"superseded"' in line for line in part[3])}
    assert lost == {"b", "c"}
    client.update(namespace, "c", superseded_by="")
    assert stored(shared_server, namespace) == stored(shared_server, f"{namespace}-open")


def test_what_replaces_a_value_does_not_contradict_it_too(
    client: Client, shared_server: Running, namespace: str
) -> None:
    """A value that is replaced by another one loses once; no longer replaced, it is contradicted again."""
    old = memory("a", "We picked the value after spring", 0, ("api", "timeout", 30))
    new = memory("b", "A longer one was needed in autumn", 5, ("api", "timeout", 45))
    client.upsert(namespace, [old])
    client.upsert(namespace, [new])
    assert "contradiction" in str(stored(shared_server, namespace)["a"])
    client.update(namespace, "a", superseded_by="b")
    found = stored(shared_server, namespace)
    assert "superseded" in str(found["a"])
    assert "contradict" not in str(found["a"]) + str(found["b"])
    client.update(namespace, "a", superseded_by="")
    assert "contradiction" in str(stored(shared_server, namespace)["a"])


def test_what_does_not_count_does_not_stand_before_one_of_the_same_time(
    client: Client, shared_server: Running, namespace: str
) -> None:
    """Of values of one time the first by id is named; a suppressed one before it is none, and keeps nothing from it."""
    texts = ("hello", "The staging server sleeps", "Somebody went out without a word")
    last, hidden, told = (
        memory(name, text, 0, ("cache", "port", value), suppressed=name == "b")
        for name, text, value in zip("cba", texts, (1, 2, 3), strict=True)
    )
    client.upsert(f"{namespace}-once", [told, hidden, last])
    for each in (hidden, told, last):
        client.upsert(namespace, [each])
        wait_until_scored(client, namespace)
    assert stored(shared_server, namespace) == stored(shared_server, f"{namespace}-once")
    assert "inconsistent with c" in str(stored(shared_server, namespace)["a"])


def test_vectors_that_callers_bring_are_compared_alike_in_every_way_of_writing(tmp_path: Path) -> None:
    """Also short ones that are nearly the same, which rounding moves more: what is written together, alone, or scored
    from the store names the same others in the same order."""
    dice = random.Random(5)
    towns = ("Oslo", "Bergen", "Dublin", "Lisbon", "Madrid", "Rome", "Paris", "Vienna", "Prague", "Turin")
    said = [
        memory(
            town,
            f"The server is in {town}",
            dice.choice((0, 1)),
            embedding=[1.0, *(1 + 0.02 * dice.random() for _ in "yz")],
        )
        for town in towns
    ]
    with running(tmp_path, embedder="client:3") as server:
        server.client.upsert("together", said)
        for each in dice.sample(said, len(said)):
            server.client.upsert("alone", [each])
        server.client.ingest("stream", dice.sample(said, len(said)), chunk_size=2)
        together = stored(server, "together")
        assert "inconsistent with" in str(together)
        assert together == stored(server, "alone") == stored(server, "stream")
