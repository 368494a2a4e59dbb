"""Reads a batch of memories: each on its own, so that a bad one is refused alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memoryranker.v1 import memory_pb2, types_pb2

from sidecar.domain import Memory
from sidecar.errors import InvalidRequestError, Violations
from sidecar.rpc.incoming_memories import read_memory
from sidecar.rpc.outgoing import write_refusal
from sidecar.rpc.status import ITEM_BYTES, status_of
from sidecar.rpc.validation import shown
from sidecar.store.memories import window_violation

MAX_BATCH = 1_000


@dataclass(frozen=True, slots=True)
class Batch:
    """`patches` are the good memories in their order, `places` where each stood, and `refused` has the others by
    where they stood."""

    patches: list[tuple[str, dict[str, Any]]]
    places: list[int]
    refused: dict[int, memory_pb2.WriteResult]


def read_batch(messages: Sequence[types_pb2.Memory], dimension: int) -> Batch:
    """Reads memories that are written as a whole. An id that stands twice is refused the second time."""
    batch = Batch([], [], {})
    first: dict[str, int] = {}
    for i, message in enumerate(messages):
        wrong = Violations()
        fields = read_memory(wrong, f"memories[{i}]", message, dimension)
        if message.id in first:
            words = f"is {shown(message.id)}, as is memories[{first[message.id]}].id; send each id once"
            wrong.add(f"memories[{i}].id", words)
        if wrong.found:
            batch.refused[i] = write_refusal(message.id, status_of(InvalidRequestError(wrong.found), ITEM_BYTES))
        else:
            first[message.id] = i
            batch.places.append(i)
            batch.patches.append((message.id, fields))
    return batch


def check_windows(batch: Batch, old: Mapping[str, Memory]) -> Batch:
    """The batch without patches that leave a memory, as it stands in the store, valid until before it is valid."""
    checked = Batch([], [], dict(batch.refused))
    for place, (memory_id, fields) in zip(batch.places, batch.patches, strict=True):
        wrong = memory_id in old and window_violation(f"memories[{place}]", old[memory_id], fields)
        if wrong:
            checked.refused[place] = write_refusal(memory_id, status_of(InvalidRequestError([wrong]), ITEM_BYTES))
        else:
            checked.places.append(place)
            checked.patches.append((memory_id, fields))
    return checked
