"""Merges all reports on one packet into what is known of each memory's use. Pure.

Within one channel the latest named word on a memory stands: by the reports' sequence, else by their report_time, else
by their arrival. A named "used" is taken back only by naming the memory as unused; that a complete report does not
mention a memory which was shown means "not used" only where no name speaks. EXPLICIT replaces INFERRED. The result
depends on the set of reports alone: replays, duplicates and reordering change nothing.

What a packet adds to a use rate is a pair (used, seen) in whole millionths of a session, so that sums are exact:

- EXPLICIT used, named so in a complete report: (1, 1); only in incomplete ones: nothing, as their silence says nothing
  (but what INFERRED had found then stays);
- EXPLICIT not used: (0, 1);
- INFERRED used: (c, 1), c its highest confidence; not used: (0, b), or (0, 1) if a match was taken back, so that no
  "unused" ever raises a rate;
- PACKET and ECHO: nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from sidecar.domain import DAY, Channel, Micros, ReportState

LEAST_WINDOW: Micros = DAY
"""A packet without a report is OPEN for so long at least; a first report within it is never LATE."""

FEWEST_DELAYS = 100
"""Delays that must have been seen before the window goes by them."""

MILLION = 1_000_000
"""One whole session, in millionths."""

INFERRED_UNUSED = 0.8
"""How sure "no handle found" is to mean "not used", before packets with both channels say better: Beta(8, 2)'s mean."""

ECHO_WEIGHT = 0.1
"""What a repetition is worth to training at first."""

LIKELY = 0.5
"""An inferred use counts as a use in `frequency` and for `last_use_time` from this confidence on."""

_Verdict: TypeAlias = "tuple[tuple[Word, ...], int, int, Micros | None]"
"""A Merged without its memory."""


@dataclass(frozen=True, slots=True)
class Report:
    """One report as the log keeps it, with only ids that are in its packet. `shown` None means all of the packet."""

    report_id: str
    channel: Channel
    complete: bool
    confidence: float
    sequence: int | None
    report_time: Micros | None
    receive_time: Micros
    used: frozenset[str]
    unused: frozenset[str]
    shown: frozenset[str] | None

    @property
    def order(self) -> tuple[bool, int, int, str]:
        """The later of two reports has the greater order. It never depends on the arrival if the reporter says more."""
        if self.sequence is not None:
            return True, self.sequence, self.report_time or 0, self.report_id
        return False, self.receive_time if self.report_time is None else self.report_time, 0, self.report_id

    @property
    def event_time(self) -> Micros:
        """When the use was known: by the reporter's clock, but never ahead of ours."""
        return self.receive_time if self.report_time is None else min(self.report_time, self.receive_time)


class Word(NamedTuple):
    """What one channel says of a memory once its reports are merged; see MemoryUse."""

    channel: Channel
    used: bool
    confidence: float
    receive_time: Micros


class Merged(NamedTuple):
    """What one packet says of one memory.

    `words` has one entry for each channel that says something, strongest first. `used` and `seen` are the pair in
    millionths; `last_use_time` is None unless the memory counts as used.
    """

    memory_id: str
    words: tuple[Word, ...]
    used: int
    seen: int
    last_use_time: Micros | None


class _Said(NamedTuple):
    """What one channel says of one memory. `confidence` is the highest of all matches, also of one taken back."""

    used: bool
    confidence: float
    in_complete: bool
    ever_used: bool
    use_time: Micros
    receive_time: Micros


def merge(reports: Iterable[Report], memory_ids: Sequence[str]) -> list[Merged]:
    """Merges the reports on a packet that holds these memories. Memories of which nothing is known are left out."""
    by_channel: dict[Channel, list[Report]] = {}
    for report in sorted(reports, key=lambda report: report.order):
        by_channel.setdefault(report.channel, []).append(report)
    channels = [channel for channel in (Channel.EXPLICIT, Channel.INFERRED, Channel.ECHO) if channel in by_channel]
    complete = {each.channel: each for channel in channels for each in by_channel[channel] if each.complete}
    named = frozenset().union(*(report.used | report.unused for of in by_channel.values() for report in of))
    all_shown = all(report.shown is None for report in complete.values())
    merged: list[Merged] = []
    silent: dict[tuple[Channel, ...], _Verdict | None] = {}
    for memory_id in memory_ids:
        if memory_id in named:
            verdict = _verdict({each: _said(by_channel[each], complete.get(each), memory_id) for each in channels})
        else:  # most are not, and of all that the same channels have shown the same is known
            showing = (
                (*complete,) if all_shown else tuple(each for each in complete if _shows(complete[each], memory_id))
            )
            if showing not in silent:
                silent[showing] = _verdict({each: _silence(complete[each]) for each in showing})
            verdict = silent[showing]
        if verdict is not None:
            merged.append(Merged(memory_id, *verdict))
    return merged


def report_window(delays: Sequence[Micros]) -> Micros:
    """How long a packet is OPEN: the 99th percentile of how long first reports took lately, and a day at least."""
    if len(delays) < FEWEST_DELAYS:
        return LEAST_WINDOW
    # The smallest delay within which 99 of 100 first reports had come.
    return max(LEAST_WINDOW, sorted(delays)[(99 * len(delays) + 99) // 100 - 1])


def report_state(age: Micros, first_late: bool | None, window: Micros) -> ReportState:
    """How a packet of that age stands. `first_late` says whether its first EXPLICIT or INFERRED report was late when
    it arrived; None means there is none."""
    if first_late is not None:
        return ReportState.LATE if first_late else ReportState.REPORTED
    return ReportState.UNREPORTED if age > window else ReportState.OPEN


def _shows(complete: Report, memory_id: str) -> bool:
    return complete.shown is None or memory_id in complete.shown


def _silence(complete: Report) -> _Said:
    """What it says that a complete report has shown a memory and does not name it."""
    return _Said(False, 0.0, False, False, 0, complete.receive_time)


def _said(reports: Sequence[Report], complete: Report | None, memory_id: str) -> _Said | None:
    """What the reports of one channel, in their order, say of a memory. Silence is an answer in a complete one;
    `complete` is the last of these."""
    naming = [report for report in reports if memory_id in report.used or memory_id in report.unused]
    if not naming:
        return None if complete is None or not _shows(complete, memory_id) else _silence(complete)
    using = [report for report in naming if memory_id in report.used]
    standing, used = naming[-1], memory_id in naming[-1].used
    return _Said(
        used=used,
        confidence=max((report.confidence for report in using), default=0.0),
        in_complete=any(report.complete for report in using),
        ever_used=bool(using),
        use_time=min((report.event_time for report in using), default=0),
        receive_time=standing.receive_time,
    )


def _verdict(said: Mapping[Channel, _Said | None]) -> _Verdict | None:
    """What the channels come to; None if nothing is known."""
    explicit, inferred, echo = (said.get(channel) for channel in (Channel.EXPLICIT, Channel.INFERRED, Channel.ECHO))
    words: list[Word] = []
    if explicit is not None:
        words.append(Word(Channel.EXPLICIT, explicit.used, 1.0, explicit.receive_time))
    if inferred is not None:
        confidence = inferred.confidence if inferred.used else INFERRED_UNUSED
        words.append(Word(Channel.INFERRED, inferred.used, confidence, inferred.receive_time))
    if echo is not None and echo.used:  # no repetition says nothing
        words.append(Word(Channel.ECHO, True, ECHO_WEIGHT, echo.receive_time))
    if not words:
        return None
    last_use_time = None
    if explicit is not None:
        last_use_time = explicit.use_time if explicit.used else None
    elif inferred is not None and inferred.used and inferred.confidence >= LIKELY:
        last_use_time = inferred.use_time
    return tuple(words), *_pair(explicit, inferred), last_use_time


def _pair(explicit: _Said | None, inferred: _Said | None) -> tuple[int, int]:
    """(used, seen) in millionths."""
    if explicit is not None and not explicit.used:
        return 0, MILLION
    if explicit is not None and explicit.in_complete:
        return MILLION, MILLION
    match = (0, 0)
    if inferred is not None and inferred.ever_used:
        match = round(inferred.confidence * MILLION), MILLION
    if explicit is not None or inferred is None or inferred.used:
        return match
    return 0, MILLION if inferred.ever_used else round(INFERRED_UNUSED * MILLION)
