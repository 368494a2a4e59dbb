"""The packet that a report is about."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass

from sidecar.domain import Micros
from sidecar.store import packets


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
    has_reports: bool


# One statement: between two of them another thread may take its turn.
_SELECT = (
    "SELECT p.packet_key, p.namespace, p.session_key, p.agent_id, p.create_time,"
    " (SELECT json_group_object(memory_id, memory_key)"
    " FROM (SELECT memory_id, memory_key FROM exposures WHERE packet_key = p.packet_key ORDER BY place)),"
    " EXISTS (SELECT 1 FROM reports WHERE packet_key = p.packet_key)"
    " FROM packets p WHERE p.packet_id = ?"
)
_read_json = json.JSONDecoder().raw_decode


def find_packet(connection: sqlite3.Connection, namespace: str | None, packet_id: str) -> ReportedPacket:
    """As `packet_of`. Raises PacketNotFoundError if there is none."""
    packet = packet_of(connection, namespace, packet_id)
    if packet is None:
        raise packets.unknown(packet_id)
    return packet


def packet_of(connection: sqlite3.Connection, namespace: str | None, packet_id: str) -> ReportedPacket | None:
    """A packet by its id, whosesoever if `namespace` is None; None if it is not there or another namespace's."""
    row = connection.execute(_SELECT, (packet_id,)).fetchone()
    if row is None or namespace not in (None, row[1]):
        return None
    key, owner, session_key, agent_id, create_time, memory_keys, has_reports = row
    return ReportedPacket(key, owner, session_key, agent_id, create_time, _read_json(memory_keys)[0], bool(has_reports))
