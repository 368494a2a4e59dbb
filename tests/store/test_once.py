from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from sidecar.domain import DAY, Packet, Rating, UseReport
from sidecar.errors import MemoryNotFoundError, RequestIdReusedError
from sidecar.store.requests import Once, Replayed
from sidecar.store.store import Store

NOW = 1_700_000_000_000_000
FIELDS = {"content": "x", "tokens": 1}


def once(request_id: str = "r", method: str = "M", payload: bytes = b"p") -> Once:
    """A request whose answer is the text of its result."""
    return Once(method, request_id, payload, lambda result: repr(result).encode())


def test_a_retry_is_answered_with_the_first_answer(store: Store) -> None:
    """Each kind of write that is retried returns what it returned first, and does nothing."""
    store.upsert("n", [("m", FIELDS)], NOW)
    calls: list[Callable[[Once], Any]] = [
        lambda once: store.upsert("n", [("a", FIELDS)], NOW, once),
        lambda once: store.update("n", "m", {"pinned": True}, NOW, once),
        lambda once: store.rate("n", "m", "ann", Rating.HELPFUL, "", NOW, once),
        lambda once: store.delete("n", ["a", "b"], NOW, once),
    ]
    for number, call in enumerate(calls):
        first = call(once(f"r{number}"))
        version = store.namespace("n").score_version
        assert call(once(f"r{number}")) == Replayed(repr(first).encode())
        assert store.namespace("n").score_version == version


def test_the_same_id_with_another_payload_is_refused(store: Store) -> None:
    """A request id that comes with another request is an error that names it, and nothing is done."""
    store.upsert("n", [("a", FIELDS)], NOW, once(payload=b"one"))
    with pytest.raises(RequestIdReusedError, match="'r'"):
        store.upsert("n", [("b", FIELDS)], NOW, once(payload=b"two"))
    with pytest.raises(RequestIdReusedError):
        store.answered("n", once(payload=b"two"), NOW)
    assert store.namespace("n").memory_count == 1


def test_ids_are_scoped_to_namespace_and_method(store: Store) -> None:
    """The same request id in another namespace or for another method is another request."""
    for namespace, method in (("n", "M"), ("n2", "M"), ("n", "M2")):
        assert not isinstance(store.upsert(namespace, [(method, FIELDS)], NOW, once(method=method)), Replayed)


def test_answers_are_kept_for_24_hours(store: Store) -> None:
    """After 24 hours a request id is free again, and its old answer is dropped; a clock that steps back changes
    nothing."""
    store.upsert("n", [("a", FIELDS)], NOW, once("old"))
    store.upsert("n", [("a", FIELDS)], NOW, once("r"))
    assert isinstance(store.upsert("n", [("a", FIELDS)], NOW - 5 * DAY, once("r")), Replayed)
    assert isinstance(store.upsert("n", [("a", FIELDS)], NOW + DAY - 1, once("r")), Replayed)
    assert not isinstance(store.upsert("n", [("a", FIELDS)], NOW + DAY, once("r", payload=b"new")), Replayed)
    assert store.answered("n", once("old"), NOW) is None


def test_answers_to_reports_are_dropped_faster_than_they_come(store: Store, make_packet: Callable[..., Packet]) -> None:
    """Not every report removes old answers, and yet after a few of them none is left; what is younger stays."""
    store.log_packet(make_packet("p", {}))

    def report(number: int, now: int) -> None:
        store.report(UseReport("p", request_id=f"r{number}"), now, once(f"r{number}"))

    def kept(number: int) -> bool:
        return store.answered("n", once(f"r{number}"), NOW + 1) is not None

    for number in range(40):
        report(number, NOW if number < 30 else NOW + DAY // 2)
    assert all(map(kept, range(40)))
    for number in range(40, 48):
        report(number, NOW + DAY)
    assert [number for number in range(48) if kept(number)] == list(range(30, 48))


def test_a_request_that_failed_may_be_sent_again(store: Store) -> None:
    """An error is not remembered: the same request id succeeds once its cause is gone."""
    with pytest.raises(MemoryNotFoundError):
        store.update("n", "m", {"pinned": True}, NOW, once())
    store.upsert("n", [("m", FIELDS)], NOW)
    assert not isinstance(store.update("n", "m", {"pinned": True}, NOW, once()), Replayed)


def test_of_concurrent_calls_one_is_done(store: Store, make_packet: Callable[..., Packet]) -> None:
    """Eight calls with one request id at one time log one packet, and all learn its id."""
    rank = Once("Rank", "r", b"p", str.encode)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda number: store.log_packet(make_packet(f"p{number}", {}), rank), range(8)))
    assert answers.count(None) == 1
    assert set(answers) - {None} == {Replayed(f"p{answers.index(None)}".encode())}
    assert store.numbers().packet_count == 1
