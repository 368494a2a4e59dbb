"""Chunks of streams in the store: taken in once, known for a day, gone with their namespace."""

from __future__ import annotations

from pathlib import Path

import pytest

from sidecar.domain import DAY, Micros
from sidecar.errors import InvalidRequestError, StreamIdReusedError
from sidecar.store.ingested import Chunk, ChunkOutcome
from sidecar.store.store import Store

NOW: Micros = 1_700_000_000_000_000


def take(store: Store, sequence: int, *ids: str, now: Micros = NOW, digest: bytes = b"") -> ChunkOutcome:
    chunk = Chunk("s", sequence, digest or " ".join(ids).encode())
    return store.ingest("n", chunk, [(each, {"content": f"content of {each}"}) for each in ids], now, {})


def test_a_chunk_is_taken_in_once(store: Store) -> None:
    """Again it writes nothing, moves no score version, and has the same outcome."""
    first = take(store, 1, "a", "b")
    store.delete("n", ["a"], NOW)
    version = store.namespace("n").score_version
    assert take(store, 1, "a", "b") == first == ChunkOutcome(1, created=2, score_version=1)
    assert [each.id for each in store.list_memories("n", "", 10)] == ["b"]
    assert store.namespace("n").score_version == version


def test_a_chunk_survives_the_process_with_its_memories(tmp_path: Path) -> None:
    """Both are there after the store is opened again, or neither."""
    with Store.open(tmp_path / "data") as store:
        take(store, 1, "a")
    with Store.open(tmp_path / "data") as store:
        assert store.acknowledged("n", "s", NOW) == 1
        assert take(store, 1, "a").created == 1


def test_a_gap_or_other_memories_under_a_number_write_nothing(store: Store) -> None:
    """Either would lose memories without a word."""
    take(store, 1, "a")
    with pytest.raises(InvalidRequestError, match="must be 2"):
        take(store, 3, "c")
    with pytest.raises(StreamIdReusedError, match="chunk 1 of stream 's'"):
        take(store, 1, "other")
    assert [each.id for each in store.list_memories("n", "", 10)] == ["a"]


def test_a_stream_is_known_for_a_day_after_its_last_chunk(store: Store) -> None:
    """Then it begins anew; a stream that goes on is known for as long as it does."""
    take(store, 1, "a")
    take(store, 2, "b", now=NOW + DAY // 2)
    assert store.acknowledged("n", "s", NOW + DAY) == 2
    assert take(store, 1, "whatever it was", now=NOW + DAY + 1, digest=b"a") == ChunkOutcome(2, 1, 0, 0, 1)
    assert store.acknowledged("n", "s", NOW + 2 * DAY) == 0
    assert take(store, 1, "c", now=NOW + 2 * DAY).created == 1


def test_old_chunks_are_removed_a_few_at_a_time(store: Store) -> None:
    """A store that is ingested into every day does not grow by it."""
    for sequence in range(1, 41):
        take(store, sequence, f"m{sequence}")
    for sequence in range(1, 5):
        take(store, sequence, "x", now=NOW + 2 * DAY)
    with store._readers.snapshot() as db:
        assert db.execute("SELECT COUNT(*) FROM ingested_chunks").fetchone() == (4,)


def test_a_purged_namespace_has_forgotten_its_streams(store: Store) -> None:
    """So that the same file can be ingested again."""
    take(store, 1, "a")
    store.purge_namespace("n")
    assert store.acknowledged("n", "s", NOW) == 0
    assert take(store, 1, "a").created == 1
