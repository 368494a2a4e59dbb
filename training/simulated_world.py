"""A world that agents of a simulation work in: a whole server with one data set's memories, known by its API alone."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memoryranker.client import Client

from sidecar.audit.datasets import Dataset, JudgedTask
from sidecar.audit.verdict import Verdict
from sidecar.config import resolve
from sidecar.domain import Micros
from sidecar.lifecycle import Sidecar
from sidecar.store.meta import SALT
from sidecar.store.store import Store

NAMESPACE = "simulated"
BATCH = 1_000
"""Memories in one write."""
TIMEOUT = 60.0
"""Seconds for one call."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a simulated world is like.

    `report_rates` are by agent: the share of its packets that it reports on. Of the relevant memories in a packet an
    agent uses each with `use`, of the others with `slip`. `at_first` of the memories are there from the start; the
    others arrive evenly over the first `arriving` of the requests.
    """

    requests: int = 400
    report_rates: tuple[float, ...] = (0.9, 0.7, 0.4)
    use: float = 0.9
    slip: float = 0.02
    at_first: float = 1.0
    arriving: float = 0.9
    max_items: int = 10
    slots: int | None = None
    session_length: int = 2
    rescore_every: int = 100
    weights: Mapping[str, float] | None = None


@dataclass(frozen=True, slots=True)
class Served:
    """A packet as it was answered: ids of its memories by place, and with what chance each drawn one was drawn."""

    packet_id: str
    memory_ids: tuple[str, ...]
    drawn: Mapping[str, float]


@dataclass(slots=True)
class World:
    """A running server with a client of it, one data set's memories, and a clock that stands unless it is moved."""

    client: Client
    data: Dataset
    now: Micros
    waiting: list[str] = field(default_factory=list)
    written: set[str] = field(default_factory=set)

    def write(self, ids: Sequence[str], importances: Mapping[str, float] | None = None) -> None:
        """Stores memories, those that are new as of this moment, with somebody's word on their importance where there
        is one. RuntimeError if one is refused."""
        by_id = {memory.id: memory for memory in self.data.memories}
        memories = [
            {
                "id": each,
                "content": by_id[each].content,
                "kind": by_id[each].kind,
                "source_thread": by_id[each].source_thread,
                "source_sequence": by_id[each].source_sequence,
                "importance_override": (importances or {}).get(each),
            }
            for each in ids
        ]
        for start in range(0, len(memories), BATCH):
            for result in self.client.upsert(NAMESPACE, memories[start : start + BATCH]).results:
                if result.status.code:
                    raise RuntimeError(f"memory {result.memory_id} was refused: {result.status.message}")
        self.written.update(ids)

    def rank(self, task: JudgedTask, session: str, agent: str, plan: Plan) -> Served:
        """Has a packet served, and logged."""
        packet = self.client.rank(
            NAMESPACE,
            task.text,
            session_id=session,
            agent_id=agent,
            surface="simulated",
            max_items=plan.max_items,
            reserved_slots=plan.slots,
            weights=plan.weights,
            explain="none",
        )
        return Served(
            packet.packet_id,
            tuple(item.memory.id for item in packet.items),
            {
                item.memory.id: item.inclusion_propensity
                for item in packet.items
                if _word(item, "segment") == "RESERVED"
            },
        )

    def undrawn(self, packet: Served) -> dict[str, float]:
        """With what chance each other member of a packet's reserve pool would have been drawn."""
        logged = self.client.get_packet(NAMESPACE, packet.packet_id)
        return {each.memory_id: each.inclusion_propensity for each in logged.undrawn}

    def report(self, packet: Served, used: Sequence[str], number: int) -> None:
        """Reports the uses of a packet, completely. Two turns on one packet are two reports."""
        self.client.report_use(packet.packet_id, used, sequence=number)

    def rescore(self) -> None:
        """Moves importances by what was used."""
        self.client.rescore(apply=True)

    def verdict(self) -> Verdict:
        """What the audit says of the whole log."""
        return Verdict[_word(self.client.audit(NAMESPACE), "verdict")]


def _word(message: Any, name: str) -> str:
    """The value of an enum field by its name in the API, without its prefix."""
    values = message.DESCRIPTOR.fields_by_name[name].enum_type.values_by_number
    prefix = values[0].name.removesuffix("UNSPECIFIED")
    return str(values[getattr(message, name)].name).removeprefix(prefix)


@contextmanager
def world(data: Dataset, seed: int) -> Iterator[World]:
    """A whole server on a socket of its own, with a fresh store, and a client of it."""
    # A socket's path may have about a hundred bytes.
    with tempfile.TemporaryDirectory(prefix="sim-") as name:
        folder = Path(name)
        with Store.open(folder / "data") as store:
            store.set_meta({SALT: seed.to_bytes(32, "big")})
        flags = {"listen": f"unix:{folder}/socket", "data": folder / "data", "embedder": "none"}
        # Importances are worked out in the background: a world that is run again would differ by when.
        flags["importance_scorer_enabled"] = "false"
        settings = resolve(flags, {"HOME": name}).settings
        numbers = itertools.count()
        there: World | None = None

        def clock() -> Micros:
            return data.as_of_time if there is None else there.now

        with (
            Sidecar(settings, clock=clock, new_packet_id=lambda: f"{seed}-{next(numbers)}") as sidecar,
            Client(sidecar.listen, timeout=TIMEOUT) as client,
        ):
            there = World(client, data, data.as_of_time)
            yield there
