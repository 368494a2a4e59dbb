"""What is read of a task that is too long."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.ranking.long_task import HEAD_CHARS, TAIL_CHARS, both_ends, is_too_long

LOG = "".join(f"2025-03-01T00:00:{i % 60:02} INFO worker {i} ok, trace 4f{i:06x}\n" for i in range(3000))


@pytest.mark.parametrize("question", ["Which gate?", "哪个登机口？", "أي بوابة؟"])
@pytest.mark.parametrize(
    "form", ["{log}{question}", "{question}\n{log}", "{log}{question}\n\n", "{log}{question}\n{log}"]
)
def test_a_question_at_an_end_is_all_that_is_read(question: str, form: str) -> None:
    """Before, after, or close enough to an end, in any script that has a mark for it; a log beside it is not read."""
    task = form.format(log=LOG, question=question)
    if form.endswith("{log}") and form.startswith("{log}"):
        assert question not in both_ends(task)
    else:
        assert both_ends(task).strip() == question


def test_without_a_question_each_kind_of_line_is_read_once() -> None:
    """Lines that differ in numbers alone are read once, others as they are."""
    read = both_ends(f"Find the broken worker.\n{LOG}ERROR worker 7 gave up\nTell Ann").splitlines()
    assert read[0] == "Find the broken worker."
    assert read[-2:] == ["ERROR worker 7 gave up", "Tell Ann"]
    assert sum("INFO" in line for line in read) <= 3  # a whole line, and what the windows cut


@given(st.text(alphabet=st.sampled_from("a1? \n？é"), max_size=60), st.integers(300, 900))
def test_it_never_reads_more_than_both_ends(piece: str, times: int) -> None:
    """Whatever the task, at most the two windows and the break between them are read."""
    task = piece * times
    if is_too_long(task):
        assert len(both_ends(task)) <= HEAD_CHARS + TAIL_CHARS + 1


def test_an_encoded_file_does_not_drown_what_is_said_beside_it() -> None:
    """Of what is no word the beginning is read; text of a script without spaces is read as it is."""
    blob = "x" * 200_000
    assert both_ends(f"Send this to Ann {blob} when the ferry leaves").splitlines() == [
        f"Send this to Ann {blob[:16]}",
        f"{blob[:16]} when the ferry leaves",
    ]
    chinese = "渡轮什么时候出发" * 5_000
    assert both_ends(chinese) == f"{chinese[:HEAD_CHARS]}\n{chinese[-TAIL_CHARS:]}"
