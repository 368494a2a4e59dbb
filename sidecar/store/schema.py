"""The tables of the store and the numbered migrations that lead to them.

Table shapes are plain SQL that PostgreSQL can take over: times are whole microseconds since 1970 UTC, truth values are
0 or 1, lists and maps are JSON, vectors and matrices are little-endian blobs. Columns that hold much stand last, so
that a scan of the others does not read them. No table of the log holds the text of a memory.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Sequence

from sidecar.errors import SchemaTooNewError, StoreDamagedError
from sidecar.store.schema_importance import IMPORTANCE_LINKS, IMPORTANCE_PARTS

APPLICATION_ID = 0x4D52616E
"""Marks the database file as ours ("MRan" in its header)."""

Migration = Sequence[str]

_FIRST: Migration = (
    """
    CREATE TABLE meta (
        key TEXT PRIMARY KEY,
        value BLOB NOT NULL
    )
    """,
    """
    CREATE TABLE namespaces (
        namespace TEXT PRIMARY KEY,
        score_version INTEGER NOT NULL,
        memory_count INTEGER NOT NULL,
        update_time INTEGER NOT NULL
    )
    """,
    # A namespace that was purged and is written again must not repeat a score version, or a cached packet of the old
    # one would look fresh. Only a keyed hash of its name stays.
    """
    CREATE TABLE purged_namespaces (
        namespace_hash BLOB PRIMARY KEY,
        score_version INTEGER NOT NULL
    )
    """,
    # AUTOINCREMENT: a key is never used again, so a memory that is deleted and written again inherits nothing.
    """
    CREATE TABLE memories (
        memory_key INTEGER PRIMARY KEY AUTOINCREMENT,
        namespace TEXT NOT NULL,
        memory_id TEXT NOT NULL,
        kind TEXT NOT NULL,
        create_time INTEGER NOT NULL,
        update_time INTEGER NOT NULL,
        valid_from_time INTEGER,
        valid_until_time INTEGER,
        superseded_by TEXT NOT NULL,
        source_thread TEXT NOT NULL,
        source_sequence INTEGER,
        subject TEXT NOT NULL,
        relevance REAL,
        importance_override REAL,
        emotion REAL,
        pinned INTEGER NOT NULL,
        suppressed INTEGER NOT NULL,
        token_count INTEGER,
        tokens INTEGER NOT NULL,
        importance_content REAL,
        importance_use REAL,
        helpful INTEGER NOT NULL,
        unhelpful INTEGER NOT NULL,
        tags TEXT NOT NULL,
        metadata TEXT NOT NULL,
        content TEXT NOT NULL,
        embedding BLOB,
        UNIQUE (namespace, memory_id)
    )
    """,
    """
    CREATE TABLE ratings (
        memory_key INTEGER NOT NULL,
        rater TEXT NOT NULL,
        rating TEXT NOT NULL,
        reason TEXT NOT NULL,
        time INTEGER NOT NULL,
        PRIMARY KEY (memory_key, rater)
    )
    """,
    # One row a Rank, with the matrices of all its memories: 44 rows of numbers would cost more than the ranking.
    """
    CREATE TABLE packets (
        packet_key INTEGER PRIMARY KEY,
        packet_id TEXT NOT NULL UNIQUE,
        namespace TEXT NOT NULL,
        session_key TEXT NOT NULL,
        session_id TEXT NOT NULL,
        agent_id TEXT NOT NULL,
        surface TEXT NOT NULL,
        request_id TEXT NOT NULL,
        model_version TEXT NOT NULL,
        feature_schema_hash TEXT NOT NULL,
        exploration_policy TEXT NOT NULL,
        score_version INTEGER NOT NULL,
        as_of_time INTEGER NOT NULL,
        create_time INTEGER NOT NULL,
        valid_until_time INTEGER,
        empty_reason TEXT,
        reserve_pool_size INTEGER NOT NULL,
        pool_size_unreported INTEGER NOT NULL,
        pool_size_reported INTEGER NOT NULL,
        reserved_slots INTEGER NOT NULL,
        token_budget INTEGER,
        ranked_budget INTEGER,
        slot_budget INTEGER,
        left_out TEXT NOT NULL,
        degradations TEXT NOT NULL,
        undrawn_ids TEXT NOT NULL,
        request BLOB NOT NULL,
        features BLOB NOT NULL,
        contributions BLOB NOT NULL,
        raw BLOB NOT NULL,
        undrawn_keys BLOB NOT NULL,
        undrawn_tokens BLOB NOT NULL,
        undrawn_scores BLOB NOT NULL,
        undrawn_task_fits BLOB NOT NULL,
        undrawn_propensities BLOB NOT NULL,
        undrawn_features BLOB NOT NULL,
        undrawn_raw BLOB NOT NULL
    )
    """,
    "CREATE INDEX packets_by_session ON packets (namespace, session_key)",
    # No index by memory: it would touch a page for each memory of each packet, and only audits would read it.
    """
    CREATE TABLE exposures (
        packet_key INTEGER NOT NULL,
        place INTEGER NOT NULL,
        memory_key INTEGER NOT NULL,
        memory_id TEXT NOT NULL,
        segment TEXT NOT NULL,
        score REAL NOT NULL,
        task_fit REAL NOT NULL,
        inclusion_propensity REAL NOT NULL,
        position_probability REAL NOT NULL,
        tokens INTEGER NOT NULL,
        swapped INTEGER NOT NULL,
        PRIMARY KEY (packet_key, place)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE reports (
        report_key INTEGER PRIMARY KEY,
        report_id TEXT NOT NULL UNIQUE,
        packet_key INTEGER NOT NULL,
        namespace TEXT NOT NULL,
        channel TEXT NOT NULL,
        complete INTEGER NOT NULL,
        shown_all INTEGER NOT NULL,
        outcome REAL NOT NULL,
        confidence REAL NOT NULL,
        sequence INTEGER,
        report_time INTEGER,
        receive_time INTEGER NOT NULL,
        late INTEGER NOT NULL,
        agent_id TEXT NOT NULL,
        request_id TEXT NOT NULL
    )
    """,
    "CREATE INDEX reports_by_packet ON reports (packet_key)",
    "CREATE INDEX reports_by_namespace ON reports (namespace, receive_time)",
    """
    CREATE TABLE report_memories (
        report_key INTEGER NOT NULL,
        word TEXT NOT NULL,
        memory_id TEXT NOT NULL,
        memory_key INTEGER NOT NULL,
        PRIMARY KEY (report_key, word, memory_id)
    ) WITHOUT ROWID
    """,
    # Derived from here on: can be rebuilt from packets, exposures and reports. Amounts are whole millionths, so that
    # sums do not depend on the order in which reports arrived.
    """
    CREATE TABLE packet_uses (
        packet_key INTEGER NOT NULL,
        memory_id TEXT NOT NULL,
        channel TEXT NOT NULL,
        memory_key INTEGER NOT NULL,
        used INTEGER NOT NULL,
        confidence REAL NOT NULL,
        receive_time INTEGER NOT NULL,
        used_millionths INTEGER NOT NULL,
        seen_millionths INTEGER NOT NULL,
        last_use_time INTEGER,
        PRIMARY KEY (packet_key, memory_id, channel)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE session_uses (
        memory_key INTEGER NOT NULL,
        session_key TEXT NOT NULL,
        agent_id TEXT NOT NULL,
        used_millionths INTEGER NOT NULL,
        seen_millionths INTEGER NOT NULL,
        last_use_time INTEGER,
        PRIMARY KEY (memory_key, session_key)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX session_uses_by_time ON session_uses (memory_key, last_use_time)",
    """
    CREATE TABLE agent_uses (
        memory_key INTEGER NOT NULL,
        agent_id TEXT NOT NULL,
        used_millionths INTEGER NOT NULL,
        seen_millionths INTEGER NOT NULL,
        use_sessions INTEGER NOT NULL,
        reported_sessions INTEGER NOT NULL,
        PRIMARY KEY (memory_key, agent_id)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE use_priors (
        kind TEXT PRIMARY KEY,
        mu REAL NOT NULL,
        kappa REAL NOT NULL,
        run TEXT NOT NULL
    )
    """,
    """
    CREATE TABLE requests (
        namespace TEXT NOT NULL,
        method TEXT NOT NULL,
        request_id TEXT NOT NULL,
        payload_hash BLOB NOT NULL,
        create_time INTEGER NOT NULL,
        response BLOB NOT NULL,
        PRIMARY KEY (namespace, method, request_id)
    )
    """,
    "CREATE INDEX requests_by_time ON requests (create_time)",
    """
    CREATE TABLE ingested_chunks (
        namespace TEXT NOT NULL,
        stream_id TEXT NOT NULL,
        sequence INTEGER NOT NULL,
        digest BLOB NOT NULL,
        create_time INTEGER NOT NULL,
        created_count INTEGER NOT NULL,
        updated_count INTEGER NOT NULL,
        unchanged_count INTEGER NOT NULL,
        score_version INTEGER NOT NULL,
        PRIMARY KEY (namespace, stream_id, sequence)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX ingested_chunks_by_time ON ingested_chunks (create_time)",
)

# Runs that moved the use parts of importances: what each memory had before and after, and from which score version on a
# namespace shows it. moved and restored are whole runs; times are of the server.
_RESCORES: Migration = (
    """
    CREATE TABLE rescore_runs (
        run_number INTEGER PRIMARY KEY AUTOINCREMENT,
        run_id TEXT NOT NULL UNIQUE,
        namespace TEXT NOT NULL,
        create_time INTEGER NOT NULL,
        memory_count INTEGER NOT NULL,
        moved_count INTEGER NOT NULL,
        restore_time INTEGER,
        priors_before TEXT NOT NULL,
        precision_before TEXT NOT NULL
    )
    """,
    """
    CREATE TABLE rescore_versions (
        namespace TEXT NOT NULL,
        score_version INTEGER NOT NULL,
        time INTEGER NOT NULL,
        PRIMARY KEY (namespace, score_version)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE rescored (
        memory_key INTEGER NOT NULL,
        run_number INTEGER NOT NULL,
        before_use REAL,
        after_use REAL,
        PRIMARY KEY (memory_key, run_number)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX rescored_by_run ON rescored (run_number)",
)

# What packets that were pruned had said of use, so that no score moves when they go.
_PRUNED: Migration = (
    """
    CREATE TABLE pruned_sessions (
        namespace TEXT NOT NULL,
        session_key TEXT NOT NULL,
        agent_id TEXT NOT NULL,
        PRIMARY KEY (namespace, session_key)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE pruned_uses (
        memory_key INTEGER NOT NULL,
        session_key TEXT NOT NULL,
        used_millionths INTEGER NOT NULL,
        seen_millionths INTEGER NOT NULL,
        last_use_time INTEGER,
        PRIMARY KEY (memory_key, session_key)
    ) WITHOUT ROWID
    """,
)

# Vectors of the next embedder, until there is one for every memory. NULL for an embedder that gives none.
_REEMBEDDED: Migration = (
    """
    CREATE TABLE reembedded (
        memory_key INTEGER PRIMARY KEY,
        embedding BLOB
    )
    """,
)

# The kind of each served memory, by place, then of each undrawn one: half-lives are fitted by kind, and the memory may
# be gone or changed by then. Empty in packets from before.
_KINDS: Migration = ("ALTER TABLE packets ADD COLUMN kinds TEXT NOT NULL DEFAULT '[]'",)

# Models with their files, and who had which role, by events that are only added. What a shadow makes of a packet's
# items and undrawn pool members stands beside what served: scores of both, contributions of the items.
_MODELS: Migration = (
    """
    CREATE TABLE models (
        model_number INTEGER PRIMARY KEY AUTOINCREMENT,
        version TEXT NOT NULL UNIQUE,
        form TEXT NOT NULL,
        create_time INTEGER NOT NULL,
        load_time INTEGER NOT NULL,
        base_version TEXT NOT NULL,
        preview INTEGER NOT NULL,
        gate TEXT NOT NULL,
        archive BLOB NOT NULL
    )
    """,
    """
    CREATE TABLE model_roles (
        event_number INTEGER PRIMARY KEY AUTOINCREMENT,
        time INTEGER NOT NULL,
        role TEXT NOT NULL,
        version TEXT NOT NULL,
        action TEXT NOT NULL,
        share REAL NOT NULL,
        reason TEXT NOT NULL
    )
    """,
    "ALTER TABLE packets ADD COLUMN shadow_version TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE packets ADD COLUMN shadow_scores BLOB NOT NULL DEFAULT x''",
    "ALTER TABLE packets ADD COLUMN shadow_contributions BLOB NOT NULL DEFAULT x''",
)

# Files beside the database that hold the indexes of namespaces, '' while the first is being made; and the keys of the
# memories that each change since has touched (little-endian int64), appended, so that a change costs one page.
_INDEX_FILES: Migration = (
    """
    CREATE TABLE index_files (
        namespace TEXT PRIMARY KEY,
        file TEXT NOT NULL,
        score_version INTEGER NOT NULL
    )
    """,
    """
    CREATE TABLE changed_memories (
        namespace TEXT NOT NULL,
        score_version INTEGER NOT NULL,
        memory_keys BLOB NOT NULL,
        PRIMARY KEY (namespace, score_version)
    ) WITHOUT ROWID
    """,
)

# The last use of a memory by agent, so that a report need not keep an index of all uses by time.
_LAST_USES: Migration = (
    "ALTER TABLE agent_uses ADD COLUMN last_use_time INTEGER",
    """
    UPDATE agent_uses SET last_use_time = (
        SELECT MAX(s.last_use_time) FROM session_uses s
        WHERE s.memory_key = agent_uses.memory_key AND s.agent_id = agent_uses.agent_id
    )
    """,
    "DROP INDEX session_uses_by_time",
)

# What the memories of a packet measure in the ways of features that did not score them (names as feature:variant), so
# that presets of those ways can be evaluated on it. Nothing in packets from before.
_OTHER_WAYS: Migration = (
    "ALTER TABLE packets ADD COLUMN other_way_names TEXT NOT NULL DEFAULT '[]'",
    "ALTER TABLE packets ADD COLUMN other_ways BLOB NOT NULL DEFAULT x''",
)

# The last memory that a namespace had been given when a packet was ranked: what came later was not known to it,
# whatever times it bears. Unknown of packets from before, and of those from another store.
_NEWEST: Migration = ("ALTER TABLE packets ADD COLUMN newest_memory_key INTEGER",)

# Packets with reports that are yet to be counted: packet_uses, session_uses and agent_uses follow from all others. They
# are counted a moment later, many at once, or when somebody asks.
_UNCOUNTED: Migration = ("CREATE TABLE uncounted_packets (packet_key INTEGER PRIMARY KEY)",)

MIGRATIONS: Sequence[Migration] = (
    (*_FIRST, *_RESCORES, *_PRUNED, *_REEMBEDDED),
    _KINDS,
    _MODELS,
    _INDEX_FILES,
    _LAST_USES,
    IMPORTANCE_PARTS,
    IMPORTANCE_LINKS,
    _OTHER_WAYS,
    _NEWEST,
    _UNCOUNTED,
)
"""The n-th leads from schema version n - 1 to n. Never changed once released, only added to."""


def migrate(connection: sqlite3.Connection, migrations: Sequence[Migration] = MIGRATIONS) -> int:
    """Brings the database to the newest schema, a transaction a step, and returns its version.

    A process that is killed in between leaves a complete older version, from which the next start goes on.

    Raises SchemaTooNewError if a newer program wrote it, StoreDamagedError if it is not a store of ours.
    """
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    application = int(connection.execute("PRAGMA application_id").fetchone()[0])
    has_tables = connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0] > 0
    if application != APPLICATION_ID and (has_tables or version):
        raise StoreDamagedError(
            f"memories.db is a database of another program (application id {application:#x}, not"
            f" {APPLICATION_ID:#x}); name another folder, or move the file away"
        )
    if version > len(migrations):
        raise SchemaTooNewError(
            f"the store has schema version {version}, this program knows versions up to {len(migrations)};"
            " run the newer memory-ranker, or restore a backup made before the upgrade"
        )
    for number, statements in enumerate(migrations[version:], start=version + 1):
        connection.execute("BEGIN IMMEDIATE")
        try:
            for statement in statements:
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {number}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
    return len(migrations)


def declarations(version: int) -> dict[str, tuple[str, str]]:
    """The tables and indexes of a schema version, by name: their table, and how they are declared."""
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as empty:
        migrate(empty, MIGRATIONS[:version])
        return declared(empty)


def declared(connection: sqlite3.Connection) -> dict[str, tuple[str, str]]:
    """The same, as a database has them."""
    rows = connection.execute("SELECT name, tbl_name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    return {name: (table, sql) for name, table, sql in rows}
