"""RankerService: tasks come in, packets go out, and what was used comes back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import grpc
from google.protobuf.message import Message
from memoryranker.v1 import feedback_pb2, ranker_pb2, ranker_pb2_grpc

from sidecar.domain import Micros, Packet, RankRequest
from sidecar.errors import AnswerTooLargeError, Violations
from sidecar.feedback.matching import PRIOR
from sidecar.feedback.output import find_output, reports_of
from sidecar.importance.foresight import Foresight
from sidecar.observe.observer import Observer
from sidecar.ranking.case import Again
from sidecar.ranking.explain import explain_miss
from sidecar.ranking.occasion import Occasion
from sidecar.ranking.ranker import RankAnswer, Ranker
from sidecar.ranking.stages import READ, WRITE, Stopwatch
from sidecar.rpc.incoming import read_rank, read_rating, read_report
from sidecar.rpc.incoming_memories import read_id, read_namespace
from sidecar.rpc.interceptors import deadline_check
from sidecar.rpc.outgoing import (
    REPORT_STATES,
    set_time,
    write_memories,
    write_miss,
    write_pool,
    write_rank,
    write_report,
    write_uses,
)
from sidecar.rpc.replay import answer_of, once_of
from sidecar.rpc.report_output import check_shown, name_handles, read_output, task_of, write_found
from sidecar.rpc.validation import ID_BYTES, check_text, shown
from sidecar.store.reports import ReportOutcome
from sidecar.store.requests import Replayed
from sidecar.store.store import Store

Response = TypeVar("Response", bound=Message)

TIMINGS_ASKED = "memory-ranker-timings"
"""Metadata of a request that wants to know how long its stages took, whatever its value."""
TIMINGS = "memory-ranker-stages"
"""The trailing metadata that tells it."""


class RankerService(ranker_pb2_grpc.RankerServiceServicer):
    """Answers what `ranker.proto` says, from a ranker and the store behind it."""

    def __init__(
        self,
        ranker: Ranker,
        store: Store,
        dimension: int,
        clock: Callable[[], Micros],
        max_message_bytes: int,
        observer: Observer,
        foresight: Foresight,
    ) -> None:
        self._observer = observer
        self._foresight = foresight
        self._ranker = ranker
        self._store = store
        self._dimension = dimension
        self._clock = clock
        self._max_bytes = max_message_bytes

    def Rank(self, request: ranker_pb2.RankRequest, context: grpc.ServicerContext) -> ranker_pb2.RankResponse:
        """The packet is committed before it is sent."""
        watch = Stopwatch()
        asked = read_rank(request, self._dimension, self._clock())
        watch.lap(READ)

        vetted: list[tuple[RankAnswer, list[bytes]]] = []

        def is_small(memories: list[bytes]) -> bool:
            # The rest of a message is small: most answers need not be made to know that they fit.
            return sum(map(len, memories)) <= self._max_bytes // 2

        def vet(answer: RankAnswer) -> None:
            vetted.append((answer, memories := write_memories(answer)))
            if not is_small(memories):
                self._fitting(write_rank(answer, request.explain, memories))

        answer = self._ranker.rank(asked, deadline_check(context), vet, watch)
        memories = next((memories for each, memories in vetted if each is answer), None)
        response = write_rank(answer, request.explain, memories)
        if memories is None or not is_small(memories):
            self._fitting(response)
        watch.lap(WRITE)
        self._observer.stages(watch.seconds)
        if any(key == TIMINGS_ASKED for key, _ in context.invocation_metadata()):
            context.set_trailing_metadata(((TIMINGS, str(watch)),))
        if not answer.replayed:
            self._observer.packet(answer.packet)
        return response

    def ReportUse(
        self, request: feedback_pb2.ReportUseRequest, context: grpc.ServicerContext
    ) -> feedback_pb2.ReportUseResponse:
        """Ids that are not in the packet are told beside those that count."""
        now = self._clock()
        report = read_report(request, now)
        once = once_of("ReportUse", request, write_report)
        done = self._store.report(report, now, once)
        response = answer_of(feedback_pb2.ReportUseResponse, done, write_report)
        response.replayed = response.replayed or isinstance(done, Replayed)
        if not response.replayed:
            self._observer.report(report.channel, response.used_count, response.unused_count)
        return response

    def ReportOutput(
        self, request: feedback_pb2.ReportOutputRequest, context: grpc.ServicerContext
    ) -> feedback_pb2.ReportOutputResponse:
        """The output is read and not stored; what it says of each memory is recorded in one piece."""
        given = read_output(request)
        logged = self._store.get_packet(given.namespace, given.packet_id)
        packet, now = logged.packet, self._clock()
        check_shown(given, packet)
        confirmed, refuted = self._store.inferred_precision()
        found = find_output(
            given,
            packet,
            task_of(packet),
            self._ranker.snapshot(packet.namespace),
            (PRIOR[0] + confirmed, PRIOR[1] + refuted),
        )
        deadline_check(context)()

        def write(outcomes: list[ReportOutcome]) -> feedback_pb2.ReportOutputResponse:
            return write_found(outcomes, found, logged.report_state(now))

        reports = reports_of(given, found)
        done: list[ReportOutcome] | Replayed = []
        if reports or request.request_id:  # an output that says nothing is known again, too
            done = self._store.report_together(packet.packet_id, reports, now, once_of("ReportOutput", request, write))
        response = answer_of(feedback_pb2.ReportOutputResponse, done, write)
        name_handles(response, found.matches)
        if not isinstance(done, Replayed):
            for report, outcome in zip(reports, done, strict=True):
                if not outcome.replayed:
                    self._observer.report(report.channel, outcome.used_count, outcome.unused_count)
        return response

    def GetPacket(
        self, request: ranker_pb2.GetPacketRequest, context: grpc.ServicerContext
    ) -> ranker_pb2.GetPacketResponse:
        """As it was served; each memory as it is now."""
        bad = Violations()
        namespace = read_namespace(bad, request.namespace)
        check_text(bad, "packet_id", request.packet_id, 1, ID_BYTES)
        bad.raise_if_any()
        logged = self._store.get_packet(namespace, request.packet_id)
        packet = logged.packet
        response = ranker_pb2.GetPacketResponse(
            packet=write_rank(self._ranker.replay(namespace, packet.packet_id), ranker_pb2.EXPLAIN_LEVEL_FULL),
            agent_id=packet.agent_id,
            session_id=packet.session_id,
            surface=packet.surface,
            report_state=REPORT_STATES[logged.report_state(self._clock())],
            uses=write_uses(logged.uses),
            undrawn=write_pool(packet.undrawn),
        )
        if packet.shadow is not None:
            response.shadow_version = packet.shadow.version
            response.shadow_scores.extend(packet.shadow.scores.tolist())
        response.packet.replayed = False
        set_time(response.create_time, packet.create_time)
        return self._fitting(response)

    def RateMemory(
        self, request: feedback_pb2.RateMemoryRequest, context: grpc.ServicerContext
    ) -> feedback_pb2.RateMemoryResponse:
        """A rater's latest word stands."""
        rating = read_rating(request)

        def write(done: tuple[int, int, int]) -> feedback_pb2.RateMemoryResponse:
            helpful, unhelpful, version = done
            response = feedback_pb2.RateMemoryResponse(left_out=unhelpful > 0, score_version=version)
            response.ratings.helpful, response.ratings.unhelpful = helpful, unhelpful
            return response

        done = self._store.rate(
            request.namespace,
            request.memory_id,
            request.agent_id,
            rating,
            request.reason,
            self._clock(),
            once_of("RateMemory", request, write),
        )
        return answer_of(feedback_pb2.RateMemoryResponse, done, write)

    def ExplainMiss(
        self, request: ranker_pb2.ExplainMissRequest, context: grpc.ServicerContext
    ) -> ranker_pb2.ExplainMissResponse:
        """A packet is explained by ranking its request again, for the time that it was ranked for."""
        check = deadline_check(context)
        bad = Violations()
        namespace = read_namespace(bad, request.namespace)
        memory_id = read_id(bad, "memory_id", request.memory_id)
        packet: Packet | None = None
        match request.WhichOneof("occasion"):
            case "packet_id":
                check_text(bad, "packet_id", request.packet_id, 1, ID_BYTES)
                bad.raise_if_any()
                packet = self._store.get_packet(namespace, request.packet_id).packet
                asked = self._asked_for(packet)
            case "request":
                of = request.request.namespace
                if of not in ("", namespace):
                    bad.add("request.namespace", f"is {shown(of)}; must be that of the memory, {shown(namespace)}")
                bad.raise_if_any()
                request.request.namespace = namespace
                asked = read_rank(request.request, self._dimension, self._clock())
            case _:
                bad.add("occasion", "is unset; set packet_id or request")
                bad.raise_if_any()
                raise AssertionError
        if asked.candidates is not None:
            asked = replace(asked, candidates=self._ranker.occasions.embedded(asked.candidates))
        prepare = partial(self._ranker.occasions.prepare, check=check, explaining=True)
        occasion = prepare(asked, packet=packet)

        def written(fields: Mapping[str, Any]) -> Occasion:
            if asked.candidates is not None:
                own = [replace(each, **fields) if each.id == memory_id else each for each in asked.candidates]
                return prepare(replace(asked, candidates=tuple(own)))
            if "unhelpful" in fields:
                stands = self._foresight.unrated(namespace, memory_id)
            else:
                scores = occasion.counts_importance
                stands = self._foresight.written(namespace, memory_id, fields, check, scores=scores)
            return prepare(asked, packet=packet, namespace=stands)

        undated = frozenset(each.id for each in request.request.candidates if not each.HasField("create_time"))

        def at(time: Micros | None) -> Occasion:
            then = replace(asked, as_of_time=time)
            if asked.candidates is None:
                return prepare(then)
            if not undated:
                return prepare(then, namespace=occasion.snapshot)
            learned = self._clock() if time is None else time
            own = (replace(each, create_time=learned) if each.id in undated else each for each in asked.candidates)
            return prepare(replace(then, candidates=tuple(own)))

        def use_times() -> list[Micros]:
            return self._store.use_times(namespace) if asked.candidates is None else []

        again = Again(at, written, use_times, undated)
        return write_miss(explain_miss(occasion, memory_id, packet, check, again, self._clock()))

    def _fitting(self, response: Response) -> Response:
        """The answer itself. AnswerTooLargeError if no message holds it: grpc's own error would not say what to do."""
        size = response.ByteSize()
        if size > self._max_bytes:
            raise AnswerTooLargeError(
                f"the packet has {size:,} bytes, and a message at most {self._max_bytes:,}: ask for fewer max_items or "
                "a smaller token_budget, or raise max_message_bytes on server and client"
            )
        return response

    def _asked_for(self, packet: Packet) -> RankRequest:
        """The request behind a packet, with the weights that it was ranked with."""
        kept = ranker_pb2.RankRequest.FromString(packet.payload)
        if kept.candidates:
            bad = Violations()
            bad.add("packet_id", "names a packet of a caller's own list, which is not stored; send the request instead")
            bad.raise_if_any()
        asked = read_rank(kept, self._dimension, self._clock())
        if asked.explicit_weights is None:
            asked = replace(asked, weights=packet.model_version)
        return asked
