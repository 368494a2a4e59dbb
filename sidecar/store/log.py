"""The log and what memories have besides a caller's fields, as rows that leave one store and enter another.

A row names memories by id, never by key: keys are a store's own. What comes in is counted by the same code as a report
that has just arrived, and a row that is there already changes nothing. So a namespace that was written out and read
into an empty store ranks as it did.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias, TypeVar

from sidecar.domain import (
    Change,
    ImportancePart,
    Micros,
    Packet,
    PacketItem,
    PartName,
    PoolItem,
    Rating,
    UseCounts,
    UsePriors,
)
from sidecar.store import importance, memories, meta, packets, pruned, ratings, reports, tally
from sidecar.store.jobs import Done
from sidecar.store.merge import Report
from sidecar.store.pruned import PrunedSession, PrunedUse
from sidecar.store.reported import ReportedPacket, packet_of

STORED = 1
"""The key of a memory of the store in a row: whichever key has its id. Others are below: a caller's own, or GONE."""
GONE = 0
"""The key of a memory that was deleted since. None has it, so that one written later under the id inherits nothing."""

STATES_AT_ONCE = 1_000
PACKETS_AT_ONCE = 20

Item = TypeVar("Item", PacketItem, PoolItem)


@dataclass(frozen=True, slots=True)
class MemoryState:
    """What a caller cannot write of a memory: when it was last changed, and the parts of its importance that are
    computed, in [0, 1] or None."""

    memory_id: str
    update_time: Micros
    importance_content: float | None
    importance_use: float | None
    importance_parts: Mapping[PartName, ImportancePart] = field(default_factory=dict)
    """How the parts came about, of those that say."""


@dataclass(frozen=True, slots=True)
class StorePriors:
    """What a rescore learned for the whole store: (mu, kappa) of the use rate by kind, and how many inferred uses
    explicit reports had confirmed and refuted."""

    use_priors: Mapping[str, tuple[float, float]]
    inferred_precision: tuple[int, int]


@dataclass(frozen=True, slots=True)
class LoggedRating:
    """A mark that stands on a memory."""

    memory_id: str
    rater: str
    rating: Rating
    reason: str
    time: Micros


@dataclass(frozen=True, slots=True)
class LoggedReport:
    """A report of use on a packet, with what is kept of it beside its words."""

    packet_id: str
    report: Report
    outcome: float
    agent_id: str
    request_id: str
    late: bool
    """Whether it came after the window as it was when it came."""


LogRow: TypeAlias = StorePriors | PrunedSession | MemoryState | LoggedRating | PrunedUse | Packet | LoggedReport


@dataclass(slots=True)
class LogOutcome:
    """What became of rows: how many were new or changed something, how many were there, and what was wrong with the
    others, by their numbers."""

    imported: int = 0
    known: int = 0
    rejected: list[tuple[int, str]] = field(default_factory=list)


def store_priors(connection: sqlite3.Connection) -> list[LogRow]:
    """What a rescore learned, nothing before the first."""
    priors = meta.use_priors(connection)
    return [StorePriors(priors, meta.inferred_precision(connection))] if priors else []


def memory_states(connection: sqlite3.Connection, namespace: str, after: int) -> tuple[list[LogRow], int | None]:
    """States and ratings of memories whose keys follow `after`, a page; and the key to go on after, None at the end."""
    found = connection.execute(
        "SELECT memory_key, memory_id, update_time, importance_content, importance_use FROM memories"
        " WHERE namespace = ? AND memory_key > ? ORDER BY memory_key LIMIT ?",
        (namespace, after, STATES_AT_ONCE),
    ).fetchall()
    rows: list[LogRow] = []
    for key, memory_id, update_time, content, use in found:
        rows.append(MemoryState(memory_id, update_time, content, use, importance.read(connection, key)))
        rows.extend(_ratings(connection, key, memory_id))
    return rows, found[-1][0] if len(found) == STATES_AT_ONCE else None


def packet_count(connection: sqlite3.Connection, namespace: str, last: int) -> int:
    """How many of a namespace's packets have keys up to `last`."""
    found = connection.execute(
        "SELECT COUNT(*) FROM packets WHERE namespace = ? AND packet_key <= ?", (namespace, last)
    )
    return int(found.fetchone()[0])


def last_packet(connection: sqlite3.Connection) -> int:
    """The highest key of a packet, 0 before the first."""
    return int(connection.execute("SELECT COALESCE(MAX(packet_key), 0) FROM packets").fetchone()[0])


def is_within(row: LogRow, from_time: Micros | None, until_time: Micros | None) -> bool:
    """True for a rating of [from_time, until_time)."""
    return (
        isinstance(row, LoggedRating)
        and (from_time is None or row.time >= from_time)
        and (until_time is None or row.time < until_time)
    )


def packets_with_reports(
    connection: sqlite3.Connection, namespace: str, after: int, from_time: Micros | None, until_time: Micros | None
) -> tuple[list[LogRow], int | None]:
    """A page of packets made in [from_time, until_time) whose keys follow `after`, each with its reports; and the key
    to go on after, None at the end."""
    found = connection.execute(
        "SELECT packet_key, packet_id FROM packets WHERE namespace = ? AND packet_key > ?"
        " AND (? IS NULL OR create_time >= ?) AND (? IS NULL OR create_time < ?) ORDER BY packet_key LIMIT ?",
        (namespace, after, from_time, from_time, until_time, until_time, PACKETS_AT_ONCE),
    ).fetchall()
    rows: list[LogRow] = []
    for key, packet_id in found:
        rows.append(_without_keys(connection, packets.read(connection, namespace, packet_id)[1]))
        rows.extend(_reports(connection, key, packet_id))
    return rows, found[-1][0] if len(found) == PACKETS_AT_ONCE else None


def take(connection: sqlite3.Connection, namespace: str, rows: Sequence[tuple[int, LogRow]]) -> Done[LogOutcome]:
    """Takes numbered rows into a namespace, in their order: a packet stands before its reports, and the memories are
    there already."""
    outcome = LogOutcome()
    states: dict[int, str] = {}
    rated: dict[int, tuple[int, int]] = {}
    reported: dict[str, ReportedPacket] = {}
    uses: dict[int, UseCounts] = {}
    priors: Mapping[str, tuple[float, float]] | None = None
    for number, row in rows:
        try:
            match row:
                case Packet():
                    is_new = _take_packet(connection, namespace, row)
                case LoggedReport():
                    is_new = _take_report(connection, namespace, row, reported)
                case LoggedRating():
                    is_new = _take_rating(connection, namespace, row, rated)
                case MemoryState():
                    is_new = _take_state(connection, namespace, row, states)
                case PrunedSession():
                    is_new = pruned.take_session(connection, namespace, row)
                case PrunedUse():
                    is_new = _take_pruned_use(connection, namespace, row, uses)
                case StorePriors():
                    is_new = _take_priors(connection, row)
                    priors = row.use_priors if is_new else priors
        except _RejectedError as error:
            outcome.rejected.append((number, str(error)))
        else:
            outcome.imported += is_new
            outcome.known += not is_new
    for packet in reported.values():
        uses |= tally.recount(connection, packet)
    upserted = tuple(memories.get(connection, namespace, memory_id) for memory_id in states.values())
    names = [namespace] if upserted or rated or uses else []
    if priors is not None:  # they are the whole store's, and so move every namespace
        names = sorted({*names, *(row[0] for row in connection.execute("SELECT namespace FROM namespaces"))})
    versions = {name: memories.bump(connection, name) for name in names}
    moved = None if priors is None else UsePriors(priors, versions)
    changes = [Change(name, version, use_priors=moved) for name, version in versions.items()]
    changes = [
        replace(change, upserted=upserted, uses=uses, ratings=rated) if change.namespace == namespace else change
        for change in changes
    ]
    return Done(outcome, changes[0] if changes else None, more=tuple(changes[1:]))


class _RejectedError(Exception):
    """A row that cannot be taken in, in words."""


def _ratings(connection: sqlite3.Connection, key: int, memory_id: str) -> Iterator[LoggedRating]:
    for rater, rating, reason, time in connection.execute(
        "SELECT rater, rating, reason, time FROM ratings WHERE memory_key = ? ORDER BY time, rater", (key,)
    ):
        yield LoggedRating(memory_id, rater, Rating(rating), reason, time)


def _reports(connection: sqlite3.Connection, packet_key: int, packet_id: str) -> Iterator[LoggedReport]:
    beside = {
        row[0]: (*row[1:4], bool(row[4]))
        for row in connection.execute(
            "SELECT report_id, outcome, agent_id, request_id, late FROM reports WHERE packet_key = ?", (packet_key,)
        )
    }
    for report in sorted(
        tally.reports_of(connection, packet_key), key=lambda each: (each.receive_time, each.report_id)
    ):
        yield LoggedReport(packet_id, report, *beside[report.report_id])


def _without_keys(connection: sqlite3.Connection, packet: Packet) -> Packet:
    """The packet with STORED, GONE or a caller's own negative number in the place of this store's keys."""

    def found(item: Item) -> Item:
        if item.memory_key <= 0:
            return item
        lives = connection.execute(
            "SELECT 1 FROM memories WHERE memory_key = ? AND memory_id = ?", (item.memory_key, item.memory_id)
        ).fetchone()
        return replace(item, memory_key=STORED if lives else GONE)

    return replace(packet, items=tuple(map(found, packet.items)), undrawn=tuple(map(found, packet.undrawn)))


def _take_packet(connection: sqlite3.Connection, namespace: str, packet: Packet) -> bool:
    known = connection.execute("SELECT namespace FROM packets WHERE packet_id = ?", (packet.packet_id,)).fetchone()
    if known is not None:
        if known[0] != namespace:
            raise _RejectedError(
                f"packet_id: {packet.packet_id!r} is in the log of another namespace of this store; the log of a"
                " namespace can be brought into another store, and not into another namespace beside it"
            )
        return False

    def keyed(item: Item) -> Item:
        if item.memory_key != STORED:
            return item
        key = _find_key(connection, namespace, item.memory_id)
        return replace(item, memory_key=GONE if key is None else key)

    filled = replace(
        packet,
        namespace=namespace,
        items=tuple(map(keyed, packet.items)),
        undrawn=tuple(map(keyed, packet.undrawn)),
    )
    packets.insert(connection, packets.to_rows(filled))
    return True


def _take_report(
    connection: sqlite3.Connection,
    namespace: str,
    row: LoggedReport,
    reported: dict[str, ReportedPacket],
) -> bool:
    packet = reported.get(row.packet_id) or packet_of(connection, namespace, row.packet_id)
    if packet is None:
        raise _RejectedError(
            f"packet_id: no packet {row.packet_id!r} in this namespace; send a packet before its reports"
        )
    known = packet.memory_keys.keys()
    words = replace(
        row.report,
        used=row.report.used & known,
        unused=row.report.unused & known,
        shown=None if row.report.shown is None else row.report.shown & known,
    )
    if not reports.insert(connection, packet, words, row.outcome, row.agent_id, row.request_id, late=row.late):
        return False
    reported[row.packet_id] = packet
    return True


def _take_rating(
    connection: sqlite3.Connection, namespace: str, row: LoggedRating, rated: dict[int, tuple[int, int]]
) -> bool:
    key = _key(connection, namespace, row.memory_id)
    known = connection.execute(
        "SELECT time FROM ratings WHERE memory_key = ? AND rater = ?", (key, row.rater)
    ).fetchone()
    if known is not None and known[0] >= row.time:
        return False
    rated[key] = ratings.set_rating(connection, key, row.rater, row.rating, row.reason, row.time)
    return True


def _take_pruned_use(
    connection: sqlite3.Connection, namespace: str, row: PrunedUse, uses: dict[int, UseCounts]
) -> bool:
    key = _key(connection, namespace, row.memory_id)
    is_new, counts = pruned.take_use(connection, namespace, key, row)
    uses |= counts
    return is_new


def _take_state(connection: sqlite3.Connection, namespace: str, row: MemoryState, states: dict[int, str]) -> bool:
    key = _key(connection, namespace, row.memory_id)
    memory = memories.get(connection, namespace, row.memory_id)
    if meta.get(connection, meta.IMPORTANCE) == meta.IMPORTANCE_OFF.encode():
        # Where nothing is scored no content part counts, wherever it was scored.
        kept = dict(row.importance_parts)
        kept.pop(PartName.CONTENT, None)
        row = replace(row, importance_content=None, importance_parts=kept)
    state = (row.update_time, row.importance_content, row.importance_use)
    stand = importance.read(connection, key)
    # A row from before parts were written out says nothing of them; the user's word came with the memory.
    parts = row.importance_parts or {name: part for name, part in stand.items() if name is PartName.USER}
    if parts == stand and state == (memory.update_time, memory.importance_content, memory.importance_use):
        return False
    importance.replace_all(connection, key, parts)
    connection.execute(
        "UPDATE memories SET update_time = ?, importance_content = ?, importance_use = ? WHERE memory_key = ?",
        (*state, key),
    )
    states[key] = row.memory_id
    return True


def _take_priors(connection: sqlite3.Connection, row: StorePriors) -> bool:
    """Only a store that has learned nothing of its own takes them."""
    if meta.use_priors(connection):
        return False
    meta.put_use_priors(connection, "", row.use_priors)
    meta.put_inferred_precision(connection, *row.inferred_precision)
    return True


def _key(connection: sqlite3.Connection, namespace: str, memory_id: str) -> int:
    key = _find_key(connection, namespace, memory_id)
    if key is None:
        raise _RejectedError(
            f"memory_id: no memory {memory_id!r} in this namespace; store it before what is known of it"
        )
    return key


def _find_key(connection: sqlite3.Connection, namespace: str, memory_id: str) -> int | None:
    row = connection.execute(
        "SELECT memory_key FROM memories WHERE namespace = ? AND memory_id = ?", (namespace, memory_id)
    ).fetchone()
    return None if row is None else int(row[0])
