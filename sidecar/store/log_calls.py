"""What the store does for the log of packets, and of the reports on them; see `sidecar.store.store`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import itemgetter
from sqlite3 import Connection
from typing import Any, TypeVar

from sidecar.domain import (
    Micros,
    Packet,
    UseCounts,
    UseReport,
)
from sidecar.store import (
    log,
    packets,
    prune,
    pruned,
    reports,
    tally,
)
from sidecar.store.count_calls import CountCalls
from sidecar.store.jobs import Done
from sidecar.store.reported import find_packet
from sidecar.store.reports import LoggedPacket, ReportOutcome
from sidecar.store.requests import Once, Replayed, once_only, remember

R = TypeVar("R")


class LogCalls(CountCalls):
    """Writes and reads the log."""

    def log_packet(self, packet: Packet, once: Once | None = None) -> Replayed | None:
        """Writes a packet down; it survives the process from then on. With a `once`, a retry logs nothing and is
        answered with the id of the first packet, as `once` encoded it."""
        rows = packets.to_rows(packet)

        def work(db: Connection) -> Done[str]:
            packets.insert(db, rows)
            return Done(packet.packet_id)

        logged = self._writer.submit(once_only(packet.namespace, once, packet.create_time, work), durable=False)
        return logged if isinstance(logged, Replayed) else None

    def get_packet(self, namespace: str | None, packet_id: str) -> LoggedPacket:
        """A packet as it was served, with what is known of its use. None means whosesoever.

        Raises PacketNotFoundError.
        """
        with self._counted_snapshot() as db:
            return reports.read_logged(db, namespace, packet_id)

    def recent_reserved(self, namespace: str, session_id: str, packets_back: int = 3) -> frozenset[int]:
        """Keys of the memories drawn for a reserved slot in the last packets of a session; none without a session."""
        if not session_id:
            return frozenset()
        with self._readers.glance() as db:
            return packets.recent_reserved(db, namespace, session_id, packets_back)

    def report(self, report: UseReport, now: Micros, once: Once | None = None) -> ReportOutcome | Replayed:
        """Takes a report of use in; `now` is when it arrived. The same words again change nothing. See `CountCalls` for
        when it is counted.

        Raises PacketNotFoundError, also if the packet is not in the report's namespace.
        """

        return self._report(report.namespace, report.packet_id, [report], now, once, itemgetter(0))

    def report_together(
        self, packet_id: str, of_packet: Sequence[UseReport], now: Micros, once: Once | None = None
    ) -> list[ReportOutcome] | Replayed:
        """Takes reports on one packet in, all or none; also none, where a request is to be known again. Raises as
        `report` does."""

        return self._report(None, packet_id, of_packet, now, once, list)

    def _report(
        self,
        namespace: str | None,
        packet_id: str,
        of_packet: Sequence[UseReport],
        now: Micros,
        once: Once | None,
        result: Callable[[list[ReportOutcome]], R],
    ) -> R | Replayed:
        def work(db: Connection) -> Done[R | Replayed]:
            packet = find_packet(db, namespace, packet_id)
            taken = reports.take(db, packet, of_packet, now)
            value = result(taken.outcomes)
            if once is not None and (found := remember(db, packet.namespace, once, now, value)) is not None:
                return Done(found)
            reports.write(db, packet, taken)
            return self._taken_in(db, value)

        return self._writer.submit(work, durable=True)

    def log_rows(
        self, namespace: str, from_time: Micros | None = None, until_time: Micros | None = None
    ) -> Iterator[list[log.LogRow]]:
        """What a rescore learned, what pruned packets had said of use, what memories have besides a caller's fields,
        then packets with their reports, page by page; each page is of one moment. Ratings and packets may be bounded to
        [from_time, until_time); then all that has no time is left out."""
        bounded = from_time is not None or until_time is not None
        with self._readers.snapshot() as db:
            rows, last = log.store_priors(db), log.last_packet(db)
            count = log.packet_count(db, namespace, last)
        if not bounded:
            yield rows
            yield from self._pages(partial(pruned.sessions, namespace=namespace), "")
        for rows in self._pages(partial(log.memory_states, namespace=namespace), 0):
            yield [row for row in rows if not bounded or log.is_within(row, from_time, until_time)]
        if not bounded:
            yield from self._pages(partial(pruned.uses, namespace=namespace), 0)
        packets_ = partial(log.packets_with_reports, namespace=namespace, from_time=from_time, until_time=until_time)
        yield from self._pages(packets_, 0)
        with self._readers.snapshot() as db:
            was_pruned = log.packet_count(db, namespace, last) < count
        if was_pruned and not bounded:  # meanwhile, and so what these packets said may be in none of the pages
            yield from self._pages(partial(pruned.sessions, namespace=namespace), "")
            yield from self._pages(partial(pruned.uses, namespace=namespace), 0)

    def _pages(self, read: Callable[..., tuple[list[Any], Any]], after: Any) -> Iterator[list[log.LogRow]]:
        """What `read` finds after a key, page by page."""
        while after is not None:
            with self._readers.snapshot() as db:
                rows, after = read(db, after=after)
            yield rows

    def take_log_rows(self, namespace: str, rows: Sequence[tuple[int, log.LogRow]]) -> log.LogOutcome:
        """Takes numbered rows into a namespace, in their order; what is there already stays as it is."""
        return self._writer.submit(lambda db: log.take(db, namespace, rows), durable=True)

    def use_counts_as_of(self, namespace: str, time: Micros) -> dict[int, UseCounts]:
        """What use said of a namespace's memories when only reports received by `time` were known, by memory key.

        Reads the whole feedback log of the namespace.
        """
        with self._readers.snapshot() as db:
            return tally.counts_as_of(db, namespace, time)

    def use_times(self, namespace: str) -> list[Micros]:
        """The time at which each report of uses on a namespace's packets arrived: there use_counts_as_of may differ."""
        with self._readers.snapshot() as db:
            return tally.times(db, namespace)

    def prune(
        self,
        namespace: str,
        older_than: Micros | None,
        max_bytes: int | None,
        keep_from: Micros,
        check: Callable[[], None],
        *,
        dry_run: bool = False,
    ) -> prune.Pruned:
        """Removes packets before `older_than`, and the oldest until the log has at most `max_bytes`; of a namespace, or
        of all for "". None from `keep_from` on. Other writes come between; `check` may raise, and what is done stays.
        """
        self.count_reports()
        with self._readers.snapshot() as db:
            keys = prune.choose(db, namespace, older_than, max_bytes, keep_from)
            if dry_run:
                return prune.measure(db, keys)
        done = prune.Pruned()
        for start in range(0, len(keys), prune.AT_ONCE):
            check()
            some = keys[start : start + prune.AT_ONCE]
            done = done.plus(self._writer.submit(partial(prune.remove, keys=some), durable=True, frees=True))
        return done

    def log_growth(self, now: Micros) -> int:
        """About how many bytes a day the packet log grew by over the last seven days."""
        with self._readers.snapshot() as db:
            return prune.growth(db, now)
