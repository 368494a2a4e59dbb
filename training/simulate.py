"""Simulates agents with a known truth over any eval data set, driving a whole server over its socket.

    python -m training.simulate DATASET... [--seeds 20] [--requests 400] [--only discovery|illnesses]

Each data set is a file in the format of docs/ranking.md. An agent asks one of its tasks, gets a packet, uses what is
relevant in it (with noise), and reports as often as it is wont to. Memories arrive while agents work. Prints

- discovery: first turns of new memories in reserved slots against the logged propensities, and the same stream without
  reserved slots;
- illnesses: whether the audit calls four illnesses and a healthy ranker by their names, seed by seed.

Ends with code 1 if a figure misses its bounds. Time, dice and ids come from the seed: a run can be repeated. Each world
is a server of its own in this process; the agents know it by its API alone.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from memoryranker.client import Client

from sidecar.audit.datasets import Dataset, JudgedTask, read_dataset
from sidecar.audit.verdict import Verdict
from sidecar.config import resolve
from sidecar.domain import SECOND, Micros
from sidecar.errors import RankerError
from sidecar.lifecycle import Sidecar
from sidecar.store.meta import SALT
from sidecar.store.store import Store

NAMESPACE = "simulated"
BETWEEN: Micros = 600 * SECOND
"""Time from one request to the next."""
BATCH = 1_000
"""Memories in one write."""
TIMEOUT = 60.0
"""Seconds for one call."""
NAMED_RIGHT = 0.95
"""Share of seeds in which an illness must be called by its name: 19 of 20."""
LEAST_RATIO, MOST_RATIO = 0.85, 1.15
FEWEST_NEW = 400
"""New memories over which the ratio of discovery is judged."""


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


@dataclass(frozen=True, slots=True)
class Turn:
    """One request as it was answered: the packet served (an old one if a cache had it) and what the agent used."""

    number: int
    packet: Served
    used: tuple[str, ...]


Interference = Callable[[World, Turn], None]
Cache = dict[str, Served]


def run(
    there: World, plan: Plan, dice: random.Random, interfere: Interference | None = None, cache: Cache | None = None
) -> Iterator[Turn]:
    """Lets agents work. `interfere` is called after each turn; packets are taken from `cache` where it has the task."""
    ids = [memory.id for memory in there.data.memories]
    dice.shuffle(ids)
    first = round(plan.at_first * len(ids))
    there.write(ids[:first])
    there.waiting = ids[first:]
    each = max(1.0, plan.arriving * plan.requests / max(1, len(there.waiting)))
    per_turn = max(1, -(-len(there.waiting) // max(1, round(plan.arriving * plan.requests))))
    for number in range(plan.requests):
        there.now += BETWEEN
        if there.waiting and number % max(1, int(each)) == 0:
            there.write(there.waiting[:per_turn])
            del there.waiting[:per_turn]
        agent = dice.randrange(len(plan.report_rates))
        task = dice.choice(there.data.tasks)
        packet = cache.get(task.id) if cache is not None else None
        if packet is None:
            packet = there.rank(task, f"s{agent}-{number // plan.session_length}", f"agent-{agent}", plan)
            if cache is not None:
                cache[task.id] = packet
        chances = [
            (memory_id, plan.use if memory_id in task.relevant else plan.slip) for memory_id in packet.memory_ids
        ]
        used = tuple(memory_id for memory_id, chance in chances if dice.random() < chance)
        if dice.random() < plan.report_rates[agent]:
            there.report(packet, used, number)
        turn = Turn(number, packet, used)
        if interfere is not None:
            interfere(there, turn)
        if plan.rescore_every and (number + 1) % plan.rescore_every == 0:
            there.rescore()
        yield turn


@dataclass(frozen=True, slots=True)
class Discovery:
    """How new memories came to their first turn in a reserved slot.

    `new` arrived; `first` were drawn; `expected` is pi summed over each one's pools up to and including its first draw;
    `requests` is the mean number of requests from its arrival to it, and `expected_requests` 1/lambda. Without slots,
    of the same stream, `never_ranked` memories were in no top K; `served_without` of them were served all the same.
    """

    new: int
    first: int
    expected: float
    requests: float
    expected_requests: float
    never_ranked: int
    served_without: int
    found_with: int

    @property
    def ratio(self) -> float:
        """1 in the mean if the logged propensities are what happens."""
        return self.first / self.expected if self.expected else 0.0

    @property
    def holds(self) -> bool:
        """True if the ratio is in its bounds, and nothing outside a top K was served without slots."""
        return LEAST_RATIO <= self.ratio <= MOST_RATIO and self.served_without == 0


def discover(sets: Sequence[Dataset], seed: int, plan: Plan) -> Discovery:
    """Runs each data set with and without reserved slots while its memories arrive."""
    new = first = never = served_without = found_with = 0
    expected, waits, waited = 0.0, [], 0
    for data in sets:
        with world(data, seed) as there:
            arrived: dict[str, int] = {}
            done: dict[str, int] = {}
            start: set[str] | None = None
            for turn in run(there, plan, random.Random(seed)):
                start = set(there.written) if start is None else start
                for memory_id in there.written - start - arrived.keys():
                    arrived[memory_id] = turn.number
                drawn = turn.packet.drawn
                pool = {**there.undrawn(turn.packet), **drawn}
                expected += sum(chance for each, chance in pool.items() if each in arrived and each not in done)
                for memory_id in drawn.keys() & arrived.keys() - done.keys():
                    done[memory_id] = turn.number
            waits += [done[each] - arrived[each] + 1 for each in done]
            waited += sum(done.get(each, plan.requests - 1) - since + 1 for each, since in arrived.items())
            new, first = new + len(arrived), first + len(done)
        with world(data, seed) as there:
            ranked: set[str] = set()
            served: set[str] = set()
            for turn in run(there, replace(plan, slots=0), random.Random(seed)):
                ranked |= set(turn.packet.memory_ids) - turn.packet.drawn.keys()
                served |= set(turn.packet.memory_ids)
            outside = arrived.keys() - ranked
            never += len(outside)
            served_without += len(outside & served)
            found_with += len(outside & done.keys())
    return Discovery(
        new,
        first,
        expected,
        fmean(waits) if waits else 0.0,
        waited / expected if expected else 0.0,
        never,
        served_without,
        found_with,
    )


SERVES_FIRST = {"importance": 0.8, "lexical": 0.2}


def _serves_become_scores() -> Interference:
    """Somebody writes how often a memory was served into its importance, every few turns."""
    serves: dict[str, int] = {}

    def interfere(there: World, turn: Turn) -> None:
        for memory_id in turn.packet.memory_ids:
            serves[memory_id] = serves.get(memory_id, 0) + 1
        if turn.number % 20 == 19:
            most = max(serves.values())
            there.write(list(serves), {each: count / most for each, count in serves.items()})

    return interfere


def _one_score_for_all(there: World, turn: Turn) -> None:
    """Somebody's formula gives every memory the same."""
    if turn.number == 0:
        ids = [memory.id for memory in there.data.memories]
        there.write(ids, dict.fromkeys(ids, 0.5))


def diagnose(data: Dataset, seed: int, requests: int) -> dict[Verdict, Verdict]:
    """What the audit calls each of the four illnesses, and a healthy ranker."""
    plan = Plan(requests=requests)
    dice = random.Random(seed)
    starving = tuple(dice.uniform(0, 0.03) for _ in plan.report_rates)
    healthy = tuple(dice.uniform(0.3, 1) for _ in plan.report_rates)
    fed = replace(plan, report_rates=healthy)
    worlds: dict[Verdict, tuple[Plan, Interference | None, Cache | None]] = {
        Verdict.STARVING: (replace(plan, report_rates=starving), None, None),
        Verdict.POSITION_BIAS: (replace(fed, weights=SERVES_FIRST, slots=2), _serves_become_scores(), None),
        Verdict.FLAT_FORMULA: (fed, _one_score_for_all, None),
        Verdict.STALE_CACHE: (fed, None, {}),
        Verdict.HEALTHY: (fed, None, None),
    }
    called = {}
    for illness, (of_world, interfere, cache) in worlds.items():
        with world(data, seed) as there:
            for _ in run(there, of_world, random.Random(seed), interfere, cache):
                pass
            called[illness] = there.verdict()
    return called


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs it from the command line. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m training.simulate", description=__doc__.split("\n")[0])
    parser.add_argument("datasets", nargs="+", type=Path, metavar="DATASET")
    parser.add_argument("--seeds", type=int, default=20, help="how many worlds of each sort  [default: 20]")
    parser.add_argument("--requests", type=int, default=400, help="requests in each world  [default: 400]")
    parser.add_argument("--only", choices=("discovery", "illnesses"), help="one part alone")
    given = parser.parse_args(arguments)
    try:
        sets = [read_dataset(path) for path in given.datasets]
    except (OSError, RankerError) as error:
        print(error, file=sys.stderr)
        return 2
    holds = True
    if given.only != "illnesses":
        holds = _print_discovery(sets, given.requests)
    if given.only != "discovery":
        holds = _print_illnesses(sets, given.seeds, given.requests) and holds
    return 0 if holds else 1


def _print_discovery(sets: Sequence[Dataset], requests: int) -> bool:
    found = discover(sets, 1, Plan(requests=requests, at_first=0.3))
    print(f"discovery, over {found.new} new memories in {len(sets)} data sets of {requests} requests each")
    print(f"  first turns in a reserved slot  {found.first}")
    print(f"  sum of the logged pi            {found.expected:.1f}")
    print(f"  ratio                           {found.ratio:.3f}  (.85 to 1.15)")
    print(f"  requests to the first turn      {found.requests:.1f}, of those that had it")
    print(f"  1/lambda                        {found.expected_requests:.1f}, over all")
    print(
        f"  without slots, never in a top K {found.never_ranked}; of these were served {found.served_without}, "
        f"and with slots {found.found_with}"
    )
    if found.new < FEWEST_NEW:
        print(f"  (the bounds are for {FEWEST_NEW} new memories and more)")
    return found.holds


def _print_illnesses(sets: Sequence[Dataset], seeds: int, requests: int) -> bool:
    right = dict.fromkeys(Verdict, 0)
    for seed in range(1, seeds + 1):
        called = diagnose(sets[seed % len(sets)], seed, requests)
        for illness, name in called.items():
            right[illness] += name is illness
            if name is not illness:
                print(f"  seed {seed}: {illness.value} was called {name.value}")
    print(f"illnesses called by their name, in {seeds} seeds (1 to {seeds})")
    for illness, count in right.items():
        print(f"  {illness.value:<14} {count}")
    return all(count >= NAMED_RIGHT * seeds for count in right.values())


if __name__ == "__main__":
    sys.exit(main())
