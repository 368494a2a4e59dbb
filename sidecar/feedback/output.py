"""From an agent's output to the reports that the feedback log keeps. Pure, over a packet and a snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sidecar.domain import Channel, Packet, UseReport
from sidecar.feedback.clues import Clue
from sidecar.feedback.matching import Findings, find_uses
from sidecar.retrieval.snapshot import Snapshot
from sidecar.retrieval.tokenizer import tokenize

DIGITS = 4
"""Of a confidence: memories that are equally sure share a report."""


@dataclass(frozen=True, slots=True)
class Output:
    """What the agent said and did after a packet. `tool_calls` are (name, arguments); `shown` empty means all."""

    packet_id: str
    output: str
    tool_calls: tuple[tuple[str, str], ...] = ()
    shown: tuple[str, ...] = ()
    namespace: str | None = None
    agent_id: str = ""
    request_id: str = ""


def find_output(
    given: Output, packet: Packet, task: Sequence[str], snapshot: Snapshot, precision: tuple[float, float]
) -> Findings:
    """What the output says of the packet's memories. `task` is all that the agent knew without the packet.

    A memory is read as it is now; of one that was deleted, or that came with a caller's own list, nothing is known.
    """
    wanted = set(given.shown)
    contents: dict[str, str] = {}
    for item in packet.items:
        row = snapshot.row_of_id.get(item.memory_id)
        if row is None or (wanted and item.memory_id not in wanted):
            continue
        memory = snapshot.memories[row]
        if memory.key == item.memory_key:
            contents[item.memory_id] = memory.content
    return find_uses(
        "\n".join(task),
        contents,
        given.output,
        given.tool_calls,
        bearing=lambda clue: bearing(snapshot, clue),
        live=snapshot.live_count,
        precision=precision,
    )


def bearing(snapshot: Snapshot, clue: Clue) -> int:
    """How many memories bear a clue, at most: those that bear its rarest term."""
    live = snapshot.columns.live
    terms = {token.term for token in tokenize(clue.shown) if not token.is_stop_word}
    return min((len(snapshot.contents.terms.find(term, live)[0]) for term in terms), default=0)


def reports_of(given: Output, found: Findings) -> list[UseReport]:
    """The reports to record: one for each confidence, the first of which also says what was not used, and one of
    echoes. None if the output says nothing of any memory."""
    groups: dict[float, list[str]] = {}
    for memory_id, confidence in found.confidence.items():
        groups.setdefault(round(confidence, DIGITS), []).append(memory_id)
    reports: list[UseReport] = []
    if found.judged:
        least = min(groups, default=None)
        used = groups.pop(least) if least is not None else []
        sure = {} if least is None else {"confidence": least}
        reports.append(_report(given, Channel.INFERRED, used, shown_memory_ids=found.judged, complete=True, **sure))
    reports += [
        _report(given, Channel.INFERRED, groups[confidence], complete=False, confidence=confidence)
        for confidence in sorted(groups)
    ]
    if found.echoed:
        reports.append(_report(given, Channel.ECHO, found.echoed, complete=False))
    return reports


def _report(given: Output, channel: Channel, used: Iterable[str], **others: object) -> UseReport:
    return UseReport(
        packet_id=given.packet_id,
        namespace=given.namespace,
        channel=channel,
        used_memory_ids=tuple(used),
        agent_id=given.agent_id,
        request_id=given.request_id,
        **others,  # type: ignore[arg-type]
    )
