"""The blocks of a Markdown text, as CommonMark has them, and its lines without comments. Pure.

markdown-it-py finds the blocks; the text of a memory is what stands in their lines. A comment goes from `<!--` to the
first `-->` that stands in no fence; one that begins within a line of text ends in that paragraph. One that never ends
is text, as is what stands in code.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.token import Token

CODE_SPAN = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
_CODE_SPAN_OR_COMMENT = re.compile(f"{CODE_SPAN.pattern}|<!--", re.DOTALL)
_RULE = re.compile(r" {0,3}(-)(?:[ \t]*\1){2,}[ \t]*")
_MOST_NESTED = 100
"""What is nested deeper lies within what it is nested in, to the end of the text."""


@dataclass(frozen=True, slots=True)
class Part:
    """A block of the outermost level: the lines from `begin` to before `end`, counted from 0.

    `items` are the same of a list's items; `level` is a heading's.
    """

    kind: Literal["heading", "rule", "list", "quote", "code", "text"]
    begin: int
    end: int
    level: int = 0
    items: Sequence[tuple[int, int]] = ()


@dataclass(frozen=True, slots=True)
class Outline:
    """A text's parts in their order, the numbers of the lines that are `code`, and the lines without comments.

    Where a comment stood between parts there is an empty line; a line that one took out of a paragraph is not there.
    """

    parts: tuple[Part, ...]
    lines: dict[int, str]
    code: frozenset[int]


def outline(lines: Sequence[str]) -> Outline:
    """Reads a text, of which these are the lines without their ends."""
    text = "\n".join(lines)
    comments: list[tuple[int, int]] = []
    tokens = _PARSER.parse(text, {"ends": _ends_of_comments(lines, text), "comments": comments})
    shown = dict(enumerate(_without(text, comments).split("\n")))
    for token in tokens:
        if token.type == "inline":
            _take_out_comments(shown, *_span(token))
    code = frozenset(n for token in tokens if token.type in ("fence", "code_block") for n in range(*_span(token)))
    return Outline(tuple(_with_rules(_parts(tokens, shown), shown)), shown, code)


def is_statement(text: str) -> bool:
    """True for what says more than a section's name does: three words, or eight letters of a script without spaces."""
    words = sum(any(map(str.isalpha, word)) for word in text.split())
    return words >= 3 or sum(unicodedata.east_asian_width(letter) == "W" for letter in text) >= 8


def _parts(tokens: Sequence[Token], lines: dict[int, str]) -> list[Part]:
    parts: list[Part] = []
    items: list[tuple[int, int]] = []
    for token in tokens:
        if token.level == 1 and token.type == "list_item_open":
            items.append(_span(token))
        if token.level or token.nesting < 0:
            continue
        begin, end = _span(token)
        match token.type:
            case "hr":
                parts.append(Part("rule", begin, end))
            case "heading_open" if token.markup.startswith("#"):
                parts.append(Part("heading", begin, end, int(token.tag[1])))
            case "heading_open":
                parts += _underlined(begin, end, int(token.tag[1]), lines[end - 1])
            case "bullet_list_open" | "ordered_list_open":
                items = []
                parts.append(Part("list", begin, end, items=items))
            case "blockquote_open":
                parts.append(Part("quote", begin, end))
            case "code_block":
                parts.append(Part("code", begin, end))
            case "paragraph_open" | "fence":  # a fence shows itself that it is code
                parts.append(Part("text", begin, end))
    return parts


def _underlined(begin: int, end: int, level: int, under: str) -> list[Part]:
    """A line of text with a line of signs under it is a heading; more lines, or one dash alone, make none here: a
    rule under a paragraph is far more often meant."""
    if end - begin == 2 and under.strip() != "-":
        return [Part("heading", begin, end, level)]
    if _RULE.fullmatch(under):
        return [Part("text", begin, end - 1), Part("rule", end - 1, end)]
    return [Part("text", begin, end)]


def _with_rules(parts: Sequence[Part], lines: dict[int, str]) -> list[Part]:
    """With text and a rule for each line with `---` under it, if one of them is a statement and a heading follows, or
    nothing: whoever wrote that parts entries by rules."""
    underlined = [
        part.level == 2 and part.end - part.begin == 2 and bool(_RULE.fullmatch(lines[part.end - 1])) for part in parts
    ]
    ends = [*(part.kind == "heading" and part.level <= 2 for part in parts[1:]), True]
    if not any(
        is_heading and is_end and is_statement(lines[part.begin])
        for part, is_heading, is_end in zip(parts, underlined, ends, strict=False)
    ):
        return list(parts)
    found: list[Part] = []
    for part, is_heading in zip(parts, underlined, strict=True):
        middle = part.end - 1
        found += [Part("text", part.begin, middle), Part("rule", middle, part.end)] if is_heading else [part]
    return found


def _span(token: Token) -> tuple[int, int]:
    begin, end = token.map or (0, 0)
    return begin, end


def _ends_of_comments(lines: Sequence[str], text: str) -> list[int]:
    """Where `-->` stands outside of fences. A fence that is never closed is most likely itself in a comment."""
    if "<!--" not in text:
        return []
    fenced: set[int] = set()
    for token in _PARSER.parse(text, {"ends": [], "comments": []}):
        begin, end = _span(token)
        if token.type == "fence" and begin < end - 1 and lines[end - 1].rstrip().endswith(token.markup):
            fenced.update(range(begin, end))
    ends, at = [], 0
    for number, line in enumerate(lines):
        if number not in fenced:
            ends += [at + match.start() for match in re.finditer("-->", line)]
        at += len(line) + 1
    return ends


def _comment(state: StateBlock, begin: int, end: int, silent: bool) -> bool:
    """The rule for comments that begin a block: what stands after one is read as if it stood in its place."""
    if state.is_code_block(begin):
        return False
    ends: list[int] = state.env["ends"]
    line = begin
    while state.src.startswith("<!--", start := state.bMarks[line] + state.tShift[line]):
        place = bisect_left(ends, start + 4)
        if place == len(ends) or ends[place] >= state.eMarks[end - 1]:
            break
        if silent:
            return True
        stop = ends[place] + 3
        state.env["comments"].append((start, stop))
        indent = state.sCount[line]
        while state.eMarks[line] < stop:
            line += 1
        state.tShift[line], state.sCount[line] = state.skipSpaces(stop) - state.bMarks[line], indent
        if state.isEmpty(line):
            line += 1
            break
    state.line = line
    return line > begin


def _without(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """The text without what stands there, but with all its line ends."""
    kept, at = [], 0
    for begin, end in spans:
        kept += [text[at:begin], "\n" * text.count("\n", begin, end)]
        at = end
    return "".join([*kept, text[at:]])


def _take_out_comments(lines: dict[int, str], begin: int, end: int) -> None:
    """Takes them out of a paragraph or a heading."""
    text = "\n".join(lines[number] for number in range(begin, end))
    comments, at = [], 0
    while found := _CODE_SPAN_OR_COMMENT.search(text, at):
        at = found.end()
        if not found[1]:
            if (closed := text.find("-->", at)) < 0:
                break
            at = closed + 3
            comments.append((found.start(), at))
    if comments:
        for number, line in zip(range(begin, end), _without(text, comments).split("\n"), strict=True):
            if line.strip() or number == begin:
                lines[number] = line
            else:
                del lines[number]


def _parser() -> MarkdownIt:
    """Blocks alone. Definitions of links stay text, as do tables and HTML."""
    parser = MarkdownIt("commonmark", {"maxNesting": _MOST_NESTED})
    parser.disable(["inline", "text_join", "reference", "html_block"])
    parser.block.ruler.before("code", "comment", _comment, {"alt": ["paragraph", "blockquote"]})
    return parser


_PARSER = _parser()
