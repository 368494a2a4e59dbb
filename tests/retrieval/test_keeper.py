"""Index files are written when enough was written, and at the end; a file that cannot be written is no fault."""

from __future__ import annotations

import threading

import pytest

from sidecar.retrieval import keeper
from sidecar.retrieval.keeper import Keeper


class Namespaces:
    """Remembers what it was asked to keep."""

    def __init__(self, unkept: dict[str, tuple[int, int]]) -> None:
        self._unkept = unkept
        self.kept: list[str] = []

    def unkept(self) -> dict[str, tuple[int, int]]:
        return self._unkept

    def keep(self, namespace: str) -> bool:
        self.kept.append(namespace)
        if namespace == "full disk":
            raise OSError("no space left")
        return True


def test_files_are_written_when_much_is_unkept_and_at_the_end() -> None:
    """A small namespace and one that is nearly kept get none; a failure stops nobody; the end is stricter."""
    found = {
        "small": (1_999, 1_999),
        "full disk": (5_000, 5_000),
        "much": (1_000, 5_000),
        "little": (600, 100_000),
        "nothing": (10, 100_000),
    }
    namespaces = Namespaces(found)
    thread = Keeper(namespaces, period=3_600)  # type: ignore[arg-type]
    thread.look()
    assert namespaces.kept == ["full disk", "much"]
    thread.look()  # not again so soon, but for one that grew by half
    assert namespaces.kept == ["full disk", "much", "full disk"]
    namespaces.kept.clear()
    thread.close()
    assert namespaces.kept == ["full disk", "much", "little"]


def test_memory_is_given_back_once_after_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    """When nothing more was written between two looks, and not again before something is."""
    states = iter([1, 2, 3, 3, 3, 3, 4, 4, 4])
    given: list[int] = []
    over = threading.Event()

    class Written(Namespaces):
        def make_room(self) -> bool:
            if (state := next(states, None)) is None:
                over.set()
            else:
                self._unkept = {"n": (state, 10)}
            return False

    namespaces = Written({})
    monkeypatch.setattr(keeper, "give_back", lambda: given.append(namespaces.unkept()["n"][0]))
    thread = Keeper(namespaces, period=0.001)  # type: ignore[arg-type]
    assert over.wait(30)
    thread.close()
    assert given == [3, 4]
