"""Tells a starved ranker from a broken one: numbers of the log become figures, findings in words, one verdict. Pure.

The order is that in which to look: starving, position bias, flat formula, stale cache, healthy.
With few packets none of them is called.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean, stdev

from sidecar.plurals import counted
from sidecar.store.audit import AuditNumbers, ClientNumbers, ModelNumbers, ServedMemory
from sidecar.store.audit_sql import MOST_COMPARED, MOST_SERVED

FEW_PACKETS = 20
"""With fewer packets there is nothing to tell."""
STARVED = 0.05
"""Share of packets with a report below which a ranker starves."""
THIN = 0.2
"""Share of packets with a report below which training refuses."""
TOP_SHARE = 0.3
"""Share of all serves from which the most served memories are said to dominate."""
TOP_EXCESS = 3.0
"""And how many times their number's share of the served memories that must be."""
SELDOM_USED = 0.75
"""They are seldom used if their use rate is below this share of the others'."""
FEWEST_JUDGED = 30
"""Judged serves on either side before use rates are compared."""
FEWEST_REPORTED = 10
"""Reported memories before scores are called flat."""
UNMOVED = 0.95
"""Share of the reported memories whose score stands where it would without use, from which scores are flat."""
FEWEST_LATE = 10
STALE = 0.2
"""Share of the reports some time after a rescore that are about packets from before it."""
BUSY = 0.8
"""Load of the reserve from which to warn; at 1 its queue grows without end."""
MOST_TIMES = 100
"""A load beyond it is told in words: with hardly a report it has no bounds."""
SURE = 4.0
"""Standard errors from which the logged propensities do not fit the draws."""
ALIVE = 0.01
"""Share of its packets that a client must report on, or name uses in, to count as alive."""


class Verdict(StrEnum):
    """What an audit comes to, in the order in which to look; the last stands for all where there are few packets."""

    STARVING = "starving"
    POSITION_BIAS = "position_bias"
    FLAT_FORMULA = "flat_formula"
    STALE_CACHE = "stale_cache"
    HEALTHY = "healthy"
    TOO_LITTLE = "too_little"


@dataclass(frozen=True, slots=True)
class Figure:
    """One number; `about` is a memory, an agent, a surface or a namespace, "" for the whole."""

    name: str
    value: float
    about: str = ""


@dataclass(frozen=True, slots=True)
class Audit:
    """A verdict, the findings behind it and beside it (most urgent first), and the figures."""

    verdict: Verdict
    findings: tuple[str, ...]
    figures: tuple[Figure, ...]
    warnings: int
    """Findings beside the verdict."""


def judge(numbers: AuditNumbers, min_reported_sessions: int) -> Audit:
    """Judges the numbers."""
    figures = [*_whole(numbers), *_reserve_figures(numbers, min_reported_sessions)]
    value = {figure.name: figure.value for figure in figures}
    figures += [*_by(numbers.clients), *_models(numbers.models), *_memories(numbers.served)]
    tests: tuple[tuple[Verdict, Callable[[AuditNumbers, dict[str, float]], str]], ...] = (
        (Verdict.STARVING, _starving),
        (Verdict.POSITION_BIAS, _position_bias),
        (Verdict.FLAT_FORMULA, _flat_formula),
        (Verdict.STALE_CACHE, _stale_cache),
    )
    verdict, findings = Verdict.HEALTHY, []
    if numbers.packets < FEW_PACKETS:
        verdict = Verdict.TOO_LITTLE
        findings.append(f"too little to tell: {counted(numbers.packets, 'packet')}; look again from {FEW_PACKETS} on")
    else:
        for name, test in tests:
            if words := test(numbers, value):
                verdict = name if verdict is Verdict.HEALTHY else verdict
                findings.append(words)
                if name is Verdict.STARVING:
                    break  # what else one sees is for want of reports
        if verdict is Verdict.HEALTHY:
            findings.append(
                f"healthy: {_percent(value['packets_with_feedback'])} of {numbers.packets:,} packets were reported on, "
                f"and scores follow what was used"
            )
    own = len(findings)
    findings += _warnings(numbers, value)
    return Audit(verdict, tuple(findings), tuple(figures), len(findings) - own)


def gini(counts: Sequence[int]) -> float:
    """How unevenly serves are spread, in [0, 1): 0 if all memories have as many, near 1 if one has all."""
    total = sum(counts)
    if not total:
        return 0.0
    ordered = sorted(counts)
    return sum((2 * i - len(ordered) - 1) * count for i, count in enumerate(ordered, 1)) / (len(ordered) * total)


def _whole(numbers: AuditNumbers) -> list[Figure]:
    serves = [memory.serves for memory in numbers.served]
    # Memories that were never served have their part in how uneven it is.
    everyone = serves + [0] * max(numbers.memory_count - len(serves), 0)
    total = sum(serves)
    top = _top(numbers)
    return [
        Figure("memories", numbers.memory_count),
        Figure("packets", numbers.packets),
        Figure("sessions", numbers.sessions),
        Figure("reports", numbers.reports),
        Figure("used_memories", numbers.used_memories),
        Figure("share_at_floor", _share(numbers.memory_count - numbers.lifted, numbers.memory_count)),
        Figure("memories_at_floor", numbers.memory_count - numbers.lifted),
        Figure("packets_with_feedback", _share(numbers.reported_packets, numbers.packets)),
        Figure("reported_memories", numbers.reported_memories),
        Figure("share_unmoved", _share(numbers.reported_memories - numbers.moved, numbers.reported_memories)),
        Figure("never_served", max(numbers.memory_count - len(serves), 0)),
        Figure("exposure_gini", gini(everyone)),
        Figure("top_percent_share", _share(sum(serves[: max(1, round(len(everyone) / 100))]), total)),
        Figure("top_share", _share(sum(memory.serves for memory in top), total)),
        Figure("top_use_rate", _rate(top)),
        Figure("other_use_rate", _rate(numbers.served[len(top) :])),
        Figure("late_reports", numbers.late_word),
        Figure("share_stale", _share(numbers.stale_word, numbers.late_word)),
        Figure("stale_packets", numbers.stale_packets),
    ]


def _reserve_figures(numbers: AuditNumbers, min_reported_sessions: int) -> list[Figure]:
    reserve = numbers.reserve
    slots = _share(reserve.drawn, reserve.packets)
    heard = _share(numbers.reported_packets, numbers.packets)
    arriving = _share(numbers.new_memories, numbers.packets)
    load = arriving * min_reported_sessions / (slots * heard) if slots * heard else math.inf if arriving else 0.0
    spread = stdev(reserve.weight_gaps) if len(reserve.weight_gaps) > 1 else 0.0
    error = spread / math.sqrt(len(reserve.weight_gaps)) if spread else 0.0
    return [
        Figure("reserve_slots", slots),
        Figure("reserve_pool", reserve.pooled_memories),
        Figure("reserve_load", load if reserve.packets else 0.0),
        Figure("discovery_exposures", reserve.first_exposures),
        Figure("discovery_expected", reserve.expected),
        Figure("discovery_ratio", reserve.first_exposures / reserve.expected if reserve.expected else 0.0),
        Figure("discovery_requests", fmean(reserve.waits) if reserve.waits else 0.0),
        Figure("discovery_requests_expected", _share(reserve.eligible_requests, reserve.expected)),
        Figure("propensity_error", fmean(reserve.weight_gaps) / error if error else 0.0),
        Figure("never_explorable", numbers.too_large),
    ]


def _by(clients: Iterable[ClientNumbers]) -> list[Figure]:
    """Packets and the share that was reported on, by agent, surface and namespace."""
    packets: dict[tuple[str, str], int] = defaultdict(int)
    reported: dict[tuple[str, str], int] = defaultdict(int)
    for client in clients:
        for kind, about in (
            ("agent", client.agent_id),
            ("surface", client.surface),
            ("namespace", client.namespace),
        ):
            packets[kind, about] += client.packets
            reported[kind, about] += client.reported
    figures = []
    for (kind, about), count in sorted(packets.items(), key=lambda each: (each[0][0], -each[1], each[0][1])):
        figures.append(Figure(f"packets_by_{kind}", count, about))
        figures.append(Figure(f"packets_with_feedback_by_{kind}", reported[kind, about] / count, about))
    return figures


def _models(models: Sequence[ModelNumbers]) -> list[Figure]:
    """Packets by the model that scored them, the share that was reported on, and the share of what explicit reports
    spoke of that was used. Sessions decide who meets a canary, so these can be compared."""
    figures = []
    for each in models:
        figures.append(Figure("packets_by_model", each.packets, each.version))
        figures.append(Figure("packets_with_feedback_by_model", each.reported / each.packets, each.version))
        if each.judged:
            figures.append(Figure("used_by_model", each.used / each.judged, each.version))
    return figures


def _memories(served: Sequence[ServedMemory]) -> list[Figure]:
    figures = []
    for place, memory in enumerate(served[:MOST_COMPARED]):
        about = f"{memory.namespace}/{memory.memory_id}"
        figures.append(Figure("serves", memory.serves, about))
        figures.append(Figure("uses", memory.used, about))
        figures.append(Figure("use_rate", memory.used / memory.serves, about))
        if place < MOST_SERVED:
            figures.append(Figure("importance", memory.importance, about))
    return figures


def _starving(numbers: AuditNumbers, value: dict[str, float]) -> str:
    if value["packets_with_feedback"] >= STARVED:
        return ""
    at_floor = round(value["memories_at_floor"])
    return (
        f"starving: {numbers.packets:,} packets went to {counted(numbers.sessions, 'session')}, and "
        f"{counted(numbers.reports, 'report')} on {counted(numbers.used_memories, 'used memory')} came back; "
        f"{at_floor:,} of {counted(numbers.memory_count, 'memory is', 'memories are')} at the floor. The formula is "
        "innocent: feed it. Give agents a way to report (report-use), or hand over what they said (report-output)"
    )


def _position_bias(numbers: AuditNumbers, value: dict[str, float]) -> str:
    top = _top(numbers)
    rest = numbers.served[len(top) :]
    if min(sum(memory.judged for memory in side) for side in (top, rest)) < FEWEST_JUDGED:
        return ""
    fair = len(top) / max(len(numbers.served), 1)
    dominates = value["top_share"] >= max(TOP_SHARE, TOP_EXCESS * fair)
    if not dominates or value["top_use_rate"] >= SELDOM_USED * value["other_use_rate"]:
        return ""
    most = "most served memory takes" if len(top) == 1 else f"{len(top)} most served memories take"
    return (
        f"position bias: the {most} {_percent(value['top_share'])} of all serves, and "
        f"{_percent(value['top_use_rate'])} of these were used, against {_percent(value['other_use_rate'])} of the "
        "others'. Count uses, not serves: look for serves that slipped into a score, and for reports that name "
        "whatever stood first"
    )


def _flat_formula(numbers: AuditNumbers, value: dict[str, float]) -> str:
    if numbers.reported_memories < FEWEST_REPORTED or value["share_unmoved"] < UNMOVED:
        return ""
    return (
        f"flat formula: {_percent(value['packets_with_feedback'])} of the packets were reported on, and the scores of "
        f"{numbers.reported_memories - numbers.moved:,} of {numbers.reported_memories:,} reported memories are what "
        "they would be without. Now look at the formula: is there a rescore (rescore --apply), and do overrides or "
        "weights leave use its part?"
    )


def _stale_cache(numbers: AuditNumbers, value: dict[str, float]) -> str:
    if numbers.stale_packets:
        return (
            f"stale cache: {counted(numbers.stale_packets, 'packet was', 'packets were')} ranked by scores from "
            "before a rescore. Restart the server, and say so to its makers"
        )
    if numbers.late_word < FEWEST_LATE or value["share_stale"] < STALE:
        return ""
    return (
        f"stale cache: {_percent(value['share_stale'])} of the {numbers.late_word:,} reports that came after a "
        "rescore are about packets from before it: old packets are still served. Key the cache on the score "
        "version, or drop it when a rescore lands"
    )


def _warnings(numbers: AuditNumbers, value: dict[str, float]) -> list[str]:
    found = []
    if STARVED <= value["packets_with_feedback"] < THIN and numbers.packets >= FEW_PACKETS:
        found.append(
            f"thin: {_percent(value['packets_with_feedback'])} of the packets were reported on; below "
            f"{_percent(THIN)} nothing is trained"
        )
    found += _dead(numbers.clients)
    if value["reserve_load"] >= BUSY:
        found.append(f"reserve: {_queue(value['reserve_load'])}: report on more packets, or keep a second slot")
    if numbers.too_large:
        found.append(
            f"never explorable: {counted(numbers.too_large, 'memory is', 'memories are')} without turns and larger "
            f"than any slot's budget, which was {counted(numbers.slot_budget or 0, 'token')} at most: split what is "
            "so long, or ask with a larger token budget"
        )
    if abs(value["propensity_error"]) > SURE:
        found.append(
            f"propensities: the draws do not follow the logged ones ({value['propensity_error']:+.1f} standard errors)"
        )
    return found


def _queue(load: float) -> str:
    """How new memories come to their turns, in words."""
    if load < 1:
        at_most = f"(load {load:.2f}; at 1 the queue grows without end)"
        return f"new memories arrive nearly as fast as they get their turns {at_most}"
    if load <= MOST_TIMES:
        return f"new memories arrive {load:.1f} times as fast as they get their turns, and the queue grows"
    return f"new memories arrive over {MOST_TIMES} times as fast as they get their turns, so hardly any gets one"


def _dead(clients: Iterable[ClientNumbers]) -> list[str]:
    """Counters that never move: clients that send nothing back, only what names no memory, or never a use."""
    found = []
    for client in clients:
        if client.packets < FEW_PACKETS:
            continue
        who = f"{client.agent_id or '(unnamed)'} on {client.surface or '(no surface)'} in {client.namespace}"
        if client.reported >= ALIVE * client.packets:
            if client.with_uses < ALIVE * client.reported:
                found.append(f"dead counter: {who} reports, and has never named a used memory")
        elif client.weak:
            found.append(f"dead counter: {who} sends back only outcomes or echoes, which name no used memory")
        else:
            found.append(f"dead counter: {who} got {client.packets:,} packets and sends nothing back")
    return found


def _top(numbers: AuditNumbers) -> Sequence[ServedMemory]:
    """The most served: twenty, or a twentieth of the memories where those are few."""
    return numbers.served[: max(1, min(MOST_SERVED, numbers.memory_count // 20))]


def _rate(memories: Sequence[ServedMemory]) -> float:
    return _share(sum(memory.used for memory in memories), sum(memory.judged for memory in memories))


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.995 else f"{100 * share:.0f} %"
