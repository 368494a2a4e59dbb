"""A packet for people and for scripts: the table of its items, and what was left out."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import click

from sidecar.cli import screen
from sidecar.cli.plain import packet as as_json
from sidecar.cli.plain import word
from sidecar.cli.screen import Column
from sidecar.plurals import counted

__all__ = ["as_json", "contributions", "show", "strongest"]

STRONGEST = 3
WIDE = 150
"""A terminal of so many columns has room for a line an item; a narrower one takes two."""
MARK = "✓"

_COLUMNS = (
    Column("#", is_number=True),
    Column("score", is_number=True),
    Column("segment"),
    Column("why"),
    Column("tokens", is_number=True),
    Column("kind"),
    Column("age", is_number=True),
    Column("id"),
    Column(MARK),
    Column("content", is_text=True),
)
_EMPTY = {
    "no_memories": "No memories: the namespace holds none.",
    "filtered": "No memories: the filter, suppression, expiry or supersession left none.",
    "below_min_score": "No memories: none reached --min-score.",
    "budget": "No memories: none fits the token budget.",
}
_NARROW = ("#", "score", "id", MARK, "content")


def show(response: Any, *, explain: str = "contributions", relevant: Collection[str] | None = None) -> None:
    """Prints a packet. `relevant` marks memories that are known to be worth it, for a demonstration."""
    marks = [item.memory.id in (relevant or ()) for item in response.items]
    cells = [_cells(response, item, mark) for item, mark in zip(response.items, marks, strict=True)]
    left_away = [] if relevant is not None else [MARK]
    left_away += ["why"] if explain == "none" else []
    if not cells:
        reason = word(response, "empty_reason")
        click.echo(_EMPTY.get(reason, f"No memories: {reason}."))
    elif screen.is_terminal() and screen.width() < WIDE:
        columns = [each for each in _COLUMNS if each.title in _NARROW and each.title not in left_away]
        screen.table(columns, _rows(columns, cells), marks=marks, details=list(map(_detail, cells)))
    else:
        columns = [each for each in _COLUMNS if each.title not in left_away]
        screen.table(columns, _rows(columns, cells), marks=marks)
    if explain == "full":
        _show_features(response)
    click.echo()
    left_out = ", ".join(f"{each.count} {word(each, 'reason').replace('_', ' ')}" for each in response.left_out)
    screen.fields(
        [
            ("packet", response.packet_id + (" (made by an earlier call)" if response.replayed else "")),
            ("weights", response.model_version),
            ("tokens", str(response.tokens_used)),
            ("left out", left_out),
            ("reserve", _reserve(response)),
            ("valid until", response.valid_until_time.ToJsonString() if response.HasField("valid_until_time") else ""),
        ]
    )
    for each in response.degradations:
        screen.note(f"{word(each, 'reason')}: {screen.visible(each.message)}")


def contributions(response: Any, item: Any) -> dict[str, float]:
    """What each feature added to an item's score, by name."""
    return dict(zip(response.feature_names, item.contributions, strict=False))


def strongest(parts: dict[str, float], most: int = STRONGEST) -> str:
    """The largest contributions, as "lexical .21 · semantic .08"."""
    ordered = sorted(parts.items(), key=lambda part: -part[1])
    return " · ".join(f"{name} {screen.brief(value)}" for name, value in ordered[:most] if value >= 0.005)


def _cells(response: Any, item: Any, mark: bool) -> dict[str, str]:
    """What a packet's table shows of an item, by column."""
    return {
        "#": str(item.place),
        "score": screen.brief(item.score, 3),
        "segment": _segment(item),
        "why": strongest(contributions(response, item)),
        "tokens": str(item.tokens),
        "kind": item.memory.kind,
        "age": screen.age(response.as_of_time.seconds - item.memory.create_time.seconds),
        "id": item.memory.id,
        MARK: MARK if mark else "",
        "content": item.memory.content,
    }


def _rows(columns: Sequence[Column], cells: Sequence[Mapping[str, str]]) -> list[list[str]]:
    return [[each[column.title] for column in columns] for each in cells]


def _detail(cells: Mapping[str, str]) -> str:
    parts = (cells["segment"], cells["kind"], cells["age"], counted(int(cells["tokens"]), "token"), cells["why"])
    return " · ".join(filter(None, parts))


def _segment(item: Any) -> str:
    segment = word(item, "segment")
    return f"{segment} p={screen.brief(item.inclusion_propensity)}" if segment == "reserved" else segment


def _reserve(response: Any) -> str:
    if not response.reserved_slots:
        return ""
    if not response.reserve_pool_size:
        return f"{response.reserved_slots} kept; no memory that has had few turns fitted the task"
    pool = counted(response.reserve_pool_size, "memory that has", "memories that have")
    return f"{response.reserved_slots} of {pool} had few turns"


def _show_features(response: Any) -> None:
    weights = response.weights.features
    for item in response.items:
        parts = contributions(response, item)
        values = dict(zip(response.feature_names, item.features, strict=False))
        click.echo()
        click.secho(f"{item.place}  {screen.visible(item.memory.id)}  {item.score:.6f}", bold=True)
        rows = [
            [name, f"{values[name]:.4f}", f"{weights.get(name, 0.0):g}", f"{parts[name]:.6f}"]
            for name in response.feature_names
            if values.get(name) and weights.get(name)
        ]
        numbers = [Column(title, is_number=True) for title in ("value", "weight", "contribution")]
        screen.table((Column("feature"), *numbers), rows)
