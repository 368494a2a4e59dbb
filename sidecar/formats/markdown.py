"""Markdown memory files, such as MEMORY.md, CLAUDE.md and dated daily notes: each bullet or paragraph is a memory.

A bullet keeps all that is nested in it. Headings stand before the text, so that a memory can be understood alone: the
bullet `- use tabs` under `## Style` and `### Go` becomes "Style / Go: use tabs". A first heading of level 1 that is the
only one is the file's title and stands before nothing. A heading with nothing below is a memory itself if it makes a
statement; else it is told. Pure: imports are named here and followed elsewhere.
"""

from __future__ import annotations

import datetime
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sidecar.formats.items import MemoryItem, Problem, made_id
from sidecar.formats.outline import CODE_SPAN, Outline, Part, is_statement, outline

_LINE_END = re.compile(r"\r\n|\r|\n")
_TITLE = re.compile(r"#{1,6}(?:[ \t]+(.*?))?(?:[ \t]+#+)?")
_MARKER = re.compile(r"([ \t]*(?:[-*+]|\d{1,9}[.)]))([ \t]*)")
_QUOTE = re.compile(r" {0,3}> ?")
_IMPORT = re.compile(r"(?:(?<=\s)|^)@([^\s@`]+)")
_TEXT_ENDINGS = (".md", ".markdown", ".mdc", ".txt", ".rst", ".adoc", ".org", ".json", ".yaml", ".yml", ".toml")
_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})(?!\d)")
_KEY = re.compile(r"""(["']?)\w[^:"']*\1:(?:[ \t]+(\S.*)|[ \t]*)""")
_LEAD_LEVEL = 7
"""Of a line that leads a list: below all headings."""
_NESTED_INDENT = 2
"""What is indented by so much more than a list belongs to its last bullet, also where CommonMark wants more."""


@dataclass(frozen=True, slots=True)
class Import:
    """A reference to another file, as `@docs/style.md`. `is_sure` if it looks like a text, and not like a person or a
    picture; `is_likely` also where it has another ending, or begins at the root."""

    line: int
    path: str
    is_sure: bool

    @property
    def is_likely(self) -> bool:
        """True for @2x.png and @/components, false for @maria and @org/pkg."""
        return self.is_sure or "." in self.path.rsplit("/", 1)[-1].lstrip(".") or self.path.startswith("/")


@dataclass(frozen=True, slots=True)
class Block:
    """One memory's text. `headings` are those it stands under, from the outside in; `day` is the date of one."""

    line: int
    text: str
    headings: tuple[str, ...]
    day: datetime.date | None


@dataclass(frozen=True, slots=True)
class Note:
    """A file that was read. `left_out` are headings, and lines that lead a list, with nothing below them."""

    blocks: tuple[Block, ...]
    imports: tuple[Import, ...]
    left_out: tuple[Problem, ...] = ()


def parse(text: str) -> Note:
    """Reads a file."""
    lines = _LINE_END.split(text.removeprefix("\ufeff"))
    start = _front_matter(lines)
    reader = _Reader(outline(lines[start:]), start + 1)
    for part in reader.outline.parts:
        reader.take(part)
    reader.end_above(0)
    blocks = sorted(reader.blocks, key=lambda block: block.line)
    return Note(tuple(_without_title(blocks, reader.title)), tuple(reader.imports()), tuple(reader.left_out))


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
class _Above:
    """A heading, or a line that leads a list; `is_used` once a memory stands below."""

    line: int
    level: int
    title: str
    is_used: bool = False


@dataclass(slots=True)
class _Reader:
    """Takes part by part; `_lines` is the text of the block that is open. Parts with no empty line between are one."""

    outline: Outline
    first_line: int
    blocks: list[Block] = field(default_factory=list)
    left_out: list[Problem] = field(default_factory=list)
    _first: _Above | None = None
    _tops: int = 0
    _above: list[_Above] = field(default_factory=list)
    _lines: list[str] = field(default_factory=list)
    _has_something: bool = False
    _start: int = 0
    _list_indent: int | None = None

    @property
    def title(self) -> _Above | None:
        """The file's: its first heading, if that is the only one of level 1."""
        return self._first if self._first is not None and self._first.level == 1 == self._tops else None

    def take(self, part: Part) -> None:
        lines = self.outline.lines
        if part.kind == "rule":
            self.end_above(_LEAD_LEVEL)
        elif part.kind == "heading":
            title = _TITLE.fullmatch(lines[part.begin].strip())
            text = (title[1] or "") if title else lines[part.begin].strip()
            heading = _Above(part.begin, part.level, text)
            self._first = self._first or heading
            self._tops += part.level == 1
            self.end_above(part.level)
            self._above.append(heading)
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
            self.end_above(_LEAD_LEVEL)
            self._add(part.begin, part.end, 4 if part.kind == "code" else 0, is_quote=part.kind == "quote")

    def flush(self) -> None:
        """Closes the block."""
        text = "\n".join(self._lines).strip("\n")
        if text and self._has_something:
            self._keep(self._start, text)
        self._lines, self._has_something, self._list_indent = [], False, None

    def end_above(self, level: int) -> None:
        """Closes the block, and what stands above of this level or a deeper one."""
        self.flush()
        while self._above and self._above[-1].level >= level:
            last = self._above.pop()
            if last.is_used or not _says_something(last.title, is_code=False):
                continue
            if is_statement(last.title) and last is not self.title:
                self._keep(last.line, last.title)
            else:
                words = f"left out, as no memory stands below it: {last.title}"
                self.left_out.append(Problem(last.line + self.first_line, "", words))

    def _keep(self, line: int, text: str) -> None:
        above = tuple(each.title for each in self._above if each.title)
        days = [day for each in self._above if each.level < _LEAD_LEVEL and (day := _date_at_start(each.title))]
        for each in self._above:
            each.is_used = True
        self.blocks.append(Block(line + self.first_line, text, above, days[-1] if days else None))

    def imports(self) -> Iterator[Import]:
        """Those of the whole file."""
        for number, line in self.outline.lines.items():
            if number not in self.outline.code:
                for match in _IMPORT.finditer(CODE_SPAN.sub("", line)):
                    if path := _path(match):
                        yield Import(number + self.first_line, path, _is_sure(path))

    def _lead_list(self) -> None:
        """A paragraph of one line that ends in a colon leads the list that follows, and is no memory itself."""
        if self._list_indent is None and len(self._lines) == 1 and self._lines[0].endswith((":", "\uff1a")):
            lead = self._lines.pop()[:-1].rstrip()
            self.end_above(_LEAD_LEVEL)
            self._above.append(_Above(self._start, _LEAD_LEVEL, lead))

    def _add(self, begin: int, end: int, indent: int = 0, *, in_item: bool = False, is_quote: bool = False) -> None:
        """Adds lines to the block without their indent and, of a quotation, its signs. Tabs within a line are kept;
        code keeps also those before it, and its empty lines."""
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
                text = line.lstrip()
                line = line[: len(line) - len(text)].expandtabs(4) + text
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

    def _is_empty(self, number: int) -> bool:
        return not self.outline.lines.get(number, "-").strip()

    def _indent(self, part: Part) -> int:
        line = self.outline.lines[part.begin].expandtabs(4)
        return len(line) - len(line.lstrip())


def _without_title(blocks: Sequence[Block], title: _Above | None) -> Iterator[Block]:
    for block in blocks:
        is_under = title is not None and block.headings[:1] == (title.title,)
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
    return path.lower().endswith(_TEXT_ENDINGS) or path.startswith(("./", "../", "~/"))


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
