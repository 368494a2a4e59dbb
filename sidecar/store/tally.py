"""Keeps the sums of use in step with the reports: after a report by what it changed, or all of them from the log."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from sidecar.domain import Channel, Micros, UseCounts
from sidecar.store import meta, packets
from sidecar.store.counts import AgentUse, SessionUse, later, total
from sidecar.store.merge import Merged, Report, merge
from sidecar.store.reported import ReportedPacket
from sidecar.store.rows import Row, insert_rows

_REPORT = (
    "r.report_key, r.packet_key, r.report_id, r.channel, r.complete, r.confidence, r.sequence, r.report_time,"
    " r.receive_time, r.shown_all"
)
_AMOUNTS = "a.used_millionths, a.seen_millionths, a.use_sessions, a.reported_sessions, a.last_use_time"
_SUMS = f"a.memory_key, {_AMOUNTS}"
AT_ONCE = 500
"""Keys that one statement asks for at most."""
_WORD = "w.report_key, w.word, w.memory_id"

INSERT_WORD = (
    "INSERT INTO packet_uses (packet_key, memory_id, channel, memory_key, used, confidence, receive_time,"
    " used_millionths, seen_millionths, last_use_time)"
)
_INSERT_SESSION = (
    "INSERT OR REPLACE INTO session_uses (memory_key, session_key, agent_id, used_millionths, seen_millionths,"
    " last_use_time)"
)
_INSERT_AGENT = (
    "INSERT OR REPLACE INTO agent_uses (memory_key, agent_id, used_millionths, seen_millionths, use_sessions,"
    " reported_sessions, last_use_time)"
)
_CHANNELS = {channel: channel.value for channel in Channel}
_NOTHING = SessionUse()
_NO_AGENT = AgentUse()
_Moved: TypeAlias = tuple[int, SessionUse, SessionUse]
"""A memory's key, and a packet's old pair and its new one."""


def recount(connection: sqlite3.Connection, packet: ReportedPacket) -> dict[int, UseCounts]:
    """Merges all reports on a packet anew and moves the sums. Returns the new counts of the living memories whose
    counts changed, by key."""
    before = _packet_pairs(connection, packet.key)
    if before:
        connection.execute("DELETE FROM packet_uses WHERE packet_key = ?", (packet.key,))
    keys = packet.memory_keys
    merged = merge(reports_of(connection, packet.key), list(keys))
    insert_rows(connection, INSERT_WORD, word_rows(packet.key, keys, merged))
    after = {keys[one.memory_id]: SessionUse(one.used, one.seen, one.last_use_time) for one in merged}
    moved: dict[str, _Moved] = {}
    for memory_id, key in keys.items():
        old, new = before.get(key, _NOTHING), after.get(key, _NOTHING)
        if old != new and key > 0:
            moved[memory_id] = key, old, new
    own_agent = packet.agent_id if packets.is_alone(packet.session_key) else None
    return _move(connection, packet.namespace, packet.session_key, moved, own_agent)


def add(
    connection: sqlite3.Connection, namespace: str, session_key: str, memory_id: str, key: int, use: SessionUse
) -> dict[int, UseCounts]:
    """Moves the sums of a memory by what more packets of a session said of it. Returns as `recount`."""
    return _move(connection, namespace, session_key, {memory_id: (key, _NOTHING, use)})


_IN_SUMS = "r.channel IN ('explicit', 'inferred')"


def times(connection: sqlite3.Connection, namespace: str) -> list[Micros]:
    """When each of the reports arrived that counts_as_of counts."""
    found = connection.execute(
        f"SELECT r.receive_time FROM reports r WHERE r.namespace = ? AND {_IN_SUMS}", (namespace,)
    )
    return [time for (time,) in found]


def counts_as_of(connection: sqlite3.Connection, namespace: str, time: Micros) -> dict[int, UseCounts]:
    """The counts of a namespace's living memories from the reports that had arrived by `time`, by key.

    Reads the log alone, and so proves the sums that are kept beside it.
    """
    of_reports = f"r.namespace = ? AND r.receive_time <= ? AND {_IN_SUMS}"
    reports = _build(
        connection.execute(f"SELECT {_REPORT} FROM reports r WHERE {of_reports}", (namespace, time)).fetchall(),
        connection.execute(
            f"SELECT {_WORD} FROM report_memories w JOIN reports r ON r.report_key = w.report_key WHERE {of_reports}",
            (namespace, time),
        ).fetchall(),
    )
    sessions: dict[tuple[int, str], SessionUse] = defaultdict(SessionUse)
    for packet_key, of_packet in reports.items():
        (session_key,) = connection.execute(
            "SELECT session_key FROM packets WHERE packet_key = ?", (packet_key,)
        ).fetchone()
        memory_keys = dict(
            connection.execute(
                "SELECT e.memory_id, e.memory_key FROM exposures e JOIN memories m ON m.memory_key = e.memory_key"
                " WHERE e.packet_key = ?",
                (packet_key,),
            ).fetchall()
        )
        for one in merge(of_packet, list(memory_keys)):
            place = memory_keys[one.memory_id], session_key
            sessions[place] = sessions[place].with_packet(one.used, one.seen, one.last_use_time)
    for key, session_key, *pair in connection.execute(
        "SELECT q.memory_key, q.session_key, q.used_millionths, q.seen_millionths, q.last_use_time FROM pruned_uses q"
        " JOIN memories m ON m.memory_key = q.memory_key WHERE m.namespace = ?",
        (namespace,),
    ):
        sessions[key, session_key] = sessions[key, session_key].with_packet(*pair)
    agent_of = {key: _session_agent(connection, namespace, key) for key in {place[1] for place in sessions}}
    agents: dict[int, dict[str, AgentUse]] = defaultdict(lambda: defaultdict(AgentUse))
    for (key, session_key), use in sessions.items():
        agent_id = agent_of[session_key]
        agents[key][agent_id] = agents[key][agent_id].plus(use.as_agent())
    most = meta.agent_sessions(connection)
    return {key: total(of_memory.values(), most) for key, of_memory in agents.items()}


def read_counts(connection: sqlite3.Connection, namespace: str) -> Sequence[Row]:
    """The kept sums of a namespace: memory key, then used, seen, use and reported sessions and last use by agent."""
    return connection.execute(
        f"SELECT {_SUMS} FROM memories m JOIN agent_uses a ON a.memory_key = m.memory_key WHERE m.namespace = ?",
        (namespace,),
    ).fetchall()


def read_counts_of(connection: sqlite3.Connection, keys: Sequence[int]) -> list[Row]:
    """The same of some memories, by their keys."""
    found: list[Row] = []
    for first in range(0, len(keys), AT_ONCE):
        some = keys[first : first + AT_ONCE]
        among = ", ".join("?" * len(some))
        found += connection.execute(
            f"SELECT {_SUMS} FROM agent_uses a WHERE a.memory_key IN ({among})", some
        ).fetchall()
    return found


def build_counts(rows: Iterable[Row], agent_sessions: int) -> dict[int, UseCounts]:
    """The counts by memory key from the rows of `read_counts`, where an agent weighs so many sessions at most."""
    agents: dict[int, list[AgentUse]] = defaultdict(list)
    for key, *sums in rows:
        agents[key].append(AgentUse(*sums))
    return {key: total(of_memory, agent_sessions) for key, of_memory in agents.items()}


def _move(
    connection: sqlite3.Connection,
    namespace: str,
    session_key: str,
    moved: Mapping[str, _Moved],
    own_agent: str | None = None,
) -> dict[int, UseCounts]:
    """Moves the session's and the agents' sums of memories from a packet's old pairs to its new ones. Returns the new
    counts of those that changed. All that a report touches is read at once, and written at once. `own_agent` is whom
    the session counts for, if that is known."""
    sessions, agents = _standing(connection, namespace, session_key, moved)
    gone: list[Row] = []
    session_rows: list[Row] = []
    agent_rows: list[Row] = []
    counts: dict[int, UseCounts] = {}
    most = meta.agent_sessions(connection)
    for key, old, new in sorted(moved.values()):
        if key not in agents:  # not alive
            continue
        was, agent_id = sessions.get(key, (_NOTHING, own_agent))
        if old is _NOTHING or old.with_packet(*new) == new:
            now = new if was is _NOTHING else was.with_packet(*new)
        else:  # something was taken back: only now look at the session's other packets
            now = _session_use(connection, namespace, session_key, key)
        if now == was:
            continue
        if agent_id is None:
            agent_id = own_agent = _session_agent(connection, namespace, session_key)
        if now == _NOTHING:
            gone.append((key, session_key))
        else:
            session_rows.append((key, session_key, agent_id, *now))
        of_memory = agents[key]
        agent = of_memory.get(agent_id, _NO_AGENT)
        rest = agent.last_use_time
        if was.last_use_time is not None and later(now.last_use_time, was.last_use_time) != now.last_use_time:
            rest = _last_use(connection, key, agent_id, session_key)
        of_memory[agent_id] = agent = agent.moved(was, now, rest)
        agent_rows.append((key, agent_id, *agent))
        counts[key] = total(of_memory.values(), most)
    if gone:
        connection.executemany("DELETE FROM session_uses WHERE memory_key = ? AND session_key = ?", gone)
    insert_rows(connection, _INSERT_SESSION, session_rows)
    insert_rows(connection, _INSERT_AGENT, agent_rows)
    return counts


def _standing(
    connection: sqlite3.Connection, namespace: str, session_key: str, moved: Mapping[str, _Moved]
) -> tuple[dict[int, tuple[SessionUse, str]], dict[int, dict[str, AgentUse]]]:
    """What a session says of memories, with its agent, and the sums of all agents, each by key. The second
    has an entry for each that lives. They are found by their ids, as these stand close together in an index."""
    sessions: dict[int, tuple[SessionUse, str]] = {}
    agents: dict[int, dict[str, AgentUse]] = {}
    memory_ids = list(moved)
    for first in range(0, len(memory_ids), AT_ONCE):
        some = memory_ids[first : first + AT_ONCE]
        for memory_id, key, used, seen, last_use_time, session_agent, agent_id, *sums in connection.execute(
            f"SELECT m.memory_id, m.memory_key, s.used_millionths, s.seen_millionths, s.last_use_time, s.agent_id,"
            f" a.agent_id, {_AMOUNTS} FROM memories m"
            " LEFT JOIN session_uses s ON s.memory_key = m.memory_key AND s.session_key = ?"
            " LEFT JOIN agent_uses a ON a.memory_key = m.memory_key"
            f" WHERE m.namespace = ? AND m.memory_id IN ({', '.join('?' * len(some))})",
            (session_key, namespace, *some),
        ).fetchall():
            if key != moved[memory_id][0]:  # another memory by the same name
                continue
            if session_agent is not None:
                sessions[key] = SessionUse(used, seen, last_use_time), session_agent
            of_memory = agents.setdefault(key, {})
            if agent_id is not None:
                of_memory[agent_id] = AgentUse(*sums)
    return sessions, agents


def _last_use(connection: sqlite3.Connection, key: int, agent_id: str, but_session: str) -> Micros | None:
    """When an agent's sessions other than one used a memory last."""
    (found,) = connection.execute(
        "SELECT MAX(last_use_time) FROM session_uses WHERE memory_key = ? AND agent_id = ? AND session_key != ?",
        (key, agent_id, but_session),
    ).fetchone()
    return None if found is None else int(found)


def _session_use(connection: sqlite3.Connection, namespace: str, session_key: str, key: int) -> SessionUse:
    row = connection.execute(
        "SELECT MAX(u.used_millionths), MAX(u.seen_millionths), MAX(u.last_use_time) FROM packets p"
        " JOIN packet_uses u ON u.packet_key = p.packet_key"
        " WHERE p.namespace = ? AND p.session_key = ? AND u.memory_key = ?",
        (namespace, session_key, key),
    ).fetchone()
    found = SessionUse(row[0] or 0, row[1] or 0, row[2])
    pruned = connection.execute(
        "SELECT used_millionths, seen_millionths, last_use_time FROM pruned_uses WHERE memory_key = ?"
        " AND session_key = ?",
        (key, session_key),
    ).fetchone()
    return found if pruned is None else found.with_packet(*pruned)


def _session_agent(connection: sqlite3.Connection, namespace: str, session_key: str) -> str:
    """The agent that a session counts for: its first packet's, so that no report can move it."""
    (found,) = connection.execute(
        "SELECT COALESCE((SELECT agent_id FROM pruned_sessions WHERE namespace = ?1 AND session_key = ?2), (SELECT"
        " agent_id FROM packets WHERE namespace = ?1 AND session_key = ?2 ORDER BY packet_key LIMIT 1), '')",
        (namespace, session_key),
    ).fetchone()
    return str(found)


def _packet_pairs(connection: sqlite3.Connection, packet_key: int) -> dict[int, SessionUse]:
    """What the packet's reports came to so far, by memory key."""
    rows = connection.execute(
        "SELECT memory_key, MAX(used_millionths), MAX(seen_millionths), MAX(last_use_time) FROM packet_uses"
        " WHERE packet_key = ? GROUP BY memory_key",
        (packet_key,),
    ).fetchall()
    return {row[0]: SessionUse(*row[1:]) for row in rows}


def word_rows(packet_key: int, memory_keys: Mapping[str, int], merged: Iterable[Merged]) -> list[Row]:
    """The merged words as rows for INSERT_WORD; the pair stands once, with the strongest channel."""
    return [
        (
            packet_key,
            one.memory_id,
            _CHANNELS[word.channel],
            memory_keys[one.memory_id],
            int(word.used),
            word.confidence,
            word.receive_time,
            *((0, 0, None) if i else (one.used, one.seen, one.last_use_time)),
        )
        for one in merged
        for i, word in enumerate(one.words)
    ]


def reports_of(connection: sqlite3.Connection, packet_key: int) -> list[Report]:
    """All reports on a packet, in no order."""
    reports = connection.execute(f"SELECT {_REPORT} FROM reports r WHERE r.packet_key = ?", (packet_key,)).fetchall()
    words = connection.execute(
        f"SELECT {_WORD} FROM report_memories w JOIN reports r ON r.report_key = w.report_key WHERE r.packet_key = ?",
        (packet_key,),
    ).fetchall()
    return _build(reports, words)[packet_key]


def reports_between(connection: sqlite3.Connection, after: int, last: int) -> dict[int, list[Report]]:
    """All reports on the packets whose keys are in (after, last], by packet key, in no order."""
    of_reports = "r.packet_key > ? AND r.packet_key <= ?"
    return _build(
        connection.execute(f"SELECT {_REPORT} FROM reports r WHERE {of_reports}", (after, last)).fetchall(),
        connection.execute(
            f"SELECT {_WORD} FROM report_memories w JOIN reports r ON r.report_key = w.report_key WHERE {of_reports}",
            (after, last),
        ).fetchall(),
    )


def _build(reports: Sequence[Row], words: Sequence[Row]) -> dict[int, list[Report]]:
    """Reports by packet key."""
    named: dict[tuple[int, str], set[str]] = defaultdict(set)
    for report_key, word, memory_id in words:
        named[report_key, word].add(memory_id)
    built: dict[int, list[Report]] = defaultdict(list)
    for row in reports:
        report_key, packet_key, report_id, channel, complete, confidence, sequence, report_time, receive_time, all_ = (
            row
        )
        report = Report(
            report_id=report_id,
            channel=Channel(channel),
            complete=bool(complete),
            confidence=confidence,
            sequence=sequence,
            report_time=report_time,
            receive_time=receive_time,
            used=frozenset(named[report_key, "used"]),
            unused=frozenset(named[report_key, "unused"]),
            shown=None if all_ else frozenset(named[report_key, "shown"]),
        )
        built[packet_key].append(report)
    return built
