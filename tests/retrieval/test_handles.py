"""Concrete handles found in a text."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.retrieval.handles import find_handles


def handles(text: str) -> set[str]:
    return {f"{kind}:{value}" for kind, value in find_handles(text)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see OPS-1234, ops-77 and PR #123.", {"ticket:ops-1234", "ticket:ops-77", "ticket:#123"}),
        ("OPS-1234を確認", {"ticket:ops-1234"}),
        (
            "call ops_tools.rotateApiKey()",
            {"symbol:ops_tools.rotateapikey", "symbol:ops_tools", "symbol:rotateapikey"},
        ),
        ("set HTTP_PROXY, pass --dry-run, use parse()", {"symbol:http_proxy", "symbol:--dry-run", "symbol:parse"}),
        ("std::move_only", {"symbol:std::move_only", "symbol:move_only"}),
        ("in svc/auth-gw/rotate.py.", {"path:svc/auth-gw/rotate.py", "path:rotate.py"}),
        ("open C:\\notes\\todo or ~/x/y.toml", {"path:c:/notes/todo", "path:x/y.toml", "path:y.toml"}),
        ("edit README.md", {"path:readme.md"}),
        ("at https://www.x.org/a/b?c=1 now", {"url:x.org/a/b?c=1"}),
        ("mail ann.b+c@x-y.org!", {"email:ann.b+c@x-y.org"}),
        ("v1.2.3 or 1.2.3, then V2", {"version:1.2.3", "version:2"}),
        ("order 48213 for $1,299.99 and 512MB", {"number:48213", "number:1299.99", "number:512"}),
        ("commit 3f2a9bc1d", {"code:3f2a9bc1d"}),
        ("9f1c2d3e-aaaa-bbbb-cccc-1234567890ab", {"code:9f1c2d3e-aaaa-bbbb-cccc-1234567890ab"}),
        ('the "Blue  Folder" and `x y`', {"quoted:blue folder", "quoted:x y"}),
        ("「青い本」 and “two words”", {"quoted:青い本", "quoted:two words"}),
        ("Ann's and Bob's don't quote", set()),
        ("and/or, 1/2, e.g. this, i.e. that", set()),
        ("12 cats in 2024", set()),
        ("", set()),
    ],
)
def test_handles_of_each_kind(text: str, expected: set[str]) -> None:
    """Each kind is found in running text, in its normal form, and plain words are none."""
    assert handles(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "on 2024-03-05",
        "at 2024-03-05T10:00:00Z",
        "2024/3/5",
        "5 March 2024",
        "5th of March, 2024",
        "March 5, 2024",
        "march 5th 2024",
        "Mar. 5 2024",
        "05.03.2024",
        "2024年3月5日",
        "2024년 3월 5일",
    ],
)
def test_spellings_of_a_date_are_one_handle(text: str) -> None:
    """A day written in any common way is the same day."""
    assert handles(text) == {"date:2024-03-05"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("May 5", {"date:--05-05"}),
        ("in March 2024", {"date:2024-03"}),
        ("13/02/2024", {"date:2024-02-13"}),
        ("02/13/2024", {"date:2024-02-13"}),
        ("03/04/2024", set()),
        ("2024-13-45", set()),
        ("2024.12.31", {"date:2024-12-31"}),
        ("45 March", set()),
        ("you may 1", {"date:--05-01"}),
    ],
)
def test_a_date_is_what_it_surely_is(text: str, expected: set[str]) -> None:
    """Partial dates keep what is said, ambiguous and impossible ones are no dates."""
    assert {handle for handle in handles(text) if handle.startswith("date:")} == expected


@given(st.text(alphabet="abAB12 ._-/\\:@#\"`'“”「」()v猫", max_size=60))
def test_handles_are_the_same_in_lower_case_or_fewer(text: str) -> None:
    """Values are folded, and reading is total."""
    for kind, value in find_handles(text):
        assert kind
        assert value == value.lower()


HOSTILE = (
    *(
        "a",
        "a_",
        "a.",
        "aA",
        "a@",
        "a@b.",
        "a\u0301",
        "A-1",
        '"',
        '"a ',
        "'",
        "'a",
        "`",
        "“",
        "1",
        "1,",
        "1.",
        "1/",
        "2024-",
    ),
    *("2024-1-", "5 ", "5 march ", "may ", "-", "#", "#a", "./", "~/", "\\a", "https://", "()", "::a", "猫", "ก", " "),
)


@pytest.mark.parametrize("unit", HOSTILE)
def test_time_is_linear(unit: str) -> None:
    """A long text of any repeated pattern is read in a moment: no pattern backtracks."""
    start = time.perf_counter()
    find_handles(unit * (300_000 // len(unit)))
    assert time.perf_counter() - start < 10
