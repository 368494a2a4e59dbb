"""The memories of an import as one stream, and what is sorted out of it: rows of the log, doubles, bad lines."""

from __future__ import annotations

import tempfile
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

from sidecar.cli.import_files import Reading, Source, items
from sidecar.cli.import_tally import Tally
from sidecar.formats.items import Header, LogItem, MemoryItem, Problem

LOG_BYTES = 1 << 20
MOST_LOG_BYTES = 4_000_000
"""A row with more fits into no message of an export or an import."""
IN_MEMORY_BYTES = 16 << 20


class LogLines:
    """Rows of the log, kept aside on disk until all memories are in, with where each stood."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._sources: list[Source] = []
        self._where = array("q")

    @classmethod
    @contextmanager
    def opened(cls) -> Iterator[LogLines]:
        with tempfile.SpooledTemporaryFile(IN_MEMORY_BYTES) as file:
            yield cls(file)

    def __len__(self) -> int:
        return len(self._where) // 2

    def add(self, source: Source, place: int, line: bytes) -> None:
        if not self._sources or self._sources[-1] is not source:
            self._sources.append(source)
        self._where.extend((len(self._sources) - 1, place))
        self._file.write(line + b"\n")

    def where(self, index: int) -> tuple[Source, int]:
        """The source and place of a row by its number, from 0."""
        return self._sources[self._where[2 * index]], self._where[2 * index + 1]

    def chunks(self) -> Iterator[tuple[int, bytes]]:
        """The rows in pieces that fit into a message, each with the number of its first row."""
        self._file.seek(0)
        start, lines, size = 0, list[bytes](), 0
        for line in self._file:
            if lines and size + len(line) > LOG_BYTES:
                yield start, b"".join(lines)
                start, lines, size = start + len(lines), [], 0
            lines.append(line)
            size += len(line)
        if lines:
            yield start, b"".join(lines)


class Found:
    """The memories of all sources, one by one; rows of the log and problems go their own ways meanwhile."""

    def __init__(self, sources: Sequence[Source], reading: Reading, tally: Tally, log: LogLines) -> None:
        self.sources = sources
        self.reading = reading
        self.tally = tally
        self.log = log
        self.embedder = ""
        self.dimension: int | None = None
        """Numbers in a vector of the store; None as long as that is not known."""
        self.has_vectors = False
        """True once a memory that would go in had one."""
        self._where: dict[str, tuple[Source, int]] = {}
        self._order: list[str] = []
        self._other_embedder = False

    def memories(self) -> Iterator[Any]:
        """Each memory as the client's message. A bad one is sorted out here, so that it neither ends the stream nor
        keeps a later one of its id out."""
        from memoryranker.client import memory

        from sidecar.rpc.incoming_memories import faults

        for source, item in self._items():
            fields = dict(item.fields)
            if self._other_embedder:
                fields.pop("embedding", None)
            try:
                message = memory(**fields)
            except (TypeError, ValueError) as error:
                self._refuse(source, item.place, fields["id"], str(error))
                continue
            if wrong := faults(message, self.dimension):
                self._refuse(source, item.place, message.id, wrong)
                continue
            if message.id in self._where:
                before, place = self._where[message.id]
                first = f"{before.unit} {place}" if before is source else f"{before.name}, {before.unit} {place}"
                self._refuse(source, item.place, message.id, f"has the id of {first}, or is the same; it goes in once")
                continue
            self.has_vectors |= bool(message.embedding)
            self._where[message.id] = source, item.place
            self._order.append(message.id)
            for name in item.unsaid:
                self.tally.unsaid[name] = self.tally.unsaid.get(name, 0) + 1
            yield message

    def refuse(self, position: int, words: str) -> None:
        """Notes that the server refused the memory at this position of the stream."""
        memory_id = self._order[position]
        source, place = self._where[memory_id]
        self._refuse(source, place, memory_id, words)

    def refuse_row(self, index: int, words: str) -> None:
        """Notes that the server refused a row of the log, by its number."""
        source, place = self.log.where(index)
        self._refuse(source, place, "", words)

    def place_of(self, position: int) -> str:
        """Where the memory at this position of the stream stood, in words; "" before the first."""
        if position < 0:
            return ""
        source, place = self._where[self._order[position]]
        return f"{source.name}, {source.unit} {place}"

    def _items(self) -> Iterator[tuple[Source, MemoryItem]]:
        for source in self.sources:
            for item in items(source, self.reading):
                match item:
                    case MemoryItem():
                        yield source, item
                    case LogItem() if len(item.line) > MOST_LOG_BYTES:
                        words = f"has {len(item.line):,} bytes; a row of the log has at most {MOST_LOG_BYTES:,}"
                        self._refuse(source, item.place, "", words)
                    case LogItem():
                        self.log.add(source, item.place, item.line)
                    case Header():
                        self._compare(source, item)
                    case Problem():
                        self.tally.refused.append((source, item))

    def _compare(self, source: Source, header: Header) -> None:
        self._other_embedder = bool(self.embedder) and header.embedder != self.embedder
        if self._other_embedder:
            words = f"has vectors of {header.embedder}; left aside, as this server's embedder is {self.embedder}"
            self.tally.notes.append((source, Problem(header.place, "", words)))

    def _refuse(self, source: Source, place: int, memory_id: str, words: str) -> None:
        self.tally.refused.append((source, Problem(place, memory_id, words)))
