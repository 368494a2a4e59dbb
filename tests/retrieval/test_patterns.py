"""Patterns that are compiled late do what patterns do, and wait for their first use."""

import re
import subprocess
import sys
import unicodedata

import pytest

from sidecar.retrieval.patterns import MARKS, compile_all, late


def test_it_finds_what_a_pattern_finds() -> None:
    own, known = late(r"(?P<word>\w+)-(\d+)", re.IGNORECASE), re.compile(r"(?P<word>\w+)-(\d+)", re.IGNORECASE)
    text = "see JIRA-42, then OPS-7"
    assert [found.groups() for found in own.finditer(text)] == [found.groups() for found in known.finditer(text)]
    assert own.sub("x", text) == known.sub("x", text)
    assert own.match(text) is None
    assert own.search(text)["word"] == "JIRA"  # type: ignore[index]


def test_the_sign_for_marks_stands_for_every_combining_mark_and_nothing_else() -> None:
    mark = late(f"[{MARKS}]")
    codes = range(0x300, 0x20000)
    assert [code for code in codes if mark.fullmatch(chr(code))] == [
        code for code in codes if unicodedata.category(chr(code)).startswith("M")
    ]


def test_a_source_that_is_no_pattern_is_an_error_at_its_first_use() -> None:
    # In a process of its own: what is made here is compiled with all others.
    program = "from sidecar.retrieval.patterns import late; made = late('('); print('made', flush=True); made.match('')"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ended.stdout == "made\n"
    assert "re.error: missing )" in ended.stderr


def test_all_are_compiled_at_once_where_that_is_asked_for() -> None:
    pattern = late("once")
    compile_all()
    assert "match" in vars(pattern)


def test_what_a_pattern_has_beside_its_methods_is_not_there() -> None:
    with pytest.raises(AttributeError, match="groupindex"):
        _ = late("x").groupindex
