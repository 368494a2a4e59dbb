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
    whole = None if asked.token_budget is None else asked.token_budget - asked.token_budget * asked.slots // 10
    used = 0
    packed: list[str] = []
    candidates = [each for each in memories if each["id"] not in found]
    for each in sorted(candidates, key=lambda each: (not each["pinned"], -each["relevance"], each["id"])):
        name, size = each["id"], each["token_count"]
        if len(packed) == asked.max_items - asked.slots:
            found[name] = "OUTRANKED"
        elif whole is not None and size > whole:
            found[name] = "OVERSIZED"
        elif whole is not None and used + size > whole:
            found[name] = "BUDGET"
        elif each["content"].casefold() in packed:
            found[name] = "NEAR_DUPLICATE"
        else:
            found[name] = None
            packed.append(each["content"].casefold())
            used += size
    return found


def _is_valid(memory: Mapping[str, Any], as_of: datetime | None) -> bool:
    until, start, now = memory["valid_until_time"], memory["valid_from_time"], as_of or NOW_TIME
    known = as_of is None or memory["create_time"] <= as_of
    return known and (until is None or until > now) and (start is None or start <= now)


def name_of(reason: int) -> str:
    """A reason as the model names it."""
    return ranker_pb2.LeftOutReason.Name(reason).removeprefix("LEFT_OUT_REASON_")
