"""The migrations that importances need; see `sidecar.store.schema`."""

from __future__ import annotations

# How each part of an importance came about: its score stands with the memory. A memory without a content part is yet
# to be scored; the index finds those.
IMPORTANCE_PARTS = (
    """
    CREATE TABLE importance_parts (
        memory_key INTEGER NOT NULL,
        part TEXT NOT NULL,
        confidence REAL NOT NULL,
        time INTEGER NOT NULL,
        factors TEXT NOT NULL,
        lines TEXT NOT NULL,
        PRIMARY KEY (memory_key, part)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX memories_unscored ON memories (namespace) WHERE importance_content IS NULL",
    "ALTER TABLE rescored ADD COLUMN before_part TEXT",
)

# Which memories each content part follows from beside its own, by id, so that one that is not there yet can be named:
# what changes one of them has the part made anew. And when memories begin and cease to be valid, which does, too.
IMPORTANCE_LINKS = (
    """
    CREATE TABLE importance_links (
        memory_key INTEGER NOT NULL,
        place INTEGER NOT NULL,
        namespace TEXT NOT NULL,
        other_id TEXT NOT NULL,
        PRIMARY KEY (memory_key, place)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX importance_links_by_other ON importance_links (namespace, other_id)",
    "CREATE INDEX memories_by_start ON memories (valid_from_time) WHERE valid_from_time IS NOT NULL",
    "CREATE INDEX memories_by_end ON memories (valid_until_time) WHERE valid_until_time IS NOT NULL",
)
