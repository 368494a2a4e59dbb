"""The audit's queries as plain SQL, for any SQL client: SQLite's form, which the audit itself runs, and PostgreSQL's.

Pure text: scope and window stand in them as literals. A serve is a row of `exposures`; what an agent or its output
said is in `packet_uses`, merged, where the channels `echo` and `packet` are left out on purpose.
"""

from __future__ import annotations

from dataclasses import dataclass

from sidecar.domain import Micros
from sidecar.features.importance import BASELINE, USE_SHARE

MOST_SERVED = 20
MOST_COMPARED = 50


@dataclass(frozen=True, slots=True)
class Scope:
    """What is looked at: a namespace, or all for "", and packets from `since` on."""

    namespace: str = ""
    since: Micros | None = None

    def of_memories(self, alias: str) -> str:
        """A condition on memories."""
        return f"{alias}.namespace = {_text(self.namespace)}" if self.namespace else "1 = 1"

    def of_packets(self, alias: str) -> str:
        """A condition on packets."""
        since = "" if self.since is None else f" AND {alias}.create_time >= {self.since}"
        return self.of_memories(alias) + since


@dataclass(frozen=True, slots=True)
class Query:
    """One query: the question it answers, and its text in both forms."""

    name: str
    question: str
    sqlite: str
    postgresql: str


def own_score(alias: str) -> str:
    """SQL: an importance's own part, without use and without the user's word."""
    kinds = " ".join(f"WHEN {_text(kind)} THEN {value}" for kind, value in BASELINE.items() if kind != "default")
    return f"COALESCE({alias}.importance_content, CASE {alias}.kind {kinds} ELSE {BASELINE['default']} END)"


def score(alias: str) -> str:
    """SQL: an importance, of its three parts."""
    own = own_score(alias)
    together = f"{1 - USE_SHARE} * {own} + {USE_SHARE} * {alias}.importance_use"
    return (
        f"COALESCE({alias}.importance_override,"
        f" CASE WHEN {alias}.importance_use IS NULL THEN {own} ELSE {together} END)"
    )


def queries(scope: Scope) -> list[Query]:
    """The three queries, then feedback by client and surface."""
    return [
        Query(
            "serves",
            "Is the same top slice getting all the shelf time?",
            *_both(_serves(scope)),
        ),
        Query(
            "uses",
            "Uses beside serves: checkouts and shelf views. It counts packets, not sessions, so it is no score.",
            *_both(_uses(scope)),
        ),
        Query(
            "starvation",
            "How many memories are at the floor, which is their score without any use? How many packets were heard of?",
            *_both(_starvation(scope)),
        ),
        Query(
            "clients",
            "Which client, on which surface, sends nothing back?",
            *_both(_clients(scope)),
        ),
    ]


def _serves(scope: Scope) -> str:
    return f"""\
SELECT m.namespace, m.memory_id, {score("m")} AS importance, COUNT(*) AS serves
FROM memories m
JOIN exposures e ON e.memory_key = m.memory_key AND e.segment <> 'pinned'
JOIN packets p ON p.packet_key = e.packet_key
WHERE {scope.of_packets("p")}
GROUP BY m.memory_key, m.namespace, m.memory_id, m.kind, m.importance_content, m.importance_use,
  m.importance_override
ORDER BY serves DESC, m.namespace, m.memory_id
LIMIT {MOST_SERVED}"""


def _uses(scope: Scope) -> str:
    return f"""\
SELECT m.namespace, m.memory_id,
  COUNT(DISTINCT e.packet_key) AS serves,
  COUNT(DISTINCT u.packet_key) AS uses,
  CAST(COUNT(DISTINCT u.packet_key) AS REAL) / COUNT(DISTINCT e.packet_key) AS use_rate
FROM memories m
JOIN exposures e ON e.memory_key = m.memory_key
JOIN packets p ON p.packet_key = e.packet_key
LEFT JOIN packet_uses u ON u.packet_key = e.packet_key AND u.memory_id = e.memory_id AND u.used = 1
  AND (u.channel = 'explicit' OR (u.channel = 'inferred' AND NOT EXISTS (
    SELECT 1 FROM packet_uses x
    WHERE x.packet_key = u.packet_key AND x.memory_id = u.memory_id AND x.channel = 'explicit')))
WHERE {scope.of_packets("p")}
GROUP BY m.memory_key, m.namespace, m.memory_id
ORDER BY serves DESC, m.namespace, m.memory_id
LIMIT {MOST_COMPARED}"""


def _starvation(scope: Scope) -> str:
    floor = f"COALESCE(m.importance_override, {own_score('m')})"
    return f"""\
SELECT
  (SELECT CAST(COUNT(CASE WHEN {score("m")} <= {floor} + 1e-9 THEN 1 END) AS REAL) / NULLIF(COUNT(*), 0)
   FROM memories m WHERE {scope.of_memories("m")}) AS share_at_floor,
  (SELECT CAST(COUNT(DISTINCT r.packet_key) AS REAL)
   FROM reports r JOIN packets p ON p.packet_key = r.packet_key
   WHERE r.channel IN ('explicit', 'inferred') AND {scope.of_packets("p")})
  / NULLIF((SELECT COUNT(*) FROM packets p WHERE {scope.of_packets("p")}), 0) AS packets_with_feedback"""


def _clients(scope: Scope) -> str:
    return f"""\
SELECT p.namespace, p.agent_id, p.surface,
  COUNT(*) AS packets,
  COUNT(DISTINCT p.session_key) AS sessions,
  SUM(CASE WHEN EXISTS (SELECT 1 FROM reports r WHERE r.packet_key = p.packet_key
    AND r.channel IN ('explicit', 'inferred')) THEN 1 ELSE 0 END) AS reported,
  SUM(CASE WHEN EXISTS (SELECT 1 FROM reports r WHERE r.packet_key = p.packet_key
    AND r.channel IN ('packet', 'echo')) THEN 1 ELSE 0 END) AS weakly_reported,
  SUM(CASE WHEN EXISTS (SELECT 1 FROM packet_uses u WHERE u.packet_key = p.packet_key AND u.used = 1
    AND u.channel IN ('explicit', 'inferred')) THEN 1 ELSE 0 END) AS with_uses
FROM packets p
WHERE {scope.of_packets("p")}
GROUP BY p.namespace, p.agent_id, p.surface
ORDER BY packets DESC, p.namespace, p.agent_id, p.surface"""


def of_models(scope: Scope) -> str:
    """SQL: packets by the model that scored them, how many were reported on, and the memories in them that explicit
    reports spoke of and said were used."""
    return f"""\
SELECT p.model_version, COUNT(*) AS packets,
  SUM(CASE WHEN EXISTS (SELECT 1 FROM reports r WHERE r.packet_key = p.packet_key
    AND r.channel IN ('explicit', 'inferred')) THEN 1 ELSE 0 END) AS reported,
  COALESCE(SUM(u.judged), 0) AS judged, COALESCE(SUM(u.used), 0) AS used
FROM packets p LEFT JOIN (SELECT packet_key, COUNT(*) AS judged, SUM(used) AS used FROM packet_uses
  WHERE channel = 'explicit' GROUP BY packet_key) u ON u.packet_key = p.packet_key
WHERE {scope.of_packets("p")}
GROUP BY p.model_version
ORDER BY packets DESC, p.model_version"""


def _both(sqlite: str) -> tuple[str, str]:
    """PostgreSQL's REAL has four bytes; nothing else differs, as the schema keeps to what both know."""
    return sqlite, sqlite.replace(" AS REAL)", " AS DOUBLE PRECISION)")


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
