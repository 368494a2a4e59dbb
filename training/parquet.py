"""Packets and reports as Parquet, for an ML engineer's own tools and for `train`. Needs pyarrow, of the extra `train`.

One table: `type` is packet or report, and each row has the columns of its own kind, by the names of docs/import.md. The
request behind a packet, which holds the task's text, is not in it.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sidecar.domain import Packet
from sidecar.store.log import LoggedReport, LogRow
from sidecar.store.log_rows import read_object, write_object
from training.sources import UnreadableLogError, measured

AT_ONCE = 2_000
"""Rows in one group."""
_TIME = pa.timestamp("us", tz="UTC")
_SCORED = [
    ("memory_id", pa.string()),
    ("key", pa.int64()),
    ("kind", pa.string()),
    ("score", pa.float64()),
    ("task_fit", pa.float64()),
    ("features", pa.list_(pa.float64())),
    ("raw", pa.list_(pa.float64())),
    ("tokens", pa.int64()),
    ("inclusion_propensity", pa.float64()),
]
_ITEM = [
    *_SCORED,
    ("segment", pa.string()),
    ("contributions", pa.list_(pa.float64())),
    ("position_probability", pa.float64()),
    ("swapped", pa.bool_()),
]
_SHADOW = pa.struct(
    [
        ("version", pa.string()),
        ("items", pa.list_(pa.struct([("score", pa.float64()), ("contributions", pa.list_(pa.float64()))]))),
        ("undrawn_scores", pa.list_(pa.float64())),
    ]
)
_OTHER_WAY = pa.struct([("way", pa.string()), ("items", pa.list_(pa.float64())), ("undrawn", pa.list_(pa.float64()))])
SCHEMA = pa.schema(
    [
        ("type", pa.string()),
        ("namespace", pa.string()),
        ("packet_id", pa.string()),
        *((name, _TIME) for name in ("create_time", "as_of_time", "valid_until_time")),
        *((name, pa.string()) for name in ("agent_id", "session_id", "surface", "request_id", "model_version")),
        *((name, pa.string()) for name in ("feature_schema_hash", "exploration_policy", "empty_reason")),
        *((name, pa.int64()) for name in ("token_budget", "ranked_budget", "slot_budget", "score_version")),
        *((name, pa.int64()) for name in ("reserved_slots", "reserve_pool_size")),
        *((name, pa.int64()) for name in ("pool_size_unreported", "pool_size_reported")),
        ("items", pa.list_(pa.struct(_ITEM))),
        ("undrawn", pa.list_(pa.struct(_SCORED))),
        ("shadow", _SHADOW),
        ("other_ways", pa.list_(_OTHER_WAY)),
        ("report_id", pa.string()),
        ("channel", pa.string()),
        *((name, pa.list_(pa.string())) for name in ("used_memory_ids", "unused_memory_ids", "shown_memory_ids")),
        *((name, pa.bool_()) for name in ("complete", "late")),
        *((name, pa.float64()) for name in ("outcome", "confidence")),
        ("sequence", pa.int64()),
        *((name, _TIME) for name in ("report_time", "receive_time")),
    ]
)
_TIMES = tuple(field.name for field in SCHEMA if field.type == _TIME)


def write_parquet(path: Path, rows: Iterable[LogRow]) -> int:
    """Writes the packets and reports among the rows, and returns how many. A report stands in its packet's namespace
    and after it."""
    count = 0
    namespaces: dict[str, str] = {}
    with pq.ParquetWriter(path, SCHEMA, compression="zstd") as writer:
        found: list[dict[str, Any]] = []
        for row in rows:
            if isinstance(row, Packet):
                namespaces[row.packet_id] = row.namespace
                namespace = row.namespace
            elif isinstance(row, LoggedReport) and row.packet_id in namespaces:
                namespace = namespaces[row.packet_id]
            else:
                continue
            found.append(_with_times(_without_keys(write_object(namespace, row)), datetime.datetime.fromisoformat))
            count += 1
            if len(found) == AT_ONCE:
                writer.write_table(pa.Table.from_pylist(found, SCHEMA))
                found = []
        writer.write_table(pa.Table.from_pylist(found, SCHEMA))
    return count


def read_parquet(path: Path, progress: Callable[[int, int], None] = lambda done, total: None) -> Iterator[LogRow]:
    """The rows in their order. Raises UnreadableLogError."""
    try:
        with pq.ParquetFile(path) as file:
            total, done = file.metadata.num_rows, 0
            for batch in file.iter_batches(AT_ONCE):
                for given in batch.to_pylist():
                    done += 1
                    try:
                        row = measured(read_object(_with_times(_set(given), lambda time: time.isoformat()))[1])
                    except ValueError as error:
                        raise UnreadableLogError(f"{path}, row {done}: {error}; write it again") from error
                    yield row
                progress(done, total)
    except pa.ArrowException as error:
        raise UnreadableLogError(f"{path} is no Parquet of a log: {error}; write it with `export-log`") from error


def _without_keys(given: dict[str, Any]) -> dict[str, Any]:
    """A store's own keys mean nothing outside it."""
    for name in ("items", "undrawn"):
        for each in given.get(name, ()):
            if each.get("key", 0) > 0:
                del each["key"]
    return given


def _with_times(given: dict[str, Any], convert: Callable[[Any], Any]) -> dict[str, Any]:
    return {name: convert(value) if name in _TIMES else value for name, value in given.items()}


def _set(given: dict[str, Any]) -> dict[str, Any]:
    """Without what is unset, in the objects of lists too."""
    found = {name: value for name, value in given.items() if value is not None}
    for name in ("items", "undrawn"):
        if name in found:
            found[name] = [{key: value for key, value in each.items() if value is not None} for each in found[name]]
    return found
