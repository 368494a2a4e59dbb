"""The features that ask how a memory matches the task: semantic, lexical, handles, subject, thread, context."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sidecar.features import BY_NAME, Feature, TaskWord, TermMatch, TextMatches
from tests.features.building import columns, match, no_match, term, values

semantic = BY_NAME["semantic"]
lexical = BY_NAME["lexical"]
handles = BY_NAME["handles"]
subject = BY_NAME["subject"]
thread = BY_NAME["thread"]
context = BY_NAME["context"]

NOTES_OVERLAP = {"lexical": "smartctx"}


def of(feature: Feature, text: TextMatches, **given: object) -> list[float]:
    """The feature's values for as many plain memories as `text` matches."""
    found: list[float] = values(feature, columns(len(text.lengths)), text, **given).tolist()
    return found


# semantic


def test_a_negative_cosine_is_no_match() -> None:
    """An opposite vector is as far off as an unrelated one; nothing leaves [0, 1]."""
    assert of(semantic, no_match(4, cosine=[1.0, 0.25, 0.0, -1.0])) == [1.0, 0.25, 0.0, 0.0]


@given(st.floats(-1.0, 1.0), st.floats(-1.0, 1.0))
def test_a_nearer_vector_is_never_worth_less(one: float, other: float) -> None:
    """Semantic does not fall with the cosine."""
    farther, nearer = sorted((one, other))
    found = of(semantic, no_match(2, cosine=[farther, nearer]))
    assert found[0] <= found[1]


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


def test_being_about_the_subject_counts_more_than_naming_it() -> None:
    """By subject field or as the speaker 1, by mention .5, else 0."""
    text = no_match(
        5,
        subject_field=[True, False, False, False, True],
        subject_prefix=[False, True, False, False, True],
        subject_mention=[False, False, True, False, True],
    )
    assert of(subject, text) == [1.0, 1.0, 0.5, 0.0, 1.0]


# thread


def test_neighbours_lend_half_of_their_match_each() -> None:
    """By hand: cosines .8, 0, .4 in a row, no words. A memory's match is half its cosine: .4, 0, .2.

    The first has one neighbour of 0, the middle one (.4 + .2) / 2, the last one neighbour of 0.
    """
    memories = columns(4, previous_row=[-1, 0, 1, -1], next_row=[1, 2, -1, -1])
    found = values(thread, memories, no_match(4, cosine=[0.8, 0.0, 0.4, 1.0]))
    assert found == pytest.approx([0.0, 0.3, 0.0, 0.0])


def test_a_memory_without_neighbours_has_no_thread() -> None:
    """Its own match never counts as its neighbours'."""
    assert of(thread, no_match(2, cosine=[1.0, 1.0])) == [0.0, 0.0]


@given(st.lists(st.floats(-1.0, 1.0), min_size=3, max_size=3), st.floats(-1.0, 1.0))
def test_a_better_matching_neighbour_never_lowers_thread(cosines: list[float], other: float) -> None:
    """Thread does not fall when a neighbour matches better."""
    memories = columns(3, previous_row=[-1, 0, 1], next_row=[1, 2, -1])
    worse, better = sorted((cosines[0], other))
    before = values(thread, memories, no_match(3, cosine=[worse, *cosines[1:]]))
    after = values(thread, memories, no_match(3, cosine=[better, *cosines[1:]]))
    assert (np.asarray(after) >= np.asarray(before)).all()
