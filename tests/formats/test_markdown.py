"""Markdown memory files: what is a memory, what stands before it, and which files it names."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.formats import markdown


def contents(text: str, name: str = "MEMORY.md") -> list[str]:
    return [item.fields["content"] for item in markdown.memories(markdown.parse(text), name)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- one\n- two\n", ["one", "two"]),
        ("* one\n+ two\n1. three\n2) four", ["one", "two", "three", "four"]),
        ("a paragraph\nof two lines\n\nanother", ["a paragraph\nof two lines", "another"]),
        ("- one\n  goes on\n  - nested\n\n  and on\n- two", ["one\ngoes on\n- nested\n\nand on", "two"]),
        ("# Title\n- one\n## A\n- two\n### B\n- three\n## C\ntext", ["one", "A: two", "A / B: three", "C: text"]),
        ("# A\n- one\n# B\n- two", ["A: one", "B: two"]),
        ("before\n\n# A\n- one", ["before", "one"]),
        ("A\n===\n\n- one\n\nB\n---\n- two", ["one", "B: two"]),
        ("Steps:\n- one\n- two\n\nafter", ["Steps: one", "Steps: two", "after"]),
        ("Steps:\n\n- one", ["Steps: one"]),
        ("Just a colon:\n\ntext", ["Just a colon:", "text"]),
        (
            "## A\n```sh\n# no heading\n- no bullet\n\n@no/import.md\n```\n",
            ["A:\n```sh\n# no heading\n- no bullet\n\n@no/import.md\n```"],
        ),
        ("- run\n  ```\n  x\n\n  y\n  ```\n- two", ["run\n```\nx\n\ny\n```", "two"]),
        ("---\nname: x\n---\n- one", ["one"]),
        ("---\n\n- one\n\n***\n\n- two", ["one", "two"]),
        ("<!-- hidden -->- one\n<!-- a\n- b\n-->\n- two <!-- c -->", ["one", "two"]),
        ("- use `<!--` here\n- two\n- three <!-- hidden --> shown", ["use `<!--` here", "two", "three  shown"]),
        ("- `a` <!-- `b` -->c\n- ``x ` <!--`` d", ["`a` c", "``x ` <!--`` d"]),
        ("- a\n\n<!-- never closed\n\n- b\n\n- c", ["a", "<!-- never closed", "b", "c"]),
        (
            "one <!-- goes\non --> and\n\ntwo <!-- does not\n\nthree --> more",
            ["one\n and", "two <!-- does not", "three --> more"],
        ),
        ("```make test```\n\nParagraph.\n\n- after", ["```make test```", "Paragraph.", "after"]),
        ("> quoted\n> lines", ["quoted\nlines"]),
        ("a -> b\n\n> c -> d", ["a -> b", "c -> d"]),
        ("## Empty\n\n-\n- \n***", []),
        ("| a | b |\n|---|---|\n| 1 | 2 |", ["| a | b |\n|---|---|\n| 1 | 2 |"]),
        ("- [ ] open\n- [x] done", ["[ ] open", "[x] done"]),
        ("[a]: https://b.c\n\n<div>\n\n- one\n\n</div>", ["[a]: https://b.c", "<div>", "one", "</div>"]),
        ("  - one\n  - two\n    - nested", ["one", "two\n- nested"]),
        ("1. one\n  - nested\n2. two\n\n  and on", ["one\n- nested", "two\n\nand on"]),
        ("a\nb\n---\nc", ["a\nb", "c"]),
        ("We ship on the\n24. Nobody works on that day.", ["We ship on the\n24. Nobody works on that day."]),
        ("All of\n1. one\n2. two", ["All of", "one", "two"]),
        ("", []),
    ],
)
def test_bullets_and_paragraphs_are_memories(text: str, expected: list[str]) -> None:
    """With what is nested in them, and their headings before them."""
    found = [content.replace("\n  ", "\n") for content in contents(text)]
    assert found == [each.replace("\n  ", "\n") for each in expected]


@pytest.mark.parametrize("indent", ["- ", "* ", "1. ", "1.  ", "-\t", "  - "])
@pytest.mark.parametrize("fence", ["```", "````", "~~~"])
def test_a_bullet_may_begin_with_code(indent: str, fence: str) -> None:
    """Which ends where its fence does."""
    inner = indent if indent.isspace() else " " * len(indent.expandtabs(4))
    text = f"{indent}{fence}sh\n{inner}make deploy\n{inner}{fence}\n{indent}second bullet\n\n## Head\n\n- third\n"
    assert contents(text) == [f"{fence}sh\nmake deploy\n{fence}", "second bullet", "Head: third"]


@pytest.mark.parametrize("before", ["", "> ", "  ", "\t"])
def test_code_keeps_its_tabs(before: str) -> None:
    """A Makefile works as before, in a bullet and in a quotation too."""
    code = ["```make", "all: a", "\tcc -o b\ta", "", "\t\t@echo done", "```"]
    first = {"  ": "- ", "\t": "-\t"}.get(before, before)
    text = "\n".join([first + code[0], *(before + line if line else before.strip() for line in code[1:])])
    assert contents(text) == ["\n".join(code)]


def test_text_keeps_the_tabs_within_its_lines() -> None:
    """Columns stay columns; what indents a line becomes spaces, as of a bullet nested in another."""
    assert contents("a\tb\nc\td\n\n-\te\tf\n\t- g\th\n-\ti\n> j\tk\n") == [
        "a\tb\nc\td",
        "e\tf\n- g\th",
        "i\n> j\tk",
    ]


def test_code_keeps_how_it_is_indented() -> None:
    """Also where four spaces make it code."""
    assert contents("    if a:\n        b\n\n    c\n") == ["if a:\n    b\n\nc"]
    assert contents("- one:\n\n      if a:\n      \tb\n") == ["one:\n\n    if a:\n    \tb"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("    <!-- a -->\n    b", ["<!-- a -->\nb"]),
        ("- one\n\n      <!-- a -->\n- two", ["one\n\n    <!-- a -->", "two"]),
        ("> ```\n> <!-- x -->\n> ```", ["```\n<!-- x -->\n```"]),
        ("- ~~~\n  <!-- x\n  ~~~\n- y -->", ["~~~\n<!-- x\n~~~", "y -->"]),
        ("a `<!-- b\n-->` c", ["a `<!-- b\n-->` c"]),
    ],
)
def test_what_looks_like_a_comment_in_code_is_kept(text: str, expected: list[str]) -> None:
    """Whatever the code stands in."""
    assert contents(text) == expected


MERMAID = "```mermaid\ngraph\nC --> D\n```"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            f"<!-- never ends\n\n- still here\n\n{MERMAID}\n\n- after",
            ["<!-- never ends", "still here", MERMAID, "after"],
        ),
        (f"<!-- never ends\n- still here\n{MERMAID}\n- after", ["<!-- never ends", f"still here\n{MERMAID}", "after"]),
        ("<!-- never ends\n- one\n- ```\n  -->\n  ```", ["<!-- never ends", "one", "```\n-->\n```"]),
        (f"<!--\n{MERMAID}\n-->\n- after", ["after"]),
        ("<!-- a\n```\n-->\n- after", ["after"]),
        ("<!-- a --> <!-- b\n\nc --> one\n- two", ["one", "two"]),
        ("Steps:\n<!-- a -->\n- one", ["Steps: one"]),
        ("> <!-- a\n> b --> one\n> two", ["one\ntwo"]),
        ("- one <!-- a\n- two -->", ["one <!-- a", "two -->"]),
        ("## A <!-- b -->\n- one <!-- c\n  d\n  e --> f\n  g", ["A: one\nf\ng"]),
        ("<!-- a\n" * 20_000 + "- one", ["<!-- a\n" * 19_999 + "<!-- a", "one"]),
    ],
)
def test_a_comment_ends_outside_of_code_or_hides_nothing(text: str, expected: list[str]) -> None:
    """One that holds code is hidden as a whole."""
    assert contents(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("---\nname: x\nused-by:\n- a\n- b\n# note\ndate created: 2026\nabout: >\n  c\n\n  d\n...\n- one", ["one"]),
        ("---\n\nRemember the milk.\n\n---\n\n- one", ["Remember the milk.", "one"]),
        ("---\n- one\n- two\n---\n- three", ["one", "two", "three"]),
        ("---\n- one: two\n---\n- three", ["one: two", "three"]),
        ("---\nOwner: maria\nand all of us\n---\n- one", ["Owner: maria\nand all of us", "one"]),
        ("---\nOwner: maria\n\n- one\n\n---\n- two", ["Owner: maria", "one", "two"]),
        ("---\n## Style: Go\n- one\n---\n- two", ["Style: Go: one", "Style: Go: two"]),
        ("---\nname: x\n\nnever closed", ["name: x", "never closed"]),
    ],
)
def test_front_matter_is_a_mapping_and_all_else_is_text(text: str, expected: list[str]) -> None:
    """Between two rules there may be memories."""
    assert contents(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("## Ask @maria first\n- she owns billing", ["Ask @maria first: she owns billing"]),
        ("## On-call: @bob\nweekdays", ["On-call: @bob: weekdays"]),
        ("## @org/pkg\n- @maria\n- @docs/style.md", ["@org/pkg: @maria"]),
        ("    @docs/style.md", ["@docs/style.md"]),
    ],
)
def test_mentions_are_kept(text: str, expected: list[str]) -> None:
    """No file is imported by them."""
    assert contents(text) == expected


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_and_a_mark_change_nothing(end: str) -> None:
    """Nor do the ids."""
    text = "# T\n\n- one\n- two\n\n## A\ntext\n"
    plain = list(markdown.memories(markdown.parse(text), "a.md"))
    assert list(markdown.memories(markdown.parse("\ufeff" + text.replace("\n", end)), "a.md")) == plain


def test_every_memory_knows_its_line_its_thread_and_its_place() -> None:
    """The line is the first of its text; places count memories."""
    found = list(markdown.memories(markdown.parse("# T\n\n- one\n  on\n- two\n\ntext\n"), "notes/a.md"))
    assert [item.place for item in found] == [3, 5, 7]
    assert [item.fields["source_sequence"] for item in found] == [1, 2, 3]
    assert {item.fields["source_thread"] for item in found} == {"notes/a.md"}


def test_ids_stay_when_others_come_go_and_move() -> None:
    """They come from file, headings and text; a text that stands twice has two."""

    def ids(text: str, name: str = "a.md") -> dict[str, str]:
        return {item.fields["content"]: item.fields["id"] for item in markdown.memories(markdown.parse(text), name)}

    before, after = ids("- one\n- two"), ids("- new\n- two\n- one")
    assert {name: after[name] for name in before} == before
    assert before != ids("- one\n- two", "b.md")
    doubled = [item.fields["id"] for item in markdown.memories(markdown.parse("- one\n- one\n- one"), "a.md")]
    assert len(set(doubled)) == 3
    assert doubled[0] == before["one"]


@pytest.mark.parametrize(
    ("name", "text", "day"),
    [
        ("2026-04-01.md", "- one", (2026, 4, 1)),
        ("memory/2026-04-01.md", "- one", (2026, 4, 1)),
        ("memory\\2026-04-01-standup.md", "- one", (2026, 4, 1)),
        ("2026-13-01.md", "- one", None),
        ("2026-04-011.md", "- one", None),
        ("notes.md", "- one", None),
        ("journal.md", "## 2026-04-02 Thursday\n### Deploys\n- one", (2026, 4, 2)),
        ("2026-04-01.md", "## 2026-04-02\n- one", (2026, 4, 2)),
    ],
)
def test_a_date_in_the_name_or_a_heading_is_the_day(name: str, text: str, day: tuple[int, int, int] | None) -> None:
    """The heading's where both have one."""
    (item,) = markdown.memories(markdown.parse(text), name)
    time = item.fields.get("create_time")
    assert (time and time.date()) == (day and datetime.date(*day))


def test_imports_are_found_where_they_are_meant() -> None:
    """Not in code, not in mail addresses; what looks like a file is told from a name."""
    text = (
        "@a.md and (see @docs/b.md), @~/c.md.\n\n- @../d\n- @priya and @org/pkg\n`@e.md` ``@f.md``\n"
        "mail me@g.md\n```\n@h.md\n```\n# About @i.md\n"
    )
    found = [(each.line, each.path, each.is_sure) for each in markdown.parse(text).imports]
    assert found == [
        (1, "a.md", True),
        (1, "docs/b.md", True),
        (1, "~/c.md", True),
        (3, "../d", True),
        (4, "priya", False),
        (4, "org/pkg", False),
        (10, "i.md", True),
    ]


def test_a_line_that_only_imports_is_no_memory() -> None:
    """What it names is."""
    assert contents("@a.md\n\n- @b.md\n- see @c.md\n") == ["see @c.md"]


SIGNS = [
    "- ",
    "* ",
    "1. ",
    "7) ",
    "> ",
    "  ",
    "    ",
    "\t",
    "\t\t",
    "```",
    "~~~ ",
    "# ",
    "### ",
    "@",
    "`",
    "|",
    "[a]: ",
]
ALONE = ["", "", "---", "***", "===", "```", "~~~", "<!--", "-->", "- <!--", "> ```", "- ```", "    -->", "-"]


@st.composite
def notes(draw: st.DrawFn) -> list[str]:
    """Lines of all kinds; all but signs alone have a word of their own, and some begin, hold or end a comment."""
    lines = []
    for number in range(draw(st.integers(1, 12))):
        if draw(st.booleans()):
            signs = "".join(draw(st.lists(st.sampled_from(SIGNS), max_size=3)))
            after = draw(
                st.sampled_from(
                    [
                        "",
                        "",
                        "",
                        " says quite enough",
                        " leads a list:",
                        ":",
                        "：",
                        " -->",
                        " <!--",
                        " <!-- c -->",
                        ": x",
                        " `",
                        "\tx",
                    ]
                )
            )
            lines.append(f"{signs}w{number}w{after}")
        else:
            lines.append(draw(st.sampled_from(ALONE)))
    return lines


@given(notes().filter(lambda lines: lines[0] != "---"))  # which may begin front matter
def test_no_word_is_lost(lines: list[str]) -> None:
    """Each is in a memory or told as left out, but for comments and for the title of a file with memories."""
    text = "\n".join(lines)
    note = markdown.parse(text)
    memories = contents(text)
    found = "\n".join([*memories, *(each.message for each in note.left_out)])
    for number, line in enumerate(lines):
        word = f"w{number}w"
        if word not in line or word in found:
            continue
        before, after = text.split(word)
        is_title = "# " in line or "===" in lines[number + 1 : number + 2]
        assert (is_title and memories) or ("<!--" in before and "-->" in after)


MARIA = "Met Maria, she wants short commit messages"
CANARY = "Deploys need a green canary for 30 minutes"


@pytest.mark.parametrize(
    ("text", "expected", "left_out"),
    [
        (f"{MARIA}\n---\n{CANARY}\n---\nRedis broke\n---\n", [MARIA, CANARY, "Redis broke"], []),
        (f"# Log\n{MARIA}\n---\n## Later\n- one", [f"{MARIA}", "Later: one"], []),
        (f"{CANARY}\n---\n", [CANARY], []),
        (f"{CANARY}\n---\n- two", [f"{CANARY}: two"], []),
        ("Style\n---\nGo\n---\n- use tabs", ["Go: use tabs"], [(1, "Style")]),
        ("## Never commit secrets\n\n## Always run tests\n", ["Never commit secrets", "Always run tests"], []),
        ("# Rules\n## Never commit secrets\n### Ever", ["Never commit secrets"], [(3, "Ever")]),
        ("# Rules of this house\n## Notes", [], [(1, "Rules of this house"), (2, "Notes")]),
        ("# Never commit secrets\n# Always run tests", ["Never commit secrets", "Always run tests"], []),
        ("## 2026-04-02 Thursday\n## 2026-04-03\n- one", ["2026-04-03: one"], [(1, "2026-04-02 Thursday")]),
        ("## 秘密をコミットしない\n## 注意", ["秘密をコミットしない"], [(2, "注意")]),
        (
            "- one\n## A\n### B\n- two\n### Never say C\n## D\n- three",
            ["one", "A / B: two", "A: Never say C", "D: three"],
            [],
        ),
        ("Steps:\n\n-\n\nThree steps follow:\n\n- ", ["Three steps follow"], [(1, "Steps")]),
        ("必須遵守：\n- 一\n\n다음을 지킨다：\n\n* 二", ["必須遵守: 一", "다음을 지킨다: 二"], []),
    ],
)
def test_a_heading_with_nothing_below_is_a_memory_or_told(
    text: str, expected: list[str], left_out: list[tuple[int, str]]
) -> None:
    """A memory where it says something; the name of an empty section, and a title, are told with their line."""
    assert contents(text) == expected
    told = sorted((each.place, each.message.partition(": ")[2]) for each in markdown.parse(text).left_out)
    assert told == left_out


@given(st.text(st.sampled_from("#-*> `~@.:=<!\n\r\t12ab|é中"), max_size=200))
def test_any_text_can_be_read(text: str) -> None:
    """Every memory has a text with something to see, an id of its own and a line of the file."""
    found = list(markdown.memories(markdown.parse(text), "a.md"))
    assert len({item.fields["id"] for item in found}) == len(found)
    for item in found:
        assert item.fields["content"].strip()
        assert 1 <= item.place <= len(text) + 1
