"""What holds of a sound store, as SQL: conditions that `check` looks for and that `repair` and `salvage` put right."""

from __future__ import annotations

from sidecar.domain import Channel, Rating
from sidecar.weights.roles import Action, Role

ORPHANS: tuple[tuple[str, str, str], ...] = (
    ("exposures", "packet_key NOT IN (SELECT packet_key FROM packets)", "belong to a packet that is not there"),
    ("reports", "packet_key NOT IN (SELECT packet_key FROM packets)", "are on a packet that is not there"),
    (
        "reports",
        "namespace != (SELECT p.namespace FROM packets p WHERE p.packet_key = reports.packet_key)",
        "stand in another namespace than their packet",
    ),
    ("report_memories", "report_key NOT IN (SELECT report_key FROM reports)", "belong to a report that is not there"),
    (
        "report_memories",
        "NOT EXISTS (SELECT 1 FROM reports r JOIN exposures e ON e.packet_key = r.packet_key WHERE r.report_key ="
        " report_memories.report_key AND (e.memory_id, e.memory_key) = (report_memories.memory_id,"
        " report_memories.memory_key))",
        "name a memory that is not in the packet",
    ),
    ("uncounted_packets", "packet_key NOT IN (SELECT packet_key FROM packets)", "name a packet that is not there"),
    ("ratings", "memory_key NOT IN (SELECT memory_key FROM memories)", "are on a memory that is not there"),
    ("pruned_uses", "memory_key NOT IN (SELECT memory_key FROM memories)", "are of a memory that is not there"),
    ("rescored", "memory_key NOT IN (SELECT memory_key FROM memories)", "are of a memory that is not there"),
    ("reembedded", "memory_key NOT IN (SELECT memory_key FROM memories)", "are of a memory that is not there"),
    ("importance_parts", "memory_key NOT IN (SELECT memory_key FROM memories)", "are of a memory that is not there"),
    ("importance_links", "memory_key NOT IN (SELECT memory_key FROM memories)", "are of a memory that is not there"),
)
"""Rows that name what is not there: table, condition, in words. In the order in which removing one leaves no other."""

UNKNOWN_WORDS: tuple[tuple[str, str], ...] = (
    ("reports", f"channel NOT IN ({', '.join(repr(each.value) for each in Channel)})"),
    ("report_memories", "word NOT IN ('used', 'unused', 'shown')"),
    ("model_roles", f"role NOT IN ({', '.join(repr(each.value) for each in Role)})"),
    ("model_roles", f"action NOT IN ({', '.join(repr(each.value) for each in Action)})"),
    ("ratings", f"rating NOT IN ({', '.join(repr(each.value) for each in Rating if each is not Rating.WITHDRAWN)})"),
)
"""Rows whose word is none of ours: table and condition."""

UNKNOWN_SESSIONS = """
    SELECT DISTINCT m.namespace, u.session_key FROM pruned_uses u JOIN memories m ON m.memory_key = u.memory_key
    WHERE (m.namespace, u.session_key) NOT IN (SELECT namespace, session_key FROM pruned_sessions)
    AND (m.namespace, u.session_key) NOT IN (SELECT namespace, session_key FROM packets)
"""
"""Sessions whose pruned uses count for nobody knows whom."""

MEMORY_COUNTS = """
    SELECT namespace, SUM(says), SUM(holds) FROM (
        SELECT namespace, memory_count AS says, 0 AS holds, 1 AS known FROM namespaces
        UNION ALL SELECT namespace, 0, COUNT(*), 0 FROM memories GROUP BY namespace
    ) GROUP BY namespace HAVING SUM(says) != SUM(holds) OR SUM(known) = 0
"""
"""Namespaces that do not hold as many memories as they say: which, and both numbers."""

RATINGS_OF = (
    "(SELECT COUNT(*) FROM ratings r WHERE r.memory_key = memories.memory_key AND r.rating = 'helpful'),"
    " (SELECT COUNT(*) FROM ratings r WHERE r.memory_key = memories.memory_key AND r.rating = 'unhelpful')"
)
"""Helpful and unhelpful marks that stand on a row of memories."""

WITHOUT_PARTS = (
    "importance_content IS NOT NULL"
    " AND memory_key NOT IN (SELECT memory_key FROM importance_parts WHERE part = 'content')"
)
"""Memories that have a score of their content, and nothing that says how it came about."""

HIGHEST_KEY = (
    "SELECT MAX(highest) FROM (SELECT MAX(memory_key) AS highest FROM memories UNION ALL"
    " SELECT MAX(memory_key) FROM exposures UNION ALL SELECT MAX(memory_key) FROM report_memories UNION ALL"
    " SELECT MAX(memory_key) FROM pruned_uses UNION ALL SELECT MAX(memory_key) FROM rescored)"
)
"""The highest memory key that was ever given out, as far as can be told."""

LAST_KEY = "SELECT MAX(seq) FROM sqlite_sequence WHERE name = 'memories'"
"""The key after which the next one follows."""
