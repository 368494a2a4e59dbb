"""The metrics in Prometheus' text format. Labels are bounded: no namespace, agent, session, memory or text is one.

A registry of its own for every server: nothing here is the process's, so that two servers in one process count apart.
"""

from __future__ import annotations

import collections
import itertools
import logging
from collections.abc import Callable, Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector

from sidecar.domain import Channel, DegradationReason, EmptyReason, Packet, PacketItems, Segment
from sidecar.errors import (
    DeadlineExceededError,
    OverloadedError,
    RankerError,
    StoreDamagedError,
    StoreFullError,
    StoreUnavailableError,
)
from sidecar.observe.observer import Observer, Standing
from sidecar.weights.roles import Outcome

logger = logging.getLogger(__name__)

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
PREFIX = "memory_ranker"
SECONDS = (0.0005, 0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.02, 0.03, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""Edges of the latency histograms. A Rank takes some milliseconds, so that is where they are close."""

FAULTS = (
    RankerError,
    StoreDamagedError,
    StoreFullError,
    StoreUnavailableError,
    OverloadedError,
    DeadlineExceededError,
)
"""Refusals that are no fault of the caller, so that somebody may want to be woken by the first."""


class Metrics(Observer):
    """Counts what it hears of. `text` is what /metrics shows."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self._calls = Counter(
            f"{PREFIX}_requests", "calls by method and gRPC code", ["method", "code"], registry=registry
        )
        self._seconds = Histogram(
            f"{PREFIX}_request_seconds",
            "time of a call on its thread, without waiting for one, by method",
            ["method"],
            buckets=SECONDS,
            registry=registry,
        )
        self._stages = Histogram(
            f"{PREFIX}_stage_seconds", "time of the stages of a Rank", ["stage"], buckets=SECONDS, registry=registry
        )
        self._refusals = Counter(
            f"{PREFIX}_refusals",
            "calls that were refused, by reason (docs/errors.md)",
            ["reason"],
            registry=registry,
        )
        self._packets = Counter(
            f"{PREFIX}_packets",
            "packets ranked: logged ones can be reported on, unlogged ones are dry runs or had no room in the log",
            ["logged"],
            registry=registry,
        )
        self._empty = Counter(f"{PREFIX}_empty_packets", "packets without any memory", ["reason"], registry=registry)
        self._exposures = Counter(
            f"{PREFIX}_exposures", "memories served in logged packets, by segment", ["segment"], registry=registry
        )
        self._degradations = Counter(
            f"{PREFIX}_degradations", "packets that were made less well than usual", ["reason"], registry=registry
        )
        self._reports = Counter(f"{PREFIX}_reports", "use reports recorded, by channel", ["channel"], registry=registry)
        self._uses = Counter(
            f"{PREFIX}_uses",
            "memories that reports said were used, or not used, by channel",
            ["channel", "used"],
            registry=registry,
        )
        self._models = Counter(
            f"{PREFIX}_model_changes",
            "attempts to change what a model is used for, by how they ended",
            ["outcome"],
            registry=registry,
        )
        # A series that begins at its first event hides that event from whoever asks for an increase.
        for counter, *values in (
            (self._packets, ("yes", "no")),
            (self._refusals, [fault.reason for fault in FAULTS]),
            (self._empty, EmptyReason),
            (self._exposures, Segment),
            (self._degradations, DegradationReason),
            (self._reports, Channel),
            (self._uses, Channel, ("yes", "no")),
            (self._models, Outcome),
        ):
            for labels in itertools.product(*values):
                counter.labels(*labels)
        self._now = _Now()
        registry.register(self._now)
        ProcessCollector(registry=registry)

    def text(self) -> bytes:
        """Everything, as of now."""
        return generate_latest(self.registry)

    def called(self, method: str, code: str, seconds: float) -> None:
        """As in Observer."""
        self._calls.labels(method, code).inc()
        self._seconds.labels(method).observe(seconds)

    def refused(self, reason: str) -> None:
        """As in Observer."""
        self._refusals.labels(reason).inc()

    def stages(self, seconds: Mapping[str, float]) -> None:
        """As in Observer."""
        for stage, taken in seconds.items():
            self._stages.labels(stage).observe(taken)

    def packet(self, packet: Packet) -> None:
        """As in Observer."""
        is_logged = bool(packet.packet_id)
        self._packets.labels("yes" if is_logged else "no").inc()
        if packet.empty_reason is not None:
            self._empty.labels(packet.empty_reason.value).inc()
        for reason, _ in packet.degradations:
            self._degradations.labels(reason.value).inc()
        if is_logged:
            for segment, count in collections.Counter(PacketItems.of(packet.items).segments).items():
                self._exposures.labels(segment.value).inc(count)

    def report(self, channel: Channel, used: int, unused: int) -> None:
        """As in Observer."""
        self._reports.labels(channel.value).inc()
        self._uses.labels(channel.value, "yes").inc(used)
        self._uses.labels(channel.value, "no").inc(unused)

    def model(self, outcome: Outcome) -> None:
        """As in Observer."""
        self._models.labels(outcome.value).inc()

    def working(self, pool: str, count: Callable[[], int]) -> None:
        """As in Observer."""
        self._now.pools[pool] = count

    def standing(self, standing: Standing) -> None:
        """As in Observer."""
        self._now.standing = standing


class _Now(Collector):
    """What is looked up at each reading, rather than counted."""

    def __init__(self) -> None:
        self.pools: dict[str, Callable[[], int]] = {}
        self.standing: Standing | None = None

    def describe(self) -> list[Metric]:
        """Their names, without asking anybody yet."""
        return list(_empty().values())

    def collect(self) -> Iterator[Metric]:
        """The values of this moment; of a server that is not ready, only its pools."""
        found = _empty()
        for pool, count in self.pools.items():
            found["calls_in_progress"].add_metric([pool.replace(" ", "_")], count())
        if (standing := self.standing) is not None:
            numbers = standing.numbers()
            found["memories"].add_metric([], numbers.memory_count)
            found["namespaces"].add_metric([], numbers.namespace_count)
            found["store_bytes"].add_metric([], numbers.byte_count)
            found["packets_in_log"].add_metric([], numbers.packet_count)
            found["reported_packets_in_log"].add_metric([], numbers.reported_packet_count)
            if numbers.packet_count:
                found["report_coverage"].add_metric([], numbers.reported_packet_count / numbers.packet_count)
            found["score_version"].add_metric([], numbers.score_version)
            found["store_problems"].add_metric([], len(list(standing.store_problems())))
            found["model_problems"].add_metric([], len(list(standing.model_problems())))
            labels = (
                standing.server_version,
                standing.model_version(),
                standing.feature_schema_hash,
                standing.embedder,
            )
            found["info"].add_metric(labels, 1)
        yield from (family for family in found.values() if family.samples)


def _empty() -> dict[str, GaugeMetricFamily]:
    def gauge(name: str, words: str, *labels: str) -> GaugeMetricFamily:
        return GaugeMetricFamily(f"{PREFIX}_{name}", words, labels=labels)

    return {
        "calls_in_progress": gauge(
            "calls_in_progress", "calls that a pool of threads works on or has waiting now", "pool"
        ),
        "memories": gauge("memories", "memories stored"),
        "namespaces": gauge("namespaces", "namespaces that hold memories"),
        "store_bytes": gauge("store_bytes", "size of the store on disk"),
        "packets_in_log": gauge("packets_in_log", "packets in the log, until pruned"),
        "reported_packets_in_log": gauge(
            "reported_packets_in_log", "packets in the log that an agent reported on, echoes not counted"
        ),
        "report_coverage": gauge("report_coverage", "share of the packets in the log that an agent reported on"),
        "score_version": gauge(
            "score_version", "sum of the namespaces' score versions: it grows when any score can have changed"
        ),
        "store_problems": gauge(
            "store_problems",
            "what keeps the store from being written to, and damaged logs that it kept; status has the words",
        ),
        "model_problems": gauge("model_problems", "what keeps models from serving; status has the words"),
        "info": gauge(
            "info",
            "1, with what serves now as labels",
            "server_version",
            "model_version",
            "feature_schema_hash",
            "embedder",
        ),
    }
