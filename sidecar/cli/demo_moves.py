"""What changed between two packets for the same task: places, scores, and the contributions behind them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sidecar.cli import screen
from sidecar.cli.packets import contributions
from sidecar.cli.screen import Column

LEAST_CHANGE = 0.0005


@dataclass(frozen=True, slots=True)
class Move:
    """A memory in two packets. Place and score are None in the packet that it is not in; `changes` are the differences
    of its contributions by feature, the largest first."""

    memory_id: str
    place_before: int | None
    place_after: int | None
    score_before: float | None
    score_after: float | None
    changes: dict[str, float]


def moves(before: Any, after: Any) -> list[Move]:
    """Every memory of either packet, in the order of the later one; those that dropped out come last."""
    old = {item.memory.id: item for item in before.items}
    new = {item.memory.id: item for item in after.items}
    found = []
    for name in [*new, *(name for name in old if name not in new)]:
        was, now = old.get(name), new.get(name)
        found.append(
            Move(
                name,
                was.place if was else None,
                now.place if now else None,
                was.score if was else None,
                now.score if now else None,
                _changes(contributions(before, was), contributions(after, now)) if was and now else {},
            )
        )
    return found


def show_moves(found: list[Move]) -> None:
    """Prints them as a table."""
    numbers = [Column(title, is_number=True) for title in ("place", "was", "score", "was")]
    screen.table(
        (*numbers, Column("id"), Column("what changed", is_text=True)),
        [
            [
                _whole(move.place_after),
                _whole(move.place_before),
                _score(move.score_after),
                _score(move.score_before),
                move.memory_id,
                _words(move),
            ]
            for move in found
        ],
    )


def _changes(was: dict[str, float], now: dict[str, float]) -> dict[str, float]:
    differences = {name: now[name] - was[name] for name in now if abs(now[name] - was[name]) >= LEAST_CHANGE}
    return dict(sorted(differences.items(), key=lambda each: -abs(each[1])))


def _words(move: Move) -> str:
    if move.place_before is None:
        return "came in"
    if move.place_after is None:
        return "dropped out"
    return " · ".join(
        f"{name} {'+' if value > 0 else '-'}{screen.brief(abs(value), 3)}" for name, value in move.changes.items()
    )


def _whole(value: int | None) -> str:
    return "-" if value is None else str(value)


def _score(value: float | None) -> str:
    return "-" if value is None else screen.brief(value, 3)
