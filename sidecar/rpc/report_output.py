"""Reads and writes what goes with ReportOutput. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from memoryranker.v1 import feedback_pb2, ranker_pb2

from sidecar.domain import Packet, ReportState
from sidecar.errors import Violations
from sidecar.feedback.matching import Findings, Match
from sidecar.feedback.output import Output
from sidecar.rpc.incoming_memories import MAX_NAMED, read_namespace, read_request_id
from sidecar.rpc.outgoing import REPORT_STATES
from sidecar.rpc.validation import ID_BYTES, check_count, check_text, check_texts, shown
from sidecar.store.reports import ReportOutcome

OUTPUT_BYTES = 1_048_576
MAX_CALLS = 256
ARGUMENT_BYTES = 65_536


def read_output(request: feedback_pb2.ReportOutputRequest) -> Output:
    """An output that was handed over. Raises InvalidRequestError."""
    bad = Violations()
    if request.HasField("namespace"):
        read_namespace(bad, request.namespace)
    check_text(bad, "packet_id", request.packet_id, 1, ID_BYTES)
    check_text(bad, "output", request.output, 0, OUTPUT_BYTES)
    check_count(bad, "tool_calls", len(request.tool_calls), 0, MAX_CALLS)
    for i, call in enumerate(request.tool_calls[:MAX_CALLS]):
        check_text(bad, f"tool_calls[{i}].name", call.name, 0, 256)
        check_text(bad, f"tool_calls[{i}].arguments", call.arguments, 0, ARGUMENT_BYTES)
    check_texts(bad, "shown_memory_ids", request.shown_memory_ids, MAX_NAMED, 1, ID_BYTES)
    check_text(bad, "agent_id", request.agent_id, 0, 256)
    read_request_id(bad, request.request_id)
    bad.raise_if_any()
    return Output(
        packet_id=request.packet_id,
        output=request.output,
        tool_calls=tuple((call.name, call.arguments) for call in request.tool_calls),
        shown=tuple(request.shown_memory_ids),
        namespace=request.namespace if request.HasField("namespace") else None,
        agent_id=request.agent_id,
        request_id=request.request_id,
    )


def check_shown(given: Output, packet: Packet) -> None:
    """Refuses a memory that is said to be shown and is not in the packet."""
    bad = Violations()
    served = {item.memory_id for item in packet.items}
    for i, memory_id in enumerate(given.shown):
        if memory_id not in served:
            bad.add(f"shown_memory_ids[{i}]", f"is {shown(memory_id)}; the packet holds no memory of that id")
    bad.raise_if_any()


def task_of(packet: Packet) -> list[str]:
    """All texts that the agent had without the packet: the task and what it works on."""
    asked = ranker_pb2.RankRequest.FromString(packet.payload)
    context = asked.context
    return [asked.task, *context.goals, *context.projects, *context.files]


def write_found(
    outcomes: Sequence[ReportOutcome], found: Findings, state: ReportState
) -> feedback_pb2.ReportOutputResponse:
    """The answer. Handles are left out: they are text of memories, and a copy is kept for retries; see `name_handles`.

    `state` is the packet's where nothing was recorded.
    """
    return feedback_pb2.ReportOutputResponse(
        report_id=outcomes[0].report_id if outcomes else "",
        matches=[
            feedback_pb2.HandleMatch(
                memory_id=match.memory_id, handle_kind=match.kind, confidence=found.confidence[match.memory_id]
            )
            for match in found.matches
        ],
        echoed_memory_ids=found.echoed,
        report_state=REPORT_STATES[outcomes[-1].state if outcomes else state],
    )


def name_handles(response: feedback_pb2.ReportOutputResponse, matches: Iterable[Match]) -> None:
    """Fills the handles in, of those matches that the memories as they are now still give."""
    known: dict[tuple[str, str], list[str]] = {}
    for match in matches:
        known.setdefault((match.memory_id, match.kind), []).append(match.handle)
    left: Mapping[tuple[str, str], list[str]] = known
    for each in response.matches:
        if handles := left.get((each.memory_id, each.handle_kind)):
            each.handle = handles.pop(0)
