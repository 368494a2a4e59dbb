"""Whether two memories say another value of the same attribute of the same subject."""

from __future__ import annotations

from typing import Any

import pytest

from sidecar.domain import Memory
from sidecar.importance.claims import disagree


def claim(value: Any, content: str = "what was said", subject: str = "db-1", attribute: str = "port") -> Memory:
    return Memory(id="", content=content, subject=subject, metadata={"attribute": attribute, "value": value})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *((3, "3"), (3, 3.0), ("3", 3.0), ("3.0", "3"), (True, "true"), ("True", "true"), ("Blue", " blue ")),
        *((-0.0, 0), ("-0", 0), ("-0.0", "0"), (43, "٤٣"), ("3.10", "३.१०"), ("-7", "-７")),
    ],
)
def test_values_that_mean_the_same_do_not_disagree(one: Any, other: Any) -> None:
    """Whatever type the caller gave them."""
    assert not disagree(claim(one), claim(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (3, "4"),
        (3, 3.5),
        (True, "false"),
        (True, 1),
        ("3.1", "3.10"),
        ("007", 7),
        ("-3", 3),
        (10**30, 10**30 + 1),
        ("", "x"),
    ],
)
def test_values_that_mean_something_else_disagree(one: Any, other: Any) -> None:
    """Versions and names that look like numbers are what is written."""
    assert disagree(claim(one), claim(other))
    assert disagree(claim(other), claim(one))


def test_subject_and_attribute_are_compared_by_their_words() -> None:
    """Case and spaces aside; of another subject or attribute nothing is said."""
    assert disagree(claim(3), claim(4, subject=" DB-1", attribute="Port"))
    assert not disagree(claim(3), claim(4, subject="db-2"))
    assert not disagree(claim(3), claim(4, attribute="cores"))


def test_what_is_asked_says_no_value() -> None:
    """Whichever of the two asks."""
    said, asked = (Memory(id="", content=f"The database port is {end}") for end in ("5432", "6543?"))
    assert not disagree(said, asked)
    assert not disagree(asked, said)
