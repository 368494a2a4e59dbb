"""The feedback log: takes reports of use in, and keeps what they come to.

Reports are never changed; packet_uses, session_uses and agent_uses are derived from them, and could be rebuilt. Packets
whose reports are in none of these yet stand in uncounted_packets.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple, TypeAlias

from sidecar.domain import Change, Channel, MemoryUse, Micros, Packet, ReportState, UseCounts, UseReport
from sidecar.store import memories, packets, tally
from sidecar.store.merge import LEAST_WINDOW, Report, report_state, report_window
from sidecar.store.reported import ReportedPacket, find_packet
from sidecar.store.rows import insert_rows, to_json

NOT_IN_PACKET = "NOT_IN_PACKET"
"""The packet holds no memory of that id."""
CONTRADICTORY = "CONTRADICTORY"
"""The id is named both as used and as unused; it counts as used."""

DELAYS = 1_000
"""The last first reports of a namespace that its window goes by."""

_OnPacket: TypeAlias = tuple[Micros, str, int, str]
"""A report's arrival, its channel, whether it was late, and its id."""
_arrival = itemgetter(0)
_SAYING = (Channel.EXPLICIT, Channel.INFERRED)


@dataclass(frozen=True, slots=True)
class ReportItem:
    """What became of one id: it counts if `reason` is None."""

    memory_id: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class ReportOutcome:
    """What became of a report. `results` stand in the order used, unused, shown."""

    report_id: str
    state: ReportState
    results: tuple[ReportItem, ...]
    used_count: int
    unused_count: int
    replayed: bool


class Taken(NamedTuple):
    """Reports on one packet: what becomes of each, and of those that are not known yet what is to be written: words,
    outcome, agent and request id."""

    outcomes: list[ReportOutcome]
    new: list[tuple[Report, float, str, str]]
    late: bool


def take(connection: sqlite3.Connection, packet: ReportedPacket, reports: Sequence[UseReport], now: Micros) -> Taken:
    """Reads reports on one packet, to be written by `write`; nothing is written yet. The same words again are known by
    their digest, and change nothing."""
    window = _window(connection, packet, now)
    late = now - packet.create_time > window
    on_packet = _on_packet(connection, packet.key) if packet.has_reports else []
    known = {report_id for *_, report_id in on_packet}
    taken = Taken([], [], late)
    for report in reports:
        agent_id = report.agent_id or packet.agent_id
        report_id = _digest(report, agent_id)
        results, words = _read(packet, report, report_id, now)
        is_new = report_id not in known
        if is_new:
            known.add(report_id)
            on_packet.append((now, report.channel, late, report_id))
            on_packet.sort(key=_arrival)
            taken.new.append((words, report.outcome, agent_id, report.request_id))
        implied = set(packet.memory_keys if words.shown is None else words.shown) if words.complete else set()
        taken.outcomes.append(
            ReportOutcome(
                report_id=report_id,
                state=report_state(now - packet.create_time, _first_late(on_packet), window),
                results=results,
                used_count=len(words.used),
                unused_count=len(words.unused | (implied - words.used)),
                replayed=not is_new,
            )
        )
    return taken


def write(connection: sqlite3.Connection, packet: ReportedPacket, taken: Taken) -> None:
    """Writes down what was taken, to be counted by `count`."""
    counts = False
    for words, outcome, agent_id, request_id in taken.new:
        insert(connection, packet, words, outcome, agent_id, request_id, late=taken.late)
        counts = counts or words.channel is not Channel.PACKET
    if counts:
        connection.execute("INSERT OR IGNORE INTO uncounted_packets (packet_key) VALUES (?)", (packet.key,))


def uncounted(connection: sqlite3.Connection) -> bool:
    """Whether reports are yet to be counted."""
    return connection.execute("SELECT 1 FROM uncounted_packets LIMIT 1").fetchone() is not None


def count(connection: sqlite3.Connection, most: int = -1) -> tuple[Change, ...]:
    """Brings what is derived up to the reports that were taken, those on `most` packets or on all. Returns the changes,
    one for each namespace in which counts are others now."""
    uses: dict[str, dict[int, UseCounts]] = defaultdict(dict)
    for (packet_id,) in connection.execute(
        "SELECT p.packet_id FROM uncounted_packets u JOIN packets p ON p.packet_key = u.packet_key"
        " ORDER BY u.packet_key LIMIT ?",
        (most,),
    ).fetchall():
        packet = find_packet(connection, None, packet_id)
        uses[packet.namespace] |= tally.recount(connection, packet)
        connection.execute("DELETE FROM uncounted_packets WHERE packet_key = ?", (packet.key,))
    return tuple(
        Change(namespace, memories.bump(connection, namespace), uses=counts)
        for namespace, counts in uses.items()
        if counts
    )


@dataclass(frozen=True, slots=True)
class LoggedPacket:
    """A packet as it was served, and what is known of its use: merged, by place, strongest channel first."""

    packet: Packet
    uses: tuple[MemoryUse, ...]
    first_late: bool | None
    """Whether the first EXPLICIT or INFERRED report was late; None without one."""
    window: Micros
    """How long packets of its namespace are OPEN at present; of no weight once there is a report."""

    def report_state(self, now: Micros) -> ReportState:
        """How the packet stands with respect to reports."""
        return report_state(now - self.packet.create_time, self.first_late, self.window)


def read_logged(connection: sqlite3.Connection, namespace: str | None, packet_id: str) -> LoggedPacket:
    """A packet with its uses. Raises PacketNotFoundError, also if it is another namespace's."""
    packet_key, packet = packets.read(connection, namespace, packet_id)
    late = _first_late(_on_packet(connection, packet_key))
    window = LEAST_WINDOW if late is not None else report_window(_delays(connection, packet.namespace))
    return LoggedPacket(packet, tuple(uses(connection, packet_key)), late, window)


def _on_packet(connection: sqlite3.Connection, packet_key: int) -> list[_OnPacket]:
    """The reports on a packet, in the order in which they arrived."""
    return connection.execute(
        "SELECT receive_time, channel, late, report_id FROM reports WHERE packet_key = ?"
        " ORDER BY receive_time, report_key",
        (packet_key,),
    ).fetchall()


def _first_late(on_packet: Sequence[_OnPacket]) -> bool | None:
    """Whether the first report that says something of use was late when it arrived; None without one."""
    for _, channel, late, _ in on_packet:
        if channel in _SAYING:
            return bool(late)
    return None


def _window(connection: sqlite3.Connection, packet: ReportedPacket, receive_time: Micros) -> Micros:
    """How long a packet is OPEN, as far as it matters for a report that arrives then: what is younger than the least
    window is in every window."""
    if receive_time - packet.create_time <= LEAST_WINDOW:
        return LEAST_WINDOW
    return report_window(_delays(connection, packet.namespace))


def _delays(connection: sqlite3.Connection, namespace: str) -> list[Micros]:
    """How long the first reports that say something of use took, of the packets that were reported on last."""
    rows = connection.execute(
        "SELECT r.receive_time - p.create_time FROM reports r CROSS JOIN packets p ON p.packet_key = r.packet_key"
        " WHERE r.namespace = ? AND r.channel IN ('explicit', 'inferred') AND NOT EXISTS (SELECT 1 FROM reports e"
        " WHERE e.packet_key = r.packet_key AND e.channel IN ('explicit', 'inferred')"
        " AND (e.receive_time, e.report_key) < (r.receive_time, r.report_key))"
        " ORDER BY r.receive_time DESC LIMIT ?",
        (namespace, DELAYS),
    )
    return [delay for (delay,) in rows]


def uses(connection: sqlite3.Connection, packet_key: int) -> list[MemoryUse]:
    """What is known of each memory of a packet, by place, strongest channel first."""
    rows = connection.execute(
        "SELECT u.memory_id, u.channel, u.used, u.confidence, u.receive_time FROM packet_uses u JOIN exposures e"
        " ON e.packet_key = u.packet_key AND e.memory_id = u.memory_id WHERE u.packet_key = ? ORDER BY e.place",
        (packet_key,),
    ).fetchall()
    strength = list(Channel)
    found = [MemoryUse(row[0], Channel(row[1]), bool(row[2]), row[3], row[4]) for row in rows]
    order = {memory_id: place for place, memory_id in enumerate(dict.fromkeys(use.memory_id for use in found))}
    return sorted(found, key=lambda use: (order[use.memory_id], strength.index(use.channel)))


def _read(
    packet: ReportedPacket, report: UseReport, report_id: str, now: Micros
) -> tuple[tuple[ReportItem, ...], Report]:
    """Sorts the ids into those that count and those that do not, and makes the report that the log keeps."""
    known = packet.memory_keys.keys()
    used = frozenset(report.used_memory_ids) & known
    unused = frozenset(report.unused_memory_ids) & known - used
    shown = frozenset(report.shown_memory_ids) & known if report.shown_memory_ids else None
    results: list[ReportItem] = []
    for memory_ids, good in ((report.used_memory_ids, used), (report.unused_memory_ids, unused)):
        for memory_id in memory_ids:
            if memory_id in good:
                results.append(ReportItem(memory_id))
            else:
                results.append(ReportItem(memory_id, CONTRADICTORY if memory_id in used else NOT_IN_PACKET))
    results += [ReportItem(one, None if one in known else NOT_IN_PACKET) for one in report.shown_memory_ids]
    # Something was used that we cannot place: then silence on the others is no "not used".
    misnamed = bool(report.used_memory_ids) and not used
    words = Report(
        report_id=report_id,
        channel=report.channel,
        complete=report.complete and not misnamed and report.channel in (Channel.EXPLICIT, Channel.INFERRED),
        confidence=report.confidence,
        sequence=report.sequence,
        report_time=report.report_time,
        receive_time=now,
        used=used,
        unused=unused,
        shown=shown,
    )
    return tuple(results), words


def insert(
    connection: sqlite3.Connection,
    packet: ReportedPacket,
    words: Report,
    outcome: float,
    agent_id: str,
    request_id: str,
    *,
    late: bool,
) -> bool:
    """Writes a report down, and counts nothing yet. Its words name only memories of the packet. False, and nothing, if
    a report of its id is there already."""
    written = connection.execute(
        "INSERT INTO reports (report_id, packet_key, namespace, channel, complete, shown_all, outcome, confidence,"
        " sequence, report_time, receive_time, late, agent_id, request_id)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (report_id) DO NOTHING",
        (
            words.report_id,
            packet.key,
            packet.namespace,
            str.__str__(words.channel),  # quicker than its value
            int(words.complete),
            int(words.shown is None),
            outcome,
            words.confidence,
            words.sequence,
            words.report_time,
            words.receive_time,
            int(late),
            agent_id,
            request_id,
        ),
    )
    if not written.rowcount:
        return False
    named = (("used", words.used), ("unused", words.unused), ("shown", words.shown or frozenset()))
    insert_rows(
        connection,
        "INSERT INTO report_memories (report_key, word, memory_id, memory_key)",
        [
            (written.lastrowid, word, memory_id, packet.memory_keys[memory_id])
            for word, memory_ids in named
            for memory_id in sorted(memory_ids)
        ],
    )
    return True


def _digest(report: UseReport, agent_id: str) -> str:
    """Names a report by its words, so that the same words are the same report."""
    words = [
        report.packet_id,
        str.__str__(report.channel),
        sorted(set(report.used_memory_ids)),
        sorted(set(report.unused_memory_ids)),
        sorted(set(report.shown_memory_ids)),
        report.complete,
        report.outcome,
        report.confidence,
        report.sequence,
        report.report_time,
        agent_id,
        report.request_id,
    ]
    return hashlib.sha256(to_json(words).encode()).hexdigest()[:32]
