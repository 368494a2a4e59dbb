"""The feedback log: takes reports of use in, and keeps what they come to.

Reports are never changed; packet_uses, session_uses and agent_uses are derived from them, and could be rebuilt.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sidecar.domain import Change, Channel, MemoryUse, Micros, Packet, ReportState, UseCounts, UseReport
from sidecar.store import memories, packets, tally
from sidecar.store.jobs import Done
from sidecar.store.merge import LEAST_WINDOW, Report, report_state, report_window
from sidecar.store.rows import to_json

NOT_IN_PACKET = "NOT_IN_PACKET"
"""The packet holds no memory of that id."""
CONTRADICTORY = "CONTRADICTORY"
"""The id is named both as used and as unused; it counts as used."""

DELAYS = 1_000
"""The last first reports of a namespace that its window goes by."""


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


@dataclass(frozen=True, slots=True)
class ReportedPacket:
    """The packet that a report is about."""

    key: int
    namespace: str
    session_key: str
    agent_id: str
    create_time: Micros
    memory_keys: Mapping[str, int]
    """By memory id, in the order of places."""


def find_packet(connection: sqlite3.Connection, namespace: str | None, packet_id: str) -> ReportedPacket:
    """As `packet_of`. Raises PacketNotFoundError if there is none."""
    packet = packet_of(connection, namespace, packet_id)
    if packet is None:
        raise packets.unknown(packet_id)
    return packet


def packet_of(connection: sqlite3.Connection, namespace: str | None, packet_id: str) -> ReportedPacket | None:
    """A packet by its id, whosesoever if `namespace` is None; None if it is not there or another namespace's."""
    row = connection.execute(
        "SELECT packet_key, namespace, session_key, agent_id, create_time FROM packets WHERE packet_id = ?",
        (packet_id,),
    ).fetchone()
    if row is None or namespace not in (None, row[1]):
        return None
    exposures = connection.execute(
        "SELECT memory_id, memory_key FROM exposures WHERE packet_key = ? ORDER BY place", (row[0],)
    ).fetchall()
    key, owner, session_key, agent_id, create_time = row
    return ReportedPacket(key, owner, session_key, agent_id, create_time, dict(exposures))


def take(
    connection: sqlite3.Connection, packet: ReportedPacket, reports: Sequence[UseReport], now: Micros
) -> Done[list[ReportOutcome]]:
    """Writes reports on one packet down and counts them together. The same words again are known by their digest and
    change nothing."""
    counts: dict[int, UseCounts] = {}
    taken: list[ReportOutcome] = []
    counting = False
    window = _window(connection, packet, now)
    late = now - packet.create_time > window
    for report in reports:
        agent_id = report.agent_id or packet.agent_id
        report_id = _digest(report, agent_id)
        results, words = _read(packet, report, report_id, now)
        known = connection.execute("SELECT 1 FROM reports WHERE report_id = ?", (report_id,)).fetchone()
        if known is None:
            insert(connection, packet, words, report.outcome, agent_id, report.request_id, late=late)
            counting = counting or report.channel is not Channel.PACKET
        implied = set(packet.memory_keys if words.shown is None else words.shown) if words.complete else set()
        taken.append(
            ReportOutcome(
                report_id=report_id,
                state=report_state(now - packet.create_time, first_late(connection, packet.key), window),
                results=results,
                used_count=len(words.used),
                unused_count=len(words.unused | (implied - words.used)),
                replayed=known is not None,
            )
        )
    if counting:
        counts = tally.recount(connection, packet.key, packet.namespace, packet.session_key, packet.memory_keys)
    if not counts:
        return Done(taken)
    version = memories.bump(connection, packet.namespace)
    return Done(taken, Change(packet.namespace, version, uses=counts))


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
    late = first_late(connection, packet_key)
    window = LEAST_WINDOW if late is not None else report_window(_delays(connection, packet.namespace))
    return LoggedPacket(packet, tuple(uses(connection, packet_key)), late, window)


def first_late(connection: sqlite3.Connection, packet_key: int) -> bool | None:
    """Whether the first report that says something of use was late when it arrived; None without one."""
    row = connection.execute(
        "SELECT late FROM reports WHERE packet_key = ? AND channel IN ('explicit', 'inferred')"
        " ORDER BY receive_time, report_key LIMIT 1",
        (packet_key,),
    ).fetchone()
    return None if row is None else bool(row[0])


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
) -> None:
    """Writes a report down, and counts nothing yet. Its words name only memories of the packet."""
    report_key = connection.execute(
        "INSERT INTO reports (report_id, packet_key, namespace, channel, complete, shown_all, outcome, confidence,"
        " sequence, report_time, receive_time, late, agent_id, request_id)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            words.report_id,
            packet.key,
            packet.namespace,
            words.channel.value,
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
    ).lastrowid
    named = (("used", words.used), ("unused", words.unused), ("shown", words.shown or frozenset()))
    connection.executemany(
        "INSERT INTO report_memories (report_key, word, memory_id, memory_key) VALUES (?, ?, ?, ?)",
        [
            (report_key, word, memory_id, packet.memory_keys[memory_id])
            for word, memory_ids in named
            for memory_id in sorted(memory_ids)
        ],
    )


def _digest(report: UseReport, agent_id: str) -> str:
    """Names a report by its words, so that the same words are the same report."""
    words = [
        report.packet_id,
        report.channel.value,
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
