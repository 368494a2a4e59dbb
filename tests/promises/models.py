"""Plain models of who is served, memory by memory, for tests to compare the service with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memoryranker.v1 import ranker_pb2

from tests.promises.frozen import NOW_TIME

Links = Mapping[str, tuple[str, float, bool]]
"""Id -> (what replaces it, "" for nothing; its age; whether it is valid)."""


def survivors(replaced_by: Links) -> set[str]:
    """Who is served, told memory by memory: valid, and nothing valid further down its chain. A chain that comes back to
    itself ends at the member learned last, of the greatest id among those."""
    found = set()
    for name, (_, _, is_valid) in replaced_by.items():
        chain, last = [name], name
        while (following := replaced_by[last][0]) in replaced_by and following != last and following not in chain:
            chain.append(following)
            last = following
        loop = chain[chain.index(following) :] if following in chain and following != last else []
        if loop:
            end = max(loop, key=lambda each: (-replaced_by[each][1], each))
            # The loop is walked from where it is entered to its end; from the end itself nothing follows.
            entered = [*chain[: chain.index(following)], *loop]
            chain = entered[: entered.index(end) + 1] if name not in loop else _around(loop, name, end)
        if is_valid and not any(replaced_by[each][2] for each in chain[1:]):
            found.add(name)
    return found


def _around(loop: list[str], start: str, end: str) -> list[str]:
    at = loop.index(start)
    turned = loop[at:] + loop[:at]
    return turned[: turned.index(end) + 1]


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request asks for, as far as packing goes; `passes` are the ids that pass its filter, and without `as_of`
    it is for now."""

    passes: frozenset[str]
    max_items: int
    slots: int
    token_budget: int | None
    min_score: float | None
    as_of: datetime | None = None


def reasons(memories: Sequence[Mapping[str, Any]], unhelpful: frozenset[str], asked: Asked) -> dict[str, str | None]:
    """Why each memory is not in the packet, None if it is; scored by relevance, and the same if the letters are."""
    served = survivors(
        {
            each["id"]: (each["superseded_by"], -each["create_time"].timestamp(), _is_valid(each, asked.as_of))
            for each in memories
        }
    )
    now = asked.as_of or NOW_TIME
    found: dict[str, str | None] = {}
    for each in memories:
        name = each["id"]
        if name not in asked.passes:
            found[name] = "FILTERED"
        elif each["suppressed"]:
            found[name] = "SUPPRESSED"
        elif name in unhelpful:
            found[name] = "RATED_UNHELPFUL"
        elif each["valid_until_time"] is not None and each["valid_until_time"] <= now:
            found[name] = "EXPIRED"
        elif not _is_valid(each, asked.as_of):
            found[name] = "NOT_YET_VALID"
        elif name not in served:
            found[name] = "SUPERSEDED"
        elif asked.min_score is not None and not each["pinned"] and each["relevance"] < asked.min_score:
            found[name] = "BELOW_MIN_SCORE"
    passed = [each for each in memories if each["id"] not in found]
    order = sorted(passed, key=lambda each: (-each["relevance"], each["id"]))
    pinned, others = ([each for each in order if each["pinned"] is pin] for pin in (True, False))
    places, budget = asked.max_items - asked.slots, asked.token_budget
    if budget is None:
        said: list[str] = []
        found |= filled(pinned, places, None, said)
        found |= filled(others, places - len(said), None, said)
        return found
    of_pinned, of_ranked = parts(
        budget - budget * asked.slots // 10,
        [each["token_count"] for each in pinned],
        sum(each["token_count"] for each in others),
    )
    kept = min(len(pinned), max((places + 1) // 2, places - len(others)))
    found |= filled(pinned, kept, of_pinned, [])
    found |= filled(others, places - kept, of_ranked, [each["content"].casefold() for each in pinned])
    return found


def parts(whole: int, pinned: Sequence[int], demand: int) -> tuple[int, int]:
    """What pinned and ranked memories may take of a budget, told from the promise: pinned ones half of it, or what the
    others cannot use; ranked ones the most that no bigger budget takes away again."""

    def left(budget: int) -> int:
        most = max(budget // 2, budget - demand)
        return budget - min(most, sum(size for size in pinned if size <= most))

    bigger = range(whole, max(whole, 2 * max(pinned, default=0)) + 1)
    return max(whole // 2, whole - demand), min(demand, *map(left, bigger))


def filled(
    order: Sequence[Mapping[str, Any]], places: int, budget: int | None, said: list[str]
) -> dict[str, str | None]:
    """Why each is not admitted, in turn, where `said` has been said; adds to it what the admitted say."""
    found: dict[str, str | None] = {}
    used = admitted = 0
    for each in order:
        name, size = each["id"], each["token_count"]
        if admitted >= places:
            found[name] = "OUTRANKED"
        elif budget is not None and size > budget:
            found[name] = "OVERSIZED"
        elif budget is not None and used + size > budget:
            found[name] = "BUDGET"
        elif each["content"].casefold() in said:
            found[name] = "NEAR_DUPLICATE"
        else:
            found[name] = None
            said.append(each["content"].casefold())
            used += size
            admitted += 1
    return found


def _is_valid(memory: Mapping[str, Any], as_of: datetime | None) -> bool:
    until, start, now = memory["valid_until_time"], memory["valid_from_time"], as_of or NOW_TIME
    known = as_of is None or memory["create_time"] <= as_of
    return known and (until is None or until > now) and (start is None or start <= now)


def name_of(reason: int) -> str:
    """A reason as the model names it."""
    return ranker_pb2.LeftOutReason.Name(reason).removeprefix("LEFT_OUT_REASON_")
