"""The files of an import: finds and opens them, follows the imports of Markdown files, and gives out what they hold."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import click

from sidecar.cli.failures import unreadable
from sidecar.formats import documents, jsonl, markdown
from sidecar.formats.detect import HEAD_BYTES, detect
from sidecar.formats.items import Item, Problem

MOST_IMPORTS_DEEP = 16
MARKDOWN_ENDINGS = (".md", ".markdown")
NOTE_BYTES = 64 << 20
"""A Markdown file or a JSON document is read whole, and larger ones are refused; JSON Lines may have any length."""


@dataclass(slots=True)
class Source:
    """One file. `unit` is what its places count; `problems` were found before it was read; `notes` cost
    nothing."""

    name: str
    format: str
    path: Path | None = None
    note: markdown.Note | None = None
    problems: list[Problem] = field(default_factory=list)
    notes: list[Problem] = field(default_factory=list)

    @property
    def unit(self) -> str:
        """line, or memory."""
        return "memory" if self.format == "json" else "line"


@dataclass(slots=True)
class Reading:
    """How files are read. `aside` collects the names of foreign fields that no --map takes, with their counts."""

    maps: Mapping[str, Sequence[str]]
    format: str | None = None
    aside: dict[str, int] = field(default_factory=dict)


def find(names: Iterable[str], reading: Reading) -> list[Source]:
    """The sources that the arguments name: files, folders for the Markdown files in them, - for standard input.

    Markdown files that others import follow them. Failure or UsageError for a named file that cannot be read; one that
    a folder holds, or a file imports, is told as a problem.
    """
    sources: list[Source] = []
    seen: set[Path] = set()
    for name in names:
        if name == "-":
            sources.append(Source("-", ""))
            continue
        path = Path(name)
        try:
            sources.extend(_folder(path, reading, seen) if path.is_dir() else _file(path, reading, seen, ()))
        except OSError as error:
            raise unreadable(name_of(path), error) from error
        except ValueError as error:
            raise click.UsageError(f"{name_of(path)} {error}") from error
    return sources


def items(source: Source, reading: Reading) -> Iterator[Item]:
    """What a source holds. Failure or UsageError where it cannot be read on."""
    yield from source.problems
    if source.note is not None:
        source.notes += source.note.left_out
        yield from markdown.memories(source.note, source.name)
        return
    with _opened(source) as stream:
        begun = _Begun(stream)
        if wrong := jsonl.utf16(begun.head):
            yield Problem(1, "", wrong)
            return
        source.format = source.format or _format(source.name, begun.head, reading)
        if source.format == "jsonl":
            yield from jsonl.read(begun.lines(), reading.maps, reading.aside)
            return
        try:
            data = begun.whole()
        except ValueError as error:
            raise click.UsageError(f"{source.name} {error}") from error
        try:
            if source.format == "json":
                yield from documents.read(data, reading.maps, reading.aside)
            else:
                note = markdown.parse(data.decode("utf-8-sig"))
                source.notes += [_not_followed(each) for each in note.imports if each.is_likely]
                source.notes += note.left_out
                yield from markdown.memories(note, source.name)
        except UnicodeDecodeError as error:
            yield Problem(1, "", jsonl.not_utf8(error))
        except ValueError as error:
            yield Problem(1, "", str(error))


def count(source: Source, reading: Reading) -> int | None:
    """How many memories a source most likely holds; None if that cannot be told before it is read."""
    if source.note is not None:
        return len(source.note.blocks)
    if source.path is None or source.format != "jsonl":
        return None
    with _opened(source) as stream:
        lines = (line for line in stream if line.strip())
        return sum(1 for line in lines if reading.maps or not line.startswith(b'{"type":'))


def name_of(path: Path) -> str:
    """A file's name as it goes into a store: from the working directory on if it lies there, else from the root."""
    absolute = Path(os.path.abspath(path))
    try:
        return absolute.relative_to(Path.cwd()).as_posix()
    except ValueError:
        return absolute.as_posix()


def _folder(folder: Path, reading: Reading, seen: set[Path]) -> Iterator[Source]:
    """The Markdown files in a folder and in those below it. One that cannot be read, also a folder below, holds up no
    other. OSError if the folder itself cannot be read."""
    found: dict[Path, OSError | None] = {}

    def note(error: OSError) -> None:
        if Path(error.filename) == folder:
            raise error
        found[Path(error.filename)] = error

    for at, folders, files in os.walk(folder, onerror=note):
        # What a folder of such a name holds is found by itself; links are not followed.
        names = [*files, *(each for each in folders if os.path.islink(os.path.join(at, each)))]
        found |= {Path(at, each): None for each in names if Path(each).suffix.lower() in MARKDOWN_ENDINGS}
    if not found:
        raise click.UsageError(f"{folder} is a folder without Markdown files; name files of other formats")
    for each in sorted(found):
        try:
            if unread := found[each]:
                raise unread
            if each.exists() and not each.is_file():
                raise ValueError("is no file; name it by itself")
            yield from _file(each, reading, seen, ())
        except (OSError, ValueError) as error:
            yield Source(name_of(each), "markdown", each, markdown.Note((), ()), [Problem(0, "", _fault(error))])


def _file(path: Path, reading: Reading, seen: set[Path], above: tuple[Path, ...]) -> Iterator[Source]:
    """A file, and after it those that it imports. OSError or ValueError if the first cannot be read."""
    place = _place(path)
    if place in seen:
        return
    seen.add(place)
    source = Source(name_of(path), "", path)
    if path.exists() and not path.is_file():  # a pipe gives what it has once, so it is left for the one reading
        yield source
        return
    with path.open("rb") as stream:
        begun = _Begun(stream)
        if jsonl.utf16(begun.head):  # which is told when it is read
            yield source
            return
        source.format = _format(path.name, begun.head, reading)
        if source.format != "markdown":
            yield source
            return
        data = begun.whole()
    try:
        source.note = markdown.parse(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        source.problems.append(Problem(line, "", f"is not UTF-8, at byte {error.start + 1} of the file"))
        source.note = markdown.Note((), ())
    yield source
    for each in source.note.imports:
        yield from _imported(each, path, source, reading, seen, (*above, place))


def _place(path: Path) -> Path:
    """Where a file really lies. Links that lead nowhere, or in a circle, are left to whoever opens it."""
    return Path(os.path.realpath(path))


def _fault(error: OSError | ValueError) -> str:
    return f"cannot be read: {error.strerror or error}" if isinstance(error, OSError) else str(error)


def _not_followed(found: markdown.Import) -> Problem:
    """Of what came through a pipe, which lies in no folder."""
    return Problem(found.line, "", f"imports @{found.path}, which is not followed; name that file itself")


def _imported(
    found: markdown.Import,
    by: Path,
    source: Source,
    reading: Reading,
    seen: set[Path],
    above: tuple[Path, ...],
) -> Iterator[Source]:
    try:
        path = by.parent / Path(found.path).expanduser()
        is_file = path.is_file()
    except (OSError, RuntimeError, ValueError):  # too long for a name, or the home of an unknown user
        path, is_file = by.parent / found.path, False
    if not is_file:
        if found.is_sure:
            source.problems.append(Problem(found.line, "", f"imports @{found.path}, which is not there ({path})"))
        elif found.is_likely:
            source.notes.append(Problem(found.line, "", f"says @{found.path}, which is no file here; kept as text"))
    elif _place(path) in above:
        source.notes.append(Problem(found.line, "", f"imports @{found.path}, which imports this file; taken once"))
    elif len(above) > MOST_IMPORTS_DEEP:
        words = f"imports @{found.path}, more than {MOST_IMPORTS_DEEP} imports deep; name that file itself"
        source.problems.append(Problem(found.line, "", words))
    else:
        try:
            yield from _file(path, Reading(reading.maps, "markdown"), seen, above)
        except (OSError, ValueError) as error:
            source.problems.append(Problem(found.line, "", f"imports @{found.path}, which {_fault(error)}"))


def _format(name: str, head: bytes, reading: Reading) -> str:
    try:
        return reading.format or detect(name, head)
    except ValueError as error:
        raise click.UsageError(str(error)) from error


@contextmanager
def _opened(source: Source) -> Iterator[IO[bytes]]:
    try:
        if source.path is None:
            yield sys.stdin.buffer
        else:
            with source.path.open("rb") as stream:
                yield stream
    except OSError as error:
        raise unreadable(source.name, error) from error


class _Begun:
    """A stream whose first line with something on it has been read, to see what format it has."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._lines: list[bytes] = []
        while line := stream.readline(HEAD_BYTES):
            self._lines.append(line)
            if line.strip():
                break

    @property
    def head(self) -> bytes:
        """What has been read."""
        return b"".join(self._lines)

    def lines(self) -> Iterator[bytes]:
        """All lines. One that was cut where the look at it ended is whole again."""
        *before, last = self._lines or [b""]
        yield from before
        if last and not last.endswith(b"\n"):
            last += self._stream.readline()
        if last:
            yield last
        yield from self._stream

    def whole(self) -> bytes:
        """All of it. ValueError if it is too long for that."""
        data = self.head + self._stream.read(NOTE_BYTES)
        if len(data) > NOTE_BYTES:
            raise ValueError(f"has more than {NOTE_BYTES >> 20} MiB; make JSON Lines of it")
        return data
