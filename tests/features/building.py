"""Small columns, text matches and views for tests: what is not given is what a new, plain, unused fact has."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from sidecar.domain import DAY, KNOWN_KINDS, SECOND, Floats, Micros
from sidecar.features import NO_TIME, REGISTRY, Columns, Feature, Kept, TaskWord, TermMatch, TextMatches, View
from sidecar.features.recency import HALF_LIFE_DAYS
from sidecar.features.use_rate import PRIOR

NOW: Micros = 1_767_225_600 * SECOND  # 2026-01-01 UTC


def days_ago(days: float) -> Micros:
    """The time `days` before NOW."""
    return NOW - round(days * DAY)


def columns(count: int, *, kinds: Sequence[str] = (), **given: Any) -> Columns:
    """Columns of `count` memories; `kinds` names each one's kind, `given` replaces whole columns."""
    kinds = kinds or ["fact"] * count
    names = tuple(dict.fromkeys(kinds))
    zeros = np.zeros(count)
    nan = np.full(count, np.nan)
    whole = np.zeros(count, dtype=np.int32)
    no = np.zeros(count, dtype=bool)
    plain = Columns(
        ids=tuple(f"m{row}" for row in range(count)),
        live=~no,
        key=np.arange(count, dtype=np.int64),
        kinds=names,
        kind=np.array([names.index(kind) for kind in kinds], dtype=np.int32),
        create_time=np.full(count, NOW),
        update_time=np.full(count, NOW),
        valid_from_time=np.full(count, NO_TIME),
        valid_until_time=np.full(count, NO_TIME),
        relevance=zeros,
        emotion=zeros,
        importance_content=nan,
        importance_use=nan,
        importance_override=nan,
        tokens=whole + 10,
        asks=no,
        pinned=no,
        suppressed=no,
        superseded=no,
        helpful=whole,
        unhelpful=whole,
        used=zeros,
        seen=zeros,
        use_sessions=whole,
        reported_sessions=whole,
        last_use_time=np.full(count, NO_TIME),
        previous_row=whole - 1,
        next_row=whole - 1,
    )
    arrays: dict[str, Any] = {name: np.asarray(v, dtype=getattr(plain, name).dtype) for name, v in given.items()}
    return replace(plain, **arrays)


def term(counts: Mapping[int, int], *, idf: float = 1.0, is_stop_word: bool = False, word: str = "word") -> TermMatch:
    """A term that stands in the rows named by `counts`, that often."""
    rows = sorted(counts)
    return TermMatch(
        term=word,
        idf=idf,
        rows=np.array(rows, dtype=np.int32),
        counts=np.array([counts[row] for row in rows], dtype=np.int32),
        is_stop_word=is_stop_word,
    )


def no_match(count: int, **given: Any) -> TextMatches:
    """A task that nothing matches; `given` replaces whole parts. Every memory is ten terms long."""
    plain = TextMatches(
        cosine=np.full(count, np.nan),
        trust=1.0,
        terms=(),
        words=(),
        lengths=np.full(count, 10.0),
        mean_length=10.0,
        handles=(),
        context_terms=(),
        subject_field=np.empty(0, np.int32),
        subject_prefix=np.empty(0, np.int32),
        days_off=np.full(count, np.inf),
    )
    arrays: dict[str, Any] = {
        name: np.asarray(values, dtype=getattr(plain, name).dtype)
        if isinstance(getattr(plain, name), np.ndarray)
        else values
        for name, values in given.items()
    }
    return replace(plain, **arrays)


def match(contents: Sequence[str], task: str, **given: Any) -> TextMatches:
    """Matches by plain lower-case words, for examples that can be worked by hand; no stop words, no stemming."""
    borne = [Counter(re.findall(r"\w+", content.lower())) for content in contents]
    words = task.lower().split()
    distinct = tuple(dict.fromkeys(words))
    lengths = [float(sum(counts.values())) for counts in borne]
    terms = []
    for word in distinct:
        rows = {row: counts[word] for row, counts in enumerate(borne) if word in counts}
        idf = float(np.log1p((len(contents) - len(rows) + 0.5) / (len(rows) + 0.5)))
        terms.append(term(rows, idf=idf, word=word))
    return no_match(
        len(contents),
        terms=tuple(terms),
        words=tuple(TaskWord(len(word), (distinct.index(word),)) for word in words),
        lengths=lengths,
        mean_length=float(np.mean(lengths)),
        **given,
    )


def view(memories: Columns, text: TextMatches | None = None, **given: Any) -> View:
    """A view of `memories` at NOW, for a task that nothing matches unless `text` is given."""
    settings: dict[str, Any] = {"as_of_time": NOW, "half_life_days": HALF_LIFE_DAYS, "use_prior": PRIOR}
    return View(columns=memories, text=no_match(len(memories)) if text is None else text, **(settings | given))


def values(feature: Feature, memories: Columns, text: TextMatches | None = None, **given: Any) -> Floats:
    """The feature's values, clipped as they are served."""
    return view(memories, text, **given).value(feature)


def only(whole: View, rows: Sequence[int]) -> View:
    """The view as if only `rows` were there, with the namespace's statistics as they are. Neighbours go along."""
    place = {row: index for index, row in enumerate(rows)}
    take = np.array(rows, dtype=np.intp)
    old = whole.columns
    kept = replace(
        old,
        ids=tuple(old.ids[row] for row in rows),
        previous_row=np.array([place.get(row, -1) for row in old.previous_row[take].tolist()], dtype=np.int32),
        next_row=np.array([place.get(row, -1) for row in old.next_row[take].tolist()], dtype=np.int32),
        **{
            name: getattr(old, name)[take]
            for name in Columns.__dataclass_fields__
            if name not in ("ids", "kinds", "previous_row", "next_row")
        },
    )

    def terms(found: Sequence[TermMatch]) -> tuple[TermMatch, ...]:
        out = []
        for each in found:
            counts = dict(zip(each.rows.tolist(), each.counts.tolist(), strict=True))
            new = {place[row]: count for row, count in counts.items() if row in place}
            out.append(term(new, idf=each.idf, is_stop_word=each.is_stop_word, word=each.term))
        return tuple(out)

    def among(found: NDArray[np.int32]) -> NDArray[np.int32]:
        return np.array(sorted(place[row] for row in found.tolist() if row in place), dtype=np.int32)

    text = whole.text
    matched = replace(
        text,
        cosine=text.cosine[take],
        terms=terms(text.terms),
        lengths=text.lengths[take],
        handles=terms(text.handles),
        context_terms=terms(text.context_terms),
        subject_field=among(text.subject_field),
        subject_prefix=among(text.subject_prefix),
        days_off=None if text.days_off is None else text.days_off[take],
    )
    return replace(whole, columns=kept, text=matched, memo={}, kept=Kept())


_unit = st.floats(0.0, 1.0)
_part = st.just(float("nan")) | _unit
_time = st.integers(-2_208_988_800, 7_258_118_400).map(lambda seconds: seconds * SECOND)  # the years 1900 to 2200
_sessions = st.integers(0, 2**31 - 1)


@st.composite
def _terms(draw: st.DrawFn, count: int) -> tuple[TermMatch, ...]:
    found = []
    for number in range(draw(st.integers(0, 4))):
        rows = draw(st.sets(st.integers(0, count - 1))) if count else set()
        counts = {row: draw(st.integers(1, 100_000)) for row in rows}
        found.append(
            term(counts, idf=draw(st.floats(1e-6, 20.0)), is_stop_word=draw(st.booleans()), word=f"word{number}")
        )
    return tuple(found)


@st.composite
def views(draw: st.DrawFn, most: int = 5) -> View:
    """Any view that retrieval and store may hand over: up to `most` memories, every column and match at its bounds."""
    count = draw(st.integers(0, most))

    def column(each: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(each, min_size=count, max_size=count))

    previous_row, next_row = [-1] * count, [-1] * count
    order = draw(st.permutations(range(count)))
    for before, after in pairwise(order):
        if draw(st.booleans()):  # in one thread
            next_row[before], previous_row[after] = after, before
    seen = column(st.floats(0.0, 1e6))
    memories = columns(
        count,
        kinds=column(st.sampled_from([*KNOWN_KINDS, "recipe"])),
        create_time=column(_time),
        relevance=column(_unit),
        emotion=column(_unit),
        importance_content=column(_part),
        importance_use=column(_part),
        importance_override=column(_part),
        helpful=column(_sessions),
        unhelpful=column(_sessions),
        seen=seen,
        used=[each * share for each, share in zip(seen, column(_unit), strict=True)],
        use_sessions=column(_sessions),
        reported_sessions=column(_sessions),
        last_use_time=column(st.just(NO_TIME) | _time),
        previous_row=previous_row,
        next_row=next_row,
        asks=column(st.booleans()),
    )
    terms = draw(_terms(count))
    some_terms = st.lists(st.integers(0, len(terms) - 1), unique=True, max_size=3) if terms else st.just([])
    lengths = column(st.floats(0.0, 1e5))
    text = no_match(
        count,
        cosine=column(st.floats(-1.0, 1.0) | st.just(float("nan"))),
        trust=draw(st.floats(0.25, 1.0)),
        terms=terms,
        words=tuple(
            TaskWord(draw(st.integers(1, 12)), tuple(draw(some_terms))) for _ in range(draw(st.integers(0, 4)))
        ),
        lengths=lengths,
        mean_length=float(np.mean(lengths)) if lengths else 0.0,
        handles=draw(_terms(count)),
        context_terms=draw(_terms(count)),
        subject_field=np.flatnonzero(column(st.booleans())),
        subject_prefix=np.flatnonzero(column(st.booleans())),
        days_off=column(st.floats(0.0, 1e6) | st.just(float("inf"))),
    )
    variants = {feature.name: draw(st.sampled_from(sorted(feature.values))) for feature in REGISTRY}
    return view(memories, text, as_of_time=draw(_time), emotion_enabled=draw(st.booleans()), variants=variants)
