"""What the reports on a packet say of each memory in it, as labels for a fit (LEARNING sections 2 and 3). Pure.

One memory in one packet has one label, from the strongest channel that speaks of it. EXPLICIT is taken at its word.
INFERRED is worth what packets with both channels prove it to be. ECHO names uses at a tenth, never the opposite. PACKET
is no label: it weighs the packet. A packet without a report, and a memory that was not shown, have no label at all:
silence is missing data and says nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sidecar.domain import Channel, Floats, Micros, ReportState
from sidecar.store.log import LoggedReport
from sidecar.store.merge import Merged, merge, report_state, report_window
from sidecar.store.reports import DELAYS

CHANNELS: tuple[Channel | None, ...] = (None, Channel.EXPLICIT, Channel.INFERRED, Channel.ECHO)
"""What a label's `channel` indexes."""

_CODES = {channel: code for code, channel in enumerate(CHANNELS)}

INFERRED_PRIOR = (8.0, 2.0)
"""Beta prior of an inferred word's being right, "used" and "not used" alike."""
ECHO_PRIOR = (1.0, 9.0)
MOST_ECHO = 0.2
"""What a repetition is worth at most, however often explicit words confirm it."""


class Confirmed(NamedTuple):
    """How many words of a weaker channel an explicit one on the same memory and packet confirmed and refuted."""

    right: int = 0
    wrong: int = 0

    def posterior(self, prior: tuple[float, float]) -> float:
        """The mean of the Beta posterior."""
        return (prior[0] + self.right) / (sum(prior) + self.right + self.wrong)


NONE_CONFIRMED = Confirmed()


@dataclass(frozen=True, slots=True)
class Trust:
    """What weaker channels are worth, from packets that have an explicit word beside theirs."""

    inferred_used: Confirmed = NONE_CONFIRMED
    inferred_unused: Confirmed = NONE_CONFIRMED
    echo: Confirmed = NONE_CONFIRMED

    @property
    def used(self) -> float:
        """That a memory which was inferred to be used was used."""
        return self.inferred_used.posterior(INFERRED_PRIOR)

    @property
    def unused(self) -> float:
        """That a memory which was inferred to be unused was unused."""
        return self.inferred_unused.posterior(INFERRED_PRIOR)

    @property
    def echoed(self) -> float:
        """What a repetition is worth as a use."""
        return min(self.echo.posterior(ECHO_PRIOR), MOST_ECHO)


@dataclass(frozen=True, slots=True)
class PacketWords:
    """A packet and all reports on it that had arrived."""

    namespace: str
    create_time: Micros
    memory_ids: tuple[str, ...]
    reports: tuple[LoggedReport, ...]


@dataclass(slots=True)
class WordsOfPackets:
    """The words on all packets of a window, merged once; of every served memory the strongest is kept.

    `channel` (n,) indexes CHANNELS, `said_used` (n,) is its word, `confidence` (n,) how sure it is; `trust` counts the
    weaker words that stand beside explicit ones.
    """

    packets: Sequence[PacketWords]
    ingest_cutoff: Micros
    channel: NDArray[np.int32] = field(init=False)
    said_used: NDArray[np.bool_] = field(init=False)
    confidence: Floats = field(init=False)
    trust: Trust = field(init=False)

    def __post_init__(self) -> None:
        n = sum(len(packet.memory_ids) for packet in self.packets)
        self.channel, self.said_used, self.confidence = np.zeros(n, np.int32), np.zeros(n, bool), np.zeros(n)
        counts: dict[tuple[Channel, bool], list[int]] = defaultdict(lambda: [0, 0])
        first = 0
        for packet in self.packets:
            if packet.reports:
                row_of = {memory_id: row for row, memory_id in enumerate(packet.memory_ids, first)}
                for one in merge((each.report for each in packet.reports), packet.memory_ids):
                    self._keep(one, row_of[one.memory_id], counts)
            first += len(packet.memory_ids)
        self.trust = Trust(
            inferred_used=Confirmed(*counts[Channel.INFERRED, True]),
            inferred_unused=Confirmed(*counts[Channel.INFERRED, False]),
            echo=Confirmed(*counts[Channel.ECHO, True]),
        )

    def _keep(self, one: Merged, row: int, counts: dict[tuple[Channel, bool], list[int]]) -> None:
        strongest, *weaker = one.words
        self.channel[row] = _CODES[strongest.channel]
        self.said_used[row] = strongest.used
        self.confidence[row] = strongest.confidence
        if strongest.channel is Channel.EXPLICIT:
            for word in weaker:
                counts[word.channel, word.used][word.used != strongest.used] += 1

    def labels(self) -> tuple[Floats, Floats]:
        """(a, b) of every memory of every packet in turn, each of shape (n,)."""
        trust, used, unused = self.trust, np.zeros(len(self.channel)), np.zeros(len(self.channel))
        explicit, inferred, echoed = (self.channel == code for code in (1, 2, 3))
        used[explicit & self.said_used] = 1.0
        unused[explicit & ~self.said_used] = 1.0
        # A reporter that is less sure than it could be is taken at its word.
        sure = inferred & self.said_used
        used[sure] = np.minimum(self.confidence[sure], trust.used)
        unused[inferred & ~self.said_used] = trust.unused
        used[echoed] = trust.echoed
        return used, unused

    def outcomes(self) -> list[float]:
        """g of each packet: what the PACKET channel said last, 0 where it said nothing."""
        return [
            max(
                (each for each in packet.reports if each.report.channel is Channel.PACKET),
                key=lambda each: each.report.order,
                default=_SILENT,
            ).outcome
            for packet in self.packets
        ]

    def states(self) -> list[ReportState]:
        """How each packet stands at the ingest cut-off. Its window goes by the last first reports of its namespace."""
        first: list[LoggedReport | None] = [
            min(
                (each for each in packet.reports if each.report.channel in (Channel.EXPLICIT, Channel.INFERRED)),
                key=lambda each: (each.report.receive_time, each.report.report_id),
                default=None,
            )
            for packet in self.packets
        ]
        delays: dict[str, list[tuple[Micros, Micros]]] = defaultdict(list)
        for packet, report in zip(self.packets, first, strict=True):
            if report is not None:
                time = report.report.receive_time
                delays[packet.namespace].append((time, time - packet.create_time))
        windows = {
            namespace: report_window([delay for _, delay in sorted(found)[-DELAYS:]])
            for namespace, found in delays.items()
        }
        return [
            report_state(
                self.ingest_cutoff - packet.create_time,
                None if report is None else report.late,
                windows.get(packet.namespace, report_window(())),
            )
            for packet, report in zip(self.packets, first, strict=True)
        ]


class _Silent(NamedTuple):
    outcome: float = 0.0


_SILENT = _Silent()
