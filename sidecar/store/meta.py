"""Facts about the store as a whole, by key."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping

from sidecar.store.counts import AGENT_SESSIONS

SALT = "salt"
"""32 random bytes, made with the store: the secret of the draws for reserved slots."""

EMBEDDER = "embedder"
"""The embedder that made the store's vectors, as name@fingerprint:dimension."""
REINDEX_TARGET = "reindex_target"
"""The embedder that vectors are being collected for, in the same form; unset while none are."""
FIRST_SCORE_VERSION = "first_score_version"
"""As decimal digits, what a namespace that is not known yet counts its score versions from; unset means 0. Set where a
store goes back to an earlier state."""

_INFERRED_PRECISION = "inferred_precision"
RANKING = "ranking"
"""What ranked when the store was last opened."""
IMPORTANCE = "importance"
"""What scored the content parts of importances when the store was last opened; IMPORTANCE_OFF if nothing did."""
IMPORTANCE_TIME = "importance_time"
"""As decimal digits, up to when memories that began or ceased to be valid were seen to."""
IMPORTANCE_OFF = "off"
_AGENT_SESSIONS = "agent_sessions"


def get(connection: sqlite3.Connection, key: str) -> bytes | None:
    """The value, if it is set."""
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return None if row is None else bytes(row[0])


def put(connection: sqlite3.Connection, key: str, value: bytes) -> None:
    """Sets the value."""
    connection.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (key, value))


def agent_sessions(connection: sqlite3.Connection) -> int:
    """Most sessions of one memory that one agent weighs."""
    return int(get(connection, _AGENT_SESSIONS) or AGENT_SESSIONS)


def put_agent_sessions(connection: sqlite3.Connection, sessions: int) -> None:
    """Sets it. All counts are others then."""
    put(connection, _AGENT_SESSIONS, str(sessions).encode())


def use_priors(connection: sqlite3.Connection) -> dict[str, tuple[float, float]]:
    """(mu, kappa) of the use rate by kind."""
    rows = connection.execute("SELECT kind, mu, kappa FROM use_priors").fetchall()
    return {kind: (mu, kappa) for kind, mu, kappa in rows}


def put_use_priors(connection: sqlite3.Connection, run: str, priors: Mapping[str, tuple[float, float]]) -> None:
    """Replaces (mu, kappa) of every kind."""
    connection.execute("DELETE FROM use_priors")
    connection.executemany(
        "INSERT INTO use_priors (kind, mu, kappa, run) VALUES (?, ?, ?, ?)",
        [(kind, mu, kappa, run) for kind, (mu, kappa) in priors.items()],
    )


def inferred_precision(connection: sqlite3.Connection) -> tuple[int, int]:
    """How many inferred uses an explicit report has confirmed and refuted; (0, 0) before the first rescore."""
    found = get(connection, _INFERRED_PRECISION)
    if found is None:
        return 0, 0
    confirmed, refuted = json.loads(found)
    return int(confirmed), int(refuted)


def put_inferred_precision(connection: sqlite3.Connection, confirmed: int, refuted: int) -> None:
    """Sets both counts."""
    put(connection, _INFERRED_PRECISION, json.dumps([confirmed, refuted]).encode())
