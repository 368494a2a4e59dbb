"""The request behind a packet, as the log keeps it."""

from __future__ import annotations

from google.protobuf.message import DecodeError
from memoryranker.v1 import ranker_pb2


def task_of(payload: bytes) -> str | None:
    """The task of a kept request; None where none was kept, as in Parquet, or it cannot be read."""
    try:
        return ranker_pb2.RankRequest.FromString(payload).task if payload else None
    except DecodeError:
        return None
