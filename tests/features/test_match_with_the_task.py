"""The features that ask how a memory matches the task, and whether it says anything at all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sidecar.features import BY_NAME, Feature, Kept, TaskWord, TermMatch, TextMatches, View
from tests.features.building import columns, match, no_match, term, values, views

semantic = BY_NAME["semantic"]
lexical = BY_NAME["lexical"]
handles = BY_NAME["handles"]
subject = BY_NAME["subject"]
thread = BY_NAME["thread"]
context = BY_NAME["context"]
dates = BY_NAME["dates"]
statement = BY_NAME["statement"]

NOTES_OVERLAP = {"lexical": "smartctx"}


def of(feature: Feature, text: TextMatches, **given: object) -> list[float]:
    """The feature's values for as many plain memories as `text` matches."""
    found: list[float] = values(feature, columns(len(text.lengths)), text, **given).tolist()
    return found


# semantic


def test_semantic_is_the_cosine_and_an_opposite_vector_is_last() -> None:
    """The same vector has 1, an unrelated one as good as 0, an opposite one 0, and so has one without a vector."""
    found = of(semantic, no_match(5, cosine=[1.0, 0.25, 0.0, -1.0, float("nan")]))
    assert found == pytest.approx([1.0, 0.25, 0.0, 0.0, 0.0], abs=1e-6)
    assert found[2] > found[3] == found[4] == 0.0


@given(st.integers(-(2**22), 2**22), st.integers(-(2**22), 2**22))
def test_a_nearer_vector_is_worth_more(one: int, other: int) -> None:
    """Semantic grows with the cosine, below zero too, down to the finest step that vectors on the grid can have."""
    assume(one != other)
    farther, nearer = sorted((one / 2**22, other / 2**22))
    found = of(semantic, no_match(2, cosine=[farther, nearer]))
    assert found[0] < found[1]


def test_a_cosine_counts_as_far_as_it_is_trusted() -> None:
    """Where the embedder knows a script only by pieces of characters, a quarter of the cosine is left."""
    assert of(semantic, no_match(1, cosine=[0.8], trust=0.25)) == pytest.approx([0.2], abs=1e-6)


# lexical


def test_lexical_is_a_length_aware_share_of_the_tasks_rarity() -> None:
    """By hand: two terms of idf 3 and 1; K1 .9, B .4; mean length 10.

    Memory 0 has both once at length 10: norm .9, each 1 / 1.9, so (3 + 1) / 1.9 / 4 = .526316.
    Memory 1 has the rare one twice at length 20: norm .9 * (.6 + .8) = 1.26, 3 * 2 / 3.26 / 4 = .460123.
    Memory 2 has the common one once at length 5: norm .9 * (.6 + .2) = .72, 1 / 1.72 / 4 = .145349.
    Memory 3 has none.
    """
    text = no_match(
        4,
        terms=(term({0: 1, 1: 2}, idf=3.0, word="rare"), term({0: 1, 2: 1}, idf=1.0, word="common")),
        lengths=[10, 20, 5, 10],
    )
    assert of(lexical, text) == pytest.approx([0.526316, 0.460123, 0.145349, 0.0], abs=5e-7)


def test_a_term_that_no_memory_bears_still_counts_in_what_is_attainable() -> None:
    """Half of a task's rarity missed is half of the value, however the other memories do."""
    known = term({0: 1}, idf=2.0, word="known")
    alone = of(lexical, no_match(1, terms=(known,)))
    beside = of(lexical, no_match(1, terms=(known, term({}, idf=2.0, word="unseen"))))
    assert beside == pytest.approx([alone[0] / 2])


def test_stop_words_count_only_where_the_task_has_nothing_else() -> None:
    """A stop word adds nothing beside a content word, and carries a task of stop words alone."""
    stop = term({0: 5}, idf=0.5, is_stop_word=True, word="the")
    content = term({1: 1}, idf=2.0, word="invoice")
    assert of(lexical, no_match(2, terms=(stop, content))) == of(lexical, no_match(2, terms=(content,)))
    only_stop = of(lexical, no_match(2, terms=(stop,)))
    assert only_stop[0] > only_stop[1] == 0.0


@given(
    counts=st.lists(st.integers(1, 1000), min_size=1, max_size=4),
    which=st.integers(0, 3),
    more=st.integers(1, 1000),
    length=st.floats(0.0, 1e4),
    mean=st.floats(0.0, 1e4),
)
def test_another_occurrence_of_a_task_word_never_lowers_lexical(
    counts: list[int], which: int, more: int, length: float, mean: float
) -> None:
    """At the same length, lexical does not fall with any term's count."""
    assume(which < len(counts))
    terms = tuple(
        term({0: count, 1: count + more * (index == which)}, idf=1.0 + index, word=f"w{index}")
        for index, count in enumerate(counts)
    )
    fewer, greater = of(lexical, no_match(2, terms=terms, lengths=[length, length], mean_length=mean))
    assert fewer <= greater


@given(st.floats(0.0, 1e4), st.floats(0.0, 1e4))
def test_a_longer_memory_with_the_same_matches_is_never_worth_more(one: float, other: float) -> None:
    """Length is discounted, so that a memory which says everything does not match everything."""
    shorter, longer = sorted((one, other))
    found = of(lexical, no_match(2, terms=(term({0: 2, 1: 2}),), lengths=[shorter, longer]))
    assert found[0] >= found[1]


def test_a_rarer_word_is_worth_more() -> None:
    """Of two memories with one task word each, the one with the rarer word stands higher."""
    text = no_match(2, terms=(term({0: 1}, idf=3.0, word="rare"), term({1: 1}, idf=0.5, word="common")))
    rare, common = of(lexical, text)
    assert rare > common


def test_the_notes_overlap_is_a_share_of_all_task_words() -> None:
    """Words shorter than three characters cannot match, and still stand in the denominator.

    Five words, of which `do` and `to` are too short: memory 0 bears three (.6), memory 1 one (.2), memory 2 none.
    """
    text = match(["Deploy the service now, deploy", "the cat", "nothing to do"], "do deploy the service to")
    assert of(lexical, text, variants=NOTES_OVERLAP) == pytest.approx([0.6, 0.2, 0.0])


def test_the_notes_overlap_counts_tokens_and_not_substrings() -> None:
    """The task word `log` is not found in `dialog`."""
    text = match(["open the dialog", "open the log"], "log")
    assert of(lexical, text, variants=NOTES_OVERLAP) == [0.0, 1.0]


def test_the_notes_overlap_weighs_every_word_alike() -> None:
    """A stop word of three letters and a word said twice count like any other, as the note has it."""
    stop = term({0: 1}, idf=0.1, is_stop_word=True, word="the")
    rare = term({1: 1}, idf=9.0, word="invoice")
    words = (TaskWord(3, (0,)), TaskWord(7, (1,)), TaskWord(3, (0,)))
    text = no_match(2, terms=(stop, rare), words=words)
    assert of(lexical, text, variants=NOTES_OVERLAP) == pytest.approx([2 / 3, 1 / 3])


def test_a_word_of_several_terms_is_borne_whole_or_not() -> None:
    """`auth-gateway` is found where both of its terms are, and counts as one word."""
    terms = (term({0: 1, 1: 1}, word="auth"), term({0: 1}, word="gateway"))
    text = no_match(2, terms=terms, words=(TaskWord(12, (0, 1)), TaskWord(4, ())))
    assert of(lexical, text, variants=NOTES_OVERLAP) == [0.5, 0.0]


# handles and context


def _with_handles(count: int, terms: tuple[TermMatch, ...]) -> TextMatches:
    return no_match(count, handles=terms)


def _with_context(count: int, terms: tuple[TermMatch, ...]) -> TextMatches:
    return no_match(count, context_terms=terms)


@pytest.mark.parametrize(("feature", "text_with"), [(handles, _with_handles), (context, _with_context)])
def test_shared_terms_count_by_their_rarity(
    feature: Feature, text_with: Callable[[int, tuple[TermMatch, ...]], TextMatches]
) -> None:
    """Each memory has the share of the task's or the context's terms that it bears, rare ones weighing more.

    Rarity 3 and 1: both 1, the rare one .75, the common one .25, none 0; how often it is borne does not matter.
    """
    terms = (term({0: 1, 1: 9}, idf=3.0, word="T-1"), term({0: 1, 2: 1}, idf=1.0, word="a.py"))
    assert of(feature, text_with(4, terms)) == [1.0, 0.75, 0.25, 0.0]


def test_stop_words_of_the_context_do_not_count() -> None:
    """`the` in a goal makes no memory match it."""
    stop = term({0: 1}, is_stop_word=True, word="the")
    assert of(context, no_match(2, context_terms=(stop,))) == [0.0, 0.0]
    assert of(context, no_match(2, context_terms=(stop, term({1: 1}, word="billing")))) == [0.0, 1.0]


# subject


def test_a_memory_is_about_the_subject_or_not() -> None:
    """By subject field or as the speaker 1, else 0."""
    text = no_match(4, subject_field=[0, 3], subject_prefix=[1, 3])
    assert of(subject, text) == [1.0, 1.0, 0.0, 1.0]


# dates


def test_dates_fade_with_the_days_from_what_the_task_names() -> None:
    """By hand: inside it 1; five days off 1/e = .367879; ten days off .135335; sixty days off and without a date 0."""
    text = no_match(5, days_off=[0.0, 5.0, 10.0, 60.0, float("inf")])
    assert of(dates, text) == pytest.approx([1.0, 0.367879, 0.135335, 0.0, 0.0], abs=5e-7)


@given(st.floats(0.0, 1e6), st.floats(0.0, 1e6))
def test_a_memory_nearer_to_the_date_is_never_worth_less(one: float, other: float) -> None:
    """Dates does not grow with the days off."""
    nearer, farther = sorted((one, other))
    found = of(dates, no_match(2, days_off=[nearer, farther]))
    assert found[0] >= found[1]


# statement


def test_a_question_is_no_statement() -> None:
    """A memory that ends in a question mark has 0, any other 1, whatever the task is."""
    assert values(statement, columns(2, asks=[True, False])).tolist() == [0.0, 1.0]


# thread


def test_a_passage_shares_words_and_meaning() -> None:
    """By hand: three memories in a row, each ten terms long at a mean of ten, so each has K1 .6 and borrows in full.

    The task has two terms of rarity 1; the first memory bears one, the third the other, once each: 1 / 1.6 = .625.
    Cosines .8, 0, .4. What is next counts .7, what is two away .4.
    First:  words (.625 + .4 * .625) / 2 = .4375;       meaning (.8 + .7 * 0 + .4 * .4) / 2.1 = .457143
    Second: words (.7 * .625 + .7 * .625) / 2 = .4375;  meaning (0 + .7 * .8 + .7 * .4) / 2.4 = .35
    Third:  words (.4 * .625 + .625) / 2 = .4375;       meaning (.4 + .7 * 0 + .4 * .8) / 2.1 = .342857
    """
    memories = columns(3, previous_row=[-1, 0, 1], next_row=[1, 2, -1])
    text = no_match(3, cosine=[0.8, 0.0, 0.4], terms=(term({0: 1}, word="a"), term({2: 1}, word="b")))
    expected = [(0.4375 + 0.457143) / 2, (0.4375 + 0.35) / 2, (0.4375 + 0.342857) / 2]
    assert values(thread, memories, text) == pytest.approx(expected, abs=1e-6)


def test_an_answer_is_read_with_its_question() -> None:
    """The memory before counts whole if it asks, else less: `Yes, on Friday` bears the words of what was asked."""
    text = no_match(2, terms=(term({0: 1}),))
    asked, told = (
        values(thread, columns(2, asks=[asks, False], previous_row=[-1, 0], next_row=[1, -1]), text)[1]
        for asks in (True, False)
    )
    assert asked == pytest.approx(0.625 / 2)
    assert told == pytest.approx(0.7 * 0.625 / 2)


def test_a_long_memory_borrows_less() -> None:
    """A memory of sixty terms says enough by itself: it borrows half of what a short one does."""
    text = no_match(2, terms=(term({0: 1}),), lengths=[10.0, 60.0])
    memories = columns(2, previous_row=[-1, 0], next_row=[1, -1])
    assert values(thread, memories, text)[1] == pytest.approx(0.5 * 0.7 * 0.625 / 2)


def test_a_memory_without_neighbours_is_a_passage_of_its_own() -> None:
    """Half its own words, half its own meaning; no other memory comes in."""
    text = no_match(2, cosine=[0.6, 1.0], terms=(term({0: 1}),))
    assert of(thread, text) == pytest.approx([(0.625 + 0.6) / 2, 0.5], abs=1e-6)


def test_of_each_word_the_best_place_counts_and_not_the_sum() -> None:
    """A word that the whole passage repeats is borne once: nothing comes to more than the memory that has it whole."""
    text = no_match(3, terms=(term({0: 1, 1: 1, 2: 1}),))
    memories = columns(3, previous_row=[-1, 0, 1], next_row=[1, 2, -1])
    assert values(thread, memories, text) == pytest.approx([0.625 / 2] * 3)


@given(views(), st.data())
def test_a_better_matching_neighbour_never_lowers_thread(any_view: View, data: st.DataObject) -> None:
    """Thread does not fall when any memory comes nearer in meaning, or bears one more of the task's terms."""
    count = len(any_view.columns)
    assume(count > 0)
    row = data.draw(st.integers(0, count - 1))
    cosine = np.nan_to_num(any_view.text.cosine, nan=-1.0)
    nearer = cosine.copy()
    nearer[row] = data.draw(st.floats(cosine[row], 1.0))
    more = tuple(
        term(
            {**dict(zip(each.rows.tolist(), each.counts.tolist(), strict=True)), row: 200_000},
            idf=each.idf,
            word=each.term,
        )
        for each in any_view.text.terms
    )
    plain = tuple(replace(each, is_stop_word=False) for each in any_view.text.terms)

    def with_text(**changes: Any) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return replace(any_view, text=replace(any_view.text, **changes), memo={}, kept=Kept(), variants={}).value(
            thread
        )

    before = with_text(cosine=cosine, terms=plain)
    assert (with_text(cosine=nearer, terms=plain) >= before - 1e-12).all()
    assert (with_text(cosine=cosine, terms=more) >= before - 1e-12).all()
