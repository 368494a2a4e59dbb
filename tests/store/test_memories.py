from concurrent.futures import Future, ThreadPoolExecutor, wait
from threading import Event
from typing import Any

import numpy as np
import pytest

from sidecar.domain import Change, Memory, Rating, WriteOutcome
from sidecar.errors import MemoryNotFoundError
from sidecar.store.requests import Replayed
from sidecar.store.snapshots import NamespaceNumbers
from sidecar.store.store import TOLD_SECONDS, Store

NOW = 1_700_000_000_000_000


def upsert(store: Store, namespace: str, memory_id: str, now: int = NOW, **fields: Any) -> tuple[WriteOutcome, Memory]:
    """Writes one memory."""
    patch = {"content": f"text of {memory_id}", "tokens": 4, **fields}
    result = store.upsert(namespace, [(memory_id, patch)], now)
    assert not isinstance(result, Replayed)
    return result[0][0]


def delete(store: Store, namespace: str, *ids: str) -> dict[str, bool]:
    """Deletes memories."""
    result = store.delete(namespace, ids, NOW)
    assert not isinstance(result, Replayed)
    return result[0]


def without_key(memory: Memory) -> dict[str, Any]:
    """The memory's fields but its key, with a vector that can be compared."""
    fields = {name: getattr(memory, name) for name in Memory.__dataclass_fields__ if name != "key"}
    if fields["embedding"] is not None:
        fields["embedding"] = fields["embedding"].tolist()
    return fields


EVERYTHING: dict[str, Any] = {
    "content": "Grüße, 記憶 \U0001f9e0\ttab\nline",
    "tokens": 9,
    "kind": "decision",
    "create_time": -5,
    "valid_from_time": 1,
    "valid_until_time": 2,
    "superseded_by": "other",
    "source_thread": "thread",
    "source_sequence": -(2**63),
    "subject": "Zoë",
    "tags": ("b", "a"),
    "metadata": {"x": [1, 2.5, None, {"y": True}], "": "é"},
    "relevance": 0.1,
    "importance_override": 1.0,
    "emotion": 0.0,
    "pinned": True,
    "suppressed": True,
    "token_count": 7,
    "importance_content": 0.25,
    "importance_use": 0.75,
    "embedding": np.array([1.5, -2.25, 1e-30], np.float32),
}


def test_every_field_comes_back_as_it_was_written(store: Store) -> None:
    """A memory is returned field by field as it was given, after a restart too."""
    outcome, memory = upsert(store, "n", "m", **EVERYTHING)
    assert outcome is WriteOutcome.CREATED
    store.close()
    with Store.open(store.folder) as again:
        read = again.get("n", "m")
    assert without_key(read) == without_key(memory) == without_key(Memory(id="m", update_time=NOW, **EVERYTHING))


def test_a_new_memory_takes_defaults(store: Store) -> None:
    """What a new memory leaves unset takes the default, and its creation is now."""
    _, memory = upsert(store, "n", "m")
    assert without_key(memory) == without_key(
        Memory(id="m", content="text of m", tokens=4, create_time=NOW, update_time=NOW)
    )


def test_a_second_write_keeps_what_it_leaves_unset(store: Store) -> None:
    """An upsert over a memory changes the fields that it names and no others."""
    upsert(store, "n", "m", kind="decision", tags=("a",))
    outcome, memory = upsert(store, "n", "m", NOW + 5, content="new")
    assert outcome is WriteOutcome.UPDATED
    assert (memory.content, memory.kind, memory.tags) == ("new", "decision", ("a",))
    assert (memory.create_time, memory.update_time) == (NOW, NOW + 5)


def test_the_same_write_again_changes_nothing(store: Store) -> None:
    """An upsert of what is there already is UNCHANGED, moves no score version and tells no subscriber."""
    changes: list[Change] = []
    upsert(store, "n", "m", **EVERYTHING)
    store.subscribe(changes.append)
    outcome, memory = upsert(store, "n", "m", NOW + 5, **EVERYTHING)
    assert outcome is WriteOutcome.UNCHANGED
    assert memory.update_time == NOW
    assert store.namespace("n").score_version == 1
    assert changes == []


def test_update_can_clear_a_field(store: Store) -> None:
    """An update sets exactly the fields that it names, to nothing too."""
    upsert(store, "n", "m", relevance=0.5, subject="Ann")
    result = store.update("n", "m", {"relevance": None, "pinned": True}, NOW + 1)
    assert not isinstance(result, Replayed)
    memory, version = result
    assert (memory.relevance, memory.pinned, memory.subject, version) == (None, True, "Ann", 2)
    with pytest.raises(MemoryNotFoundError, match="'x'"):
        store.update("n", "x", {"pinned": True}, NOW)


def test_a_memory_written_again_after_a_delete_inherits_nothing(store: Store) -> None:
    """A deleted memory's key is never used again, and its ratings and fields do not come back."""
    _, first = upsert(store, "n", "m", kind="decision")
    store.rate("n", "m", "ann", Rating.UNHELPFUL, "wrong", NOW)
    assert delete(store, "n", "m", "typo") == {"m": True, "typo": False}
    _, second = upsert(store, "n", "m")
    assert second.key > first.key
    assert (second.kind, second.unhelpful) == ("fact", 0)


def test_a_namespace_sees_only_its_own(store: Store) -> None:
    """The same id in namespaces whose names are alike names different memories; deleting one leaves the others."""
    names = ["crew", "crew2", "Crew", "crew/1", "crew%", "crew_"]
    for name in names:
        upsert(store, name, "m", content=name)
    delete(store, "crew", "m")
    assert [store.get(name, "m").content for name in names[1:]] == names[1:]
    assert [len(store.load(name).memories) for name in names] == [0, 1, 1, 1, 1, 1]
    with pytest.raises(MemoryNotFoundError):
        store.get("crew", "m")


@pytest.mark.parametrize("memory_id", ["C:\\notes\\todo", "a/b/../c", "x%2Fy", "メモ/一", "กาแฟ", "' OR 1=1 --"])
def test_any_id_is_kept_byte_for_byte(store: Store, memory_id: str) -> None:
    """An id makes one row however often it is written, comes back as it was, and can be deleted."""
    upsert(store, "n", memory_id)
    upsert(store, "n", memory_id, content="again")
    assert [memory.id for memory in store.load("n").memories] == [memory_id]
    assert delete(store, "n", memory_id) == {memory_id: True}
    assert store.namespace("n").memory_count == 0


def test_ratings_count_a_raters_latest_word(store: Store) -> None:
    """Each rater counts once, by the latest word; a withdrawn mark counts no more."""
    upsert(store, "n", "m")

    def rate(rater: str, rating: Rating) -> tuple[int, int, int]:
        result = store.rate("n", "m", rater, rating, "", NOW)
        assert not isinstance(result, Replayed)
        return result

    assert rate("ann", Rating.HELPFUL) == (1, 0, 2)
    assert rate("ann", Rating.HELPFUL) == (1, 0, 2)
    assert rate("bob", Rating.UNHELPFUL) == (1, 1, 3)
    assert rate("ann", Rating.UNHELPFUL) == (0, 2, 4)
    assert rate("ann", Rating.WITHDRAWN) == (0, 1, 5)
    assert store.get("n", "m").unhelpful == 1


def test_changes_arrive_in_the_order_of_score_versions(store: Store) -> None:
    """Subscribers hear of each write that can change a ranking, once, with score versions growing by one each."""
    changes: list[Change] = []
    store.subscribe(changes.append)
    _, memory = upsert(store, "n", "m")
    upsert(store, "n", "m", pinned=True)
    store.rate("n", "m", "ann", Rating.HELPFUL, "", NOW)
    delete(store, "n", "m", "typo")
    delete(store, "n", "typo")
    store.purge_namespace("n")
    upsert(store, "n", "m")
    assert [change.score_version for change in changes] == [1, 2, 3, 4, 5, 6]
    assert [memory.pinned for change in changes[:2] for memory in change.upserted] == [False, True]
    assert changes[2].ratings == {memory.key: (1, 0)}
    assert changes[3].deleted_keys == (memory.key,)
    assert changes[4].purged


def test_numbers_of_a_change_are_told_once_subscribers_have_heard_of_it(store: Store) -> None:
    """Who asks between a commit and what is ranked from it hears of the change no sooner than rankings do."""
    asking: list[Future[NamespaceNumbers]] = []

    def hear(_: Change) -> None:
        asking.append(beside.submit(store.namespace_numbers, "n"))
        assert wait(asking, timeout=TOLD_SECONDS / 4).not_done == set(asking)
        heard.set()

    heard = Event()
    with ThreadPoolExecutor(1) as beside:
        store.subscribe(hear)
        upsert(store, "n", "m")
        assert heard.is_set()
        assert asking[0].result(timeout=10).score_version == 1


def test_a_purged_namespace_is_gone_and_never_repeats_a_score_version(store: Store) -> None:
    """After a purge nothing is listed, and a namespace of the same name goes on counting where the old one ended."""
    upsert(store, "n", "a")
    upsert(store, "n", "b")
    upsert(store, "other", "c")
    assert store.purge_namespace("n") == (2, 0)
    assert [summary.namespace for summary in store.list_namespaces("", 10)] == ["other"]
    assert store.load("n").memories == ()
    assert store.load("n").score_version == 3
    upsert(store, "n", "a")
    assert store.namespace("n").score_version == 4


def test_lists_go_page_by_page_in_byte_order(store: Store) -> None:
    """Memories and namespaces are listed in the order of their names' UTF-8 bytes, each once."""
    ids = ["b", "a", "B", "é", "z", "\uffff", "\U0001f9e0"]
    for memory_id in ids:
        upsert(store, "n", memory_id)
        upsert(store, f"n{memory_id}", "m")
    expected = sorted(ids, key=lambda text: text.encode())
    seen: list[str] = []
    while page := store.list_memories("n", seen[-1] if seen else "", 2):
        seen += [memory.id for memory in page]
    assert seen == expected
    assert [summary.namespace for summary in store.list_namespaces("n", 100)] == [f"n{name}" for name in expected]


def test_meta_and_salt_outlive_the_process(store: Store) -> None:
    """Facts about the store and the salt of the draws are the same after a restart."""
    assert store.meta("embedder") is None
    store.set_meta({"embedder": b"wordllama", "dimension": b"256"})
    salt = store.salt
    store.close()
    with Store.open(store.folder) as again:
        assert (again.meta("embedder"), again.meta("dimension")) == (b"wordllama", b"256")
        assert again.salt == salt
        assert len(salt) == 32


def test_many_new_memories_in_one_write(store: Store) -> None:
    """Beside one that is there and one that comes twice: outcomes in the order of the call, each memory told as it is
    read later, and no key given twice, not even that of a memory that is gone."""
    store.upsert("n", [("m5", {"content": "there before", "tokens": 1})], NOW)
    patches = [(f"m{i}", {"content": f"text {i}", "tokens": 1}) for i in range(150)]
    done = store.upsert("n", [*patches, ("m3", {"content": "text 3 again"})], NOW)
    assert not isinstance(done, Replayed)
    results, _ = done
    updated = [i for i, (outcome, _) in enumerate(results) if outcome is WriteOutcome.UPDATED]
    assert (len(results), updated) == (151, [5, 150])
    assert all(outcome is WriteOutcome.CREATED for i, (outcome, _) in enumerate(results) if i not in updated)
    told = {memory.id: memory for _, memory in results}
    assert store.get_many("n", list(told)) == told
    assert told["m3"].content == "text 3 again"
    assert store.namespace("n").memory_count == 150
    last = max(told.values(), key=lambda memory: memory.key)
    assert len({memory.key for memory in told.values()}) == 150
    store.delete("n", [last.id], NOW)
    store.upsert("n", [("next", {"content": "comes after", "tokens": 1})], NOW)
    assert store.get("n", "next").key > last.key
