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
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

from sidecar.audit.datasets import Dataset, read_dataset
from sidecar.audit.verdict import Verdict
from sidecar.domain import SECOND, Micros
from sidecar.errors import RankerError
from sidecar.plurals import counted
from training.simulated_world import Plan, Served, World, world

BETWEEN: Micros = 600 * SECOND
"""Time from one request to the next."""
NAMED_RIGHT = 0.95
"""Share of seeds in which an illness must be called by its name: 19 of 20."""
LEAST_RATIO, MOST_RATIO = 0.85, 1.15
FEWEST_NEW = 400
"""New memories over which the ratio of discovery is judged."""


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
    print(
        f"discovery, over {counted(found.new, 'new memory')} in {counted(len(sets), 'data set')} of "
        f"{counted(requests, 'request')} each"
    )
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
    right: Counter[Verdict] = Counter()
    for seed in range(1, seeds + 1):
        called = diagnose(sets[seed % len(sets)], seed, requests)
        for illness, name in called.items():
            right[illness] += name is illness
            if name is not illness:
                print(f"  seed {seed}: {illness.value} was called {name.value}")
    print(f"illnesses called by their name, in {counted(seeds, 'seed')} (1 to {seeds})")
    for illness, count in right.items():
        print(f"  {illness.value:<14} {count}")
    return all(count >= NAMED_RIGHT * seeds for count in right.values())


if __name__ == "__main__":
    sys.exit(main())
