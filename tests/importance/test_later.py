"""What is scored after its write is scored against all that was written by then."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from sidecar.domain import Change, Memory, PartName, ScoredContent
from sidecar.importance.later import LaterScoring
from sidecar.importance.looking import no_pause
from sidecar.importance.scorer import ImportanceScorer
from sidecar.importance.settings import ImportanceSettings
from sidecar.retrieval.embedders import make_embedder
from sidecar.retrieval.namespaces import Namespaces
from sidecar.store.store import Store

NOW = 1_700_000_000_000_000


class Watched(ImportanceScorer):
    """Tells when it was asked."""

    asked: threading.Event

    def has_reached(self, namespace: str, score_version: int) -> bool:
        found = super().has_reached(namespace, score_version)
        self.asked.set()
        return found

    def score_stored(
        self, namespace: str, memories: Sequence[Memory], pause: Callable[[], None] = no_pause
    ) -> list[ScoredContent]:
        found = super().score_stored(namespace, memories, pause)
        self.asked.set()
        return found


def wait_until_scored(store: Store) -> None:
    end = time.monotonic() + 30
    while store.namespaces_unscored():
        assert time.monotonic() < end


def test_a_write_that_is_committed_and_not_in_the_snapshot_yet_is_waited_for(tmp_path: Path) -> None:
    """Two memories get one handle in one write. The store has it when they are scored, and the snapshot does not until
    the scorer was asked: scored by that, neither would know of the other."""
    with Store.open(tmp_path / "data") as store:
        namespaces = Namespaces(store.load)
        scorer = Watched(namespaces, make_embedder("none"), ImportanceSettings(), lambda: NOW)
        scorer.asked = threading.Event()
        later = LaterScoring(scorer, store, lambda: NOW)

        def hold(change: Change) -> None:
            if any("OPS-4711" in memory.content for memory in change.upserted):
                scorer.asked.clear()
                assert scorer.asked.wait(30)

        store.subscribe(hold)
        store.subscribe(namespaces.apply)
        store.upsert("n", [(name, {"content": f"{name} is about nothing"}) for name in "xy"], NOW)
        wait_until_scored(store)
        store.upsert("n", [("x", {"content": "OPS-4711 is slow"}), ("y", {"content": "Kim closed OPS-4711"})], NOW + 1)
        wait_until_scored(store)
        later.close()
        about = {name: store.importance_parts(store.get("n", name).key)[PartName.CONTENT].about for name in "xy"}
        assert about == {"x": ("y",), "y": ("x",)}


def test_what_nobody_waits_for_begins_when_it_may(tmp_path: Path) -> None:
    """A memory that is scored after its write is left alone until those who are answered give the word."""
    with Store.open(tmp_path / "data") as store:
        namespaces = Namespaces(store.load)
        store.subscribe(namespaces.apply)
        scorer = ImportanceScorer(namespaces, make_embedder("none"), ImportanceSettings(), lambda: NOW)
        asked, may = threading.Event(), threading.Event()

        def give_way() -> None:
            asked.set()
            assert may.wait(30)

        later = LaterScoring(scorer, store, lambda: NOW, give_way)
        store.upsert("n", [("x", {"content": "Backups run at night"})], NOW)
        assert asked.wait(30)
        assert store.namespaces_unscored() == ["n"]
        may.set()
        wait_until_scored(store)
        later.close()
