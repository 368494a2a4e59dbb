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

_LINE_END = re.compile(r"\r\n|\r|\n")
_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*")
_UNDERLINE = re.compile(r" {0,3}(=+|-{2,})[ \t]*")
_RULE = re.compile(r" {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*")
_BULLET = re.compile(r"( *)(?:[-*+]|\d{1,9}[.)])[ \t]+(.*)")
_FENCE = re.compile(r" *(`{3,}(?!.*`)|~{3,})")
_QUOTE = re.compile(r"^ {0,3}> ?")
_CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)")
_CODE_OR_COMMENT = re.compile(f"{_CODE.pattern}|<!--")
_IMPORT = re.compile(r"(?:(?<=\s)|^)@([^\s@`]+)")
_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})(?!\d)")
_TOP_LEVEL_INDENT = 1
"""A bullet that is indented by more lies within the one before."""


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
    reader = _Reader(_comments_may_open(lines))
    for number, line in enumerate(lines[(start := _front_matter(lines)) :], start + 1):
        reader.take(number, line)
    reader.flush()
    return Note(tuple(_without_title(reader.blocks, reader.all_headings)), tuple(reader.imports))


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
    """Reads line by line; `_lines` is the block that is open."""

    comments_may_open: Sequence[tuple[bool, bool]]
    blocks: list[Block] = field(default_factory=list)
    imports: list[Import] = field(default_factory=list)
    all_headings: list[tuple[int, str]] = field(default_factory=list)
    _headings: list[tuple[int, str]] = field(default_factory=list)
    _lines: list[str] = field(default_factory=list)
    _start: int = 0
    _in_list: bool = False
    _after_blank: bool = False
    _lead: str = ""
    _fence: str = ""
    _in_comment: bool = False

    def take(self, number: int, line: str) -> None:
        line = line.expandtabs(4)
        if self._fence:
            self._lines.append(line)
            if line.strip().startswith(self._fence) and not line.strip().strip(self._fence[0]):
                self._fence = ""
            return
        line = self._uncommented(number, line)
        if fence := _FENCE.match(line):
            if self._after_blank and not (self._in_list and line.startswith("  ")):
                self.flush()
            self._fence = fence[1]
            self._add(number, line)
            return
        if not line.strip():
            if not self._in_list and not self._may_lead():
                self.flush()
            self._after_blank = bool(self._lines)
            return
        self._find_imports(number, line)
        heading = _HEADING.fullmatch(line)
        bullet = _BULLET.fullmatch(line)
        is_paragraph = bool(self._lines) and not self._in_list
        if heading:
            self._begin_section(len(heading[1]), heading[2] or "")
        elif is_paragraph and not self._after_blank and len(self._lines) == 1 and (under := _UNDERLINE.fullmatch(line)):
            title = self._lines.pop().strip()
            self._begin_section(1 if under[1][0] == "=" else 2, title)
        elif _RULE.fullmatch(line):
            self.flush()
            self._lead = ""
        elif bullet and (len(bullet[1]) <= _TOP_LEVEL_INDENT or not self._in_list):
            self.flush(before_list=True)
            self._in_list = True
            self._add(number, bullet[2])
        elif self._after_blank and not (self._in_list and line.startswith("  ")):
            self.flush()
            self._lead = ""
            self._add(number, _QUOTE.sub("", line))
        else:
            self._add(number, line.removeprefix("  ") if self._in_list else _QUOTE.sub("", line))

    def flush(self, *, before_list: bool = False) -> None:
        """Closes the block. A paragraph that ends in a colon leads the list that follows, and is no memory itself."""
        text = "\n".join(line.rstrip() for line in self._lines).strip()
        is_lead = before_list and self._may_lead()
        if text and not is_lead and _says_something(text):
            above = tuple(title for _, title in self._headings if title)
            headings = (*above, self._lead) if self._lead and self._in_list else above
            days = [day for title in reversed(above) if (day := _date_at_start(title))]
            self.blocks.append(Block(self._start, text, headings, days[0] if days else None))
        if is_lead:
            self._lead = text.removesuffix(":").strip()
        elif not self._in_list:
            self._lead = ""
        self._lines, self._in_list, self._after_blank = [], False, False

    def _may_lead(self) -> bool:
        """True for a paragraph of one line that ends in a colon: a list may follow, also after a blank line."""
        return len(self._lines) == 1 and not self._in_list and self._lines[0].rstrip().endswith(":")

    def _add(self, number: int, line: str) -> None:
        if not self._lines:
            self._start = number
        elif self._after_blank:
            self._lines.append("")
        self._after_blank = False
        self._lines.append(line)

    def _begin_section(self, level: int, title: str) -> None:
        self.flush()
        self._lead = ""
        while self._headings and self._headings[-1][0] >= level:
            self._headings.pop()
        heading = (level, _IMPORT.sub("", title).strip())
        self._headings.append(heading)
        self.all_headings.append(heading)

    def _uncommented(self, number: int, line: str) -> str:
        """The line without comments. What stands in code is none, nor is one that never ends."""
        if self._in_comment:
            _, end, line = line.partition("-->")
            if not end:
                return ""
            self._in_comment = False
        kept, at = "", 0
        while found := _CODE_OR_COMMENT.search(line, at):
            kept, begin, at = kept + line[at : found.start()], found[0], found.end()
            if begin != "<!--":
                kept += begin
            elif (closed := line.find("-->", at)) >= 0:
                at = closed + 3
            elif self.comments_may_open[number - 1][not kept.strip()]:
                self._in_comment = True
                return kept
            else:
                kept += begin
        return kept + line[at:]

    def _find_imports(self, number: int, line: str) -> None:
        for match in _IMPORT.finditer(_CODE.sub("", line)):
            path = match[1].rstrip(".,;:!?)]}>\"'*_")
            if path:
                last = path.rsplit("/", 1)[-1]
                is_sure = "." in last.lstrip(".") or path.startswith(("./", "../", "~/", "/"))
                self.imports.append(Import(number, path, is_sure))


def _comments_may_open(lines: Sequence[str]) -> list[tuple[bool, bool]]:
    """For each line, whether a comment that opens in the midst of it ends in a later line of its paragraph, and one
    that opens at its beginning in any later line."""
    found = []
    in_paragraph = anywhere = False
    for line in reversed(lines):
        found.append((in_paragraph, anywhere))
        ends = "-->" in line
        anywhere |= ends
        in_paragraph = ends or (in_paragraph and bool(line.strip()))
    return found[::-1]


def _without_title(blocks: Sequence[Block], headings: Sequence[tuple[int, str]]) -> Iterator[Block]:
    """The blocks without the file's title: its first heading, if that is the only one of level 1."""
    levels = [level for level, _ in headings]
    has_title = levels[:1] == [1] and levels.count(1) == 1
    for block in blocks:
        is_under = has_title and block.headings[:1] == (headings[0][1],)
        yield Block(block.line, block.text, block.headings[1:], block.day) if is_under else block


def _front_matter(lines: Sequence[str]) -> int:
    """How many lines at the beginning are metadata between two lines of dashes."""
    if lines[0].rstrip() != "---":
        return 0
    for number, line in enumerate(lines[1:], 2):
        if line.rstrip() in ("---", "..."):
            return number
    return 0


def _date_at_start(text: str) -> datetime.date | None:
    match = _DATE.match(text)
    try:
        return datetime.date(*map(int, match.groups())) if match else None
    except ValueError:
        return None


def _says_something(text: str) -> bool:
    """False for what holds only signs, or only references to files that are imported."""
    rest = _IMPORT.sub("", text)
    return any(unicodedata.category(character)[0] in "LNS" for character in rest)
