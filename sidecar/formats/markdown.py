"""Markdown memory files, such as MEMORY.md, CLAUDE.md and dated daily notes: each bullet or paragraph is a memory.

A bullet keeps all that is nested in it. Headings stand before the text, so that a memory can be understood alone: the
bullet `- use tabs` under `## Style` and `### Go` becomes "Style / Go: use tabs". A first heading of level 1 that is the
only one is the file's title and stands before nothing. Pure: imports are named here and followed elsewhere.
"""

from __future__ import annotations

import datetime
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sidecar.formats.items import MemoryItem, made_id
from sidecar.formats.outline import CODE_SPAN, Outline, Part, outline

_LINE_END = re.compile(r"\r\n|\r|\n")
_TITLE = re.compile(r"#{1,6}(?:[ \t]+(.*?))?(?:[ \t]+#+)?")
_MARKER = re.compile(r"([ \t]*(?:[-*+]|\d{1,9}[.)]))([ \t]*)")
_QUOTE = re.compile(r" {0,3}> ?")
_IMPORT = re.compile(r"(?:(?<=\s)|^)@([^\s@`]+)")
_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})(?!\d)")
_KEY = re.compile(r"""(["']?)\w[^:"']*\1:(?:[ \t]+(\S.*)|[ \t]*)""")
_NESTED_INDENT = 2
"""What is indented by so much more than a list belongs to its last bullet, also where CommonMark wants more."""


@dataclass(frozen=True, slots=True)
class Import:
    """A reference to another file, as `@docs/style.md`. `is_sure` if it looks like a file, and not like a person."""

    line: int
    path: str
    is_sure: bool


@dataclass(frozen=True, slots=True)
class Block:
    """One memory's text. `headings` are those it stands under, from the outside in; `day` is the date of one."""

    line: int
    text: str
    headings: tuple[str, ...]
    day: datetime.date | None


@dataclass(frozen=True, slots=True)
class Note:
    """A file that was read."""

    blocks: tuple[Block, ...]
    imports: tuple[Import, ...]


def parse(text: str) -> Note:
    """Reads a file."""
    lines = _LINE_END.split(text.removeprefix("\ufeff"))
    start = _front_matter(lines)
    reader = _Reader(outline(lines[start:]), start + 1)
    for part in reader.outline.parts:
        reader.take(part)
    reader.flush()
    return Note(tuple(_without_title(reader.blocks, reader.all_headings)), tuple(reader.imports()))


def memories(note: Note, name: str) -> Iterator[MemoryItem]:
    """The memories of a file. `name`, a path, becomes their source thread; a date in it is the day they were made.

    Ids come from the file's name, the text and the headings, and so stay as they are when others are added or moved.
    """
    day_of_name = day_of(name)
    thread = name.encode()[-256:].decode(errors="ignore")
    counts: Counter[str] = Counter()
    for sequence, block in enumerate(note.blocks, 1):
        headings = " / ".join(block.headings)
        # What is laid out in lines begins on one of its own.
        between = ":\n" if block.text.startswith(("`", "~", "|")) else ": "
        content = f"{headings}{between}{block.text}" if headings else block.text
        counts[content] += 1
        again = (counts[content],) if counts[content] > 1 else ()
        fields = {
            "id": made_id(content, thread, *again),
            "content": content,
            "source_thread": thread,
            "source_sequence": sequence,
        }
        day = block.day or day_of_name
        if day is not None:
            fields["create_time"] = datetime.datetime.combine(day, datetime.time(), datetime.UTC)
        yield MemoryItem(block.line, fields)


def day_of(name: str) -> datetime.date | None:
    """The date that a file's name begins with, as in memory/2026-04-01.md and 2026-04-01-standup.md."""
    return _date_at_start(re.split(r"[/\\]", name)[-1])


@dataclass(slots=True)
class _Reader:
    """Takes part by part; `_lines` is the text of the block that is open. Parts with no empty line between are one."""

    outline: Outline
    first_line: int
    blocks: list[Block] = field(default_factory=list)
    all_headings: list[tuple[int, str]] = field(default_factory=list)
    _headings: list[tuple[int, str]] = field(default_factory=list)
    _lines: list[str] = field(default_factory=list)
    _has_something: bool = False
    _start: int = 0
    _list_indent: int | None = None
    _lead: str = ""

    def take(self, part: Part) -> None:
        lines = self.outline.lines
        if part.kind == "rule":
            self.flush()
            self._lead = ""
        elif part.kind == "heading":
            title = _TITLE.fullmatch(lines[part.begin].strip())
            self._begin_section(part.level, (title[1] or "") if title else lines[part.begin].strip())
        elif self._list_indent is not None and self._indent(part) >= self._list_indent + _NESTED_INDENT:
            self._add(part.begin, part.end, self._indent(part))
        elif part.kind == "list":
            self._lead_list()
            for begin, end in part.items:
                self.flush()
                self._list_indent = self._indent(part)
                self._add(begin, end, in_item=True)
        elif self._lines and not self._is_empty(part.begin - 1):
            self._add(part.begin, part.end, is_quote=part.kind == "quote" and self._list_indent is None)
        else:
            self.flush()
            self._lead = ""
            self._add(part.begin, part.end, 4 if part.kind == "code" else 0, is_quote=part.kind == "quote")

    def flush(self) -> None:
        """Closes the block."""
        text = "\n".join(self._lines).strip("\n")
        if text and self._has_something:
            above = tuple(title for _, title in self._headings if title)
            headings = (*above, self._lead) if self._lead else above
            days = [day for title in reversed(above) if (day := _date_at_start(title))]
            self.blocks.append(Block(self._start + self.first_line, text, headings, days[0] if days else None))
        self._lines, self._has_something, self._list_indent = [], False, None

    def imports(self) -> Iterator[Import]:
        """Those of the whole file."""
        for number, line in self.outline.lines.items():
            if number not in self.outline.code:
                for match in _IMPORT.finditer(CODE_SPAN.sub("", line)):
                    if path := _path(match):
                        yield Import(number + self.first_line, path, _is_sure(path))

    def _lead_list(self) -> None:
        """A paragraph of one line that ends in a colon leads the list that follows, and is no memory itself."""
        if self._list_indent is None and len(self._lines) == 1 and self._lines[0].endswith(":"):
            self._lead = self._lines.pop().removesuffix(":").rstrip()

    def _add(self, begin: int, end: int, indent: int = 0, *, in_item: bool = False, is_quote: bool = False) -> None:
        """Adds lines to the block without their indent and, of a quotation, its signs. Code keeps its tabs, and its
        empty lines."""
        if not self._lines:
            self._start = begin
        elif self._lines[-1] and self._is_empty(begin - 1):
            self._lines.append("")
        for number in range(begin, end):
            line = self.outline.lines.get(number)
            if line is None:
                continue
            is_code = number in self.outline.code
            if not is_code:
                line = line.expandtabs(4)
            if in_item and number == begin:
                indent, line = _bullet(line)
            elif is_quote:
                line = _QUOTE.sub("", line, count=1)
            line = _dedented(line, indent).rstrip()
            if not self._lines and not is_code:
                line = line.lstrip()
            if line or is_code or (self._lines and self._lines[-1]):
                self._lines.append(line)
            self._has_something |= _says_something(line, is_code)

    def _begin_section(self, level: int, title: str) -> None:
        self.flush()
        self._lead = ""
        while self._headings and self._headings[-1][0] >= level:
            self._headings.pop()
        heading = (level, title)
        self._headings.append(heading)
        self.all_headings.append(heading)

    def _is_empty(self, number: int) -> bool:
        return not self.outline.lines.get(number, "-").strip()

    def _indent(self, part: Part) -> int:
        line = self.outline.lines[part.begin].expandtabs(4)
        return len(line) - len(line.lstrip())


def _without_title(blocks: Sequence[Block], headings: Sequence[tuple[int, str]]) -> Iterator[Block]:
    """The blocks without the file's title: its first heading, if that is the only one of level 1."""
    levels = [level for level, _ in headings]
    has_title = levels[:1] == [1] and levels.count(1) == 1
    for block in blocks:
        is_under = has_title and block.headings[:1] == (headings[0][1],)
        yield Block(block.line, block.text, block.headings[1:], block.day) if is_under else block


def _front_matter(lines: Sequence[str]) -> int:
    """How many lines at the beginning are metadata between two lines of dashes: keys of a YAML mapping, each with a
    value, or with what is indented or listed below it."""
    if lines[0].rstrip() != "---":
        return 0
    may_list = None
    for number, line in enumerate(lines[1:], 2):
        if line.rstrip() in ("---", "...") and number > 2:
            return number
        if key := _KEY.fullmatch(line):
            may_list = not key[2]
        elif may_list is None or not (
            not line.strip() or line.startswith((" ", "\t", "#")) or (may_list and line.startswith("- "))
        ):
            return 0
    return 0


def _date_at_start(text: str) -> datetime.date | None:
    match = _DATE.match(text)
    try:
        return datetime.date(*map(int, match.groups())) if match else None
    except ValueError:
        return None


def _path(found: re.Match[str]) -> str:
    return found[1].rstrip(".,;:!?)]}>\"'*_")


def _is_sure(path: str) -> bool:
    return "." in path.rsplit("/", 1)[-1].lstrip(".") or path.startswith(("./", "../", "~/", "/"))


def _says_something(line: str, is_code: bool) -> bool:
    """False for what holds only signs, or only references to files that are imported."""
    rest = line if is_code else _IMPORT.sub(lambda found: "" if _is_sure(_path(found)) else found[0], line)
    return any(unicodedata.category(character)[0] in "LNS" for character in rest)


def _bullet(line: str) -> tuple[int, str]:
    """The column at which a bullet's text stands, to which what is nested in it is indented; and the line with spaces
    alone before its text."""
    marker = _MARKER.match(line)
    if not marker:
        return 0, line
    width, spaces = len(marker[1].expandtabs(4)), len(marker[0].expandtabs(4))
    rest = line[marker.end() :]
    return (spaces if rest and width < spaces <= width + 4 else width + 1), " " * spaces + rest


def _dedented(line: str, columns: int) -> str:
    """Without so much space at its beginning, if there is so much. A tab goes to the next column that 4 divides."""
    at = width = 0
    while width < columns and line[at : at + 1] in (" ", "\t"):
        width += 1 if line[at] == " " else 4 - width % 4
        at += 1
    return " " * (width - columns) + line[at:]
