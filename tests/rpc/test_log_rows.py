"""Rows of the log as JSON: each comes back as it was, to the last bit, and a bad one says what is wrong."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from memoryranker.v1 import ranker_pb2

from sidecar.domain import (
    Channel,
    DegradationReason,
    EmptyReason,
    LeftOutReason,
    OtherWays,
    Packet,
    PacketItem,
    PoolItem,
    Rating,
    Segment,
    ShadowScores,
)
from sidecar.rpc.log_transfer import read_line
from sidecar.store.counts import SessionUse
from sidecar.store.log import GONE, STORED, LoggedRating, LoggedReport, LogRow, MemoryState, StorePriors
from sidecar.store.log_rows import read_row, write_row
from sidecar.store.merge import MILLION, Report
from sidecar.store.pruned import PrunedSession, PrunedUse

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
ids = texts.filter(bool)
units = st.floats(0, 1)
scores = st.floats(allow_nan=False, allow_infinity=False)
times = st.integers(-2_208_988_800_000_000, 7_289_654_399_999_999)
counts = st.integers(0, 2**63 - 1)
keys = st.sampled_from([STORED, GONE, -1, -(2**63)])
numbers = st.lists(scores | st.just(math.nan), min_size=3, max_size=3).map(np.array)
distinct = st.lists(ids, max_size=3, unique=True)


def _scored(memory_id: str, chances: st.SearchStrategy[float]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {
            "memory_id": st.just(memory_id),
            "memory_key": keys,
            "score": scores,
            "task_fit": scores,
            "features": numbers,
            "raw": numbers,
            "tokens": counts,
            "inclusion_propensity": chances,
            "kind": st.sampled_from(["", "fact", "決定"]),
        }
    )


@st.composite
def other_ways(draw: st.DrawFn, count: int) -> OtherWays:
    names = draw(st.lists(ids, min_size=1, max_size=3, unique=True))
    shares = [[draw(units) for _ in names] for _ in range(count)]
    return OtherWays(tuple(names), np.array(shares).reshape(count, len(names)))


@st.composite
def packets(draw: st.DrawFn) -> Packet:
    items = tuple(
        PacketItem(
            **draw(_scored(each, units.filter(bool))),  # what is served came about
            segment=draw(st.sampled_from(Segment)),
            contributions=draw(numbers),
            position_probability=draw(units),
            swapped=draw(st.booleans()),
        )
        for each in draw(distinct)
    )
    undrawn = tuple(PoolItem(**draw(_scored(each, units))) for each in draw(distinct))
    request = ranker_pb2.RankRequest(namespace="n", task=draw(texts)).SerializeToString()
    shadow = None
    if draw(st.booleans()):
        made = [draw(scores) for _ in (*items, *undrawn)]
        shadow = ShadowScores(
            "m-1", np.array(made), np.array([draw(numbers) for _ in items]).reshape(len(items), 3 if items else 0)
        )
    more: dict[str, Any] = {name: draw(texts) for name in ("model_version", "feature_schema_hash")}
    more |= {name: draw(texts) for name in ("exploration_policy", "agent_id", "session_id", "surface", "request_id")}
    return Packet(
        packet_id=draw(ids),
        namespace="n",
        items=items,
        undrawn=undrawn,
        **more,
        shadow=shadow,
        other_ways=draw(st.none() | other_ways(len(items) + len(undrawn))),
        score_version=draw(counts),
        as_of_time=draw(times),
        create_time=draw(times),
        valid_until_time=draw(st.none() | times),
        left_out=draw(st.dictionaries(st.sampled_from(LeftOutReason), counts)),
        degradations=tuple(draw(st.lists(st.tuples(st.sampled_from(DegradationReason), texts), max_size=2))),
        empty_reason=draw(st.none() | st.sampled_from(EmptyReason)),
        reserve_pool_size=draw(counts),
        pool_sizes=(draw(counts), draw(counts)),
        reserved_slots=draw(counts),
        token_budget=draw(st.none() | counts),
        ranked_budget=draw(st.none() | counts),
        slot_budget=draw(st.none() | counts),
        payload=draw(st.sampled_from([b"", request])),
    )


id_sets = st.frozensets(ids, max_size=3)
reports = st.builds(
    LoggedReport,
    packet_id=ids,
    report=st.builds(
        Report,
        report_id=ids,
        channel=st.sampled_from(Channel),
        complete=st.booleans(),
        confidence=units,
        sequence=st.none() | st.integers(-(2**63), 2**63 - 1),
        report_time=st.none() | times,
        receive_time=times,
        used=id_sets,
        unused=id_sets,
        shown=st.none() | id_sets,
    ),
    outcome=units,
    agent_id=texts,
    request_id=texts,
    late=st.booleans(),
)
ratings = st.builds(LoggedRating, ids, texts, st.sampled_from([Rating.HELPFUL, Rating.UNHELPFUL]), texts, times)
states = st.builds(MemoryState, ids, times, st.none() | units, st.none() | units)
priors = st.builds(StorePriors, st.dictionaries(ids, st.tuples(units, st.floats(0, 1e9))), st.tuples(counts, counts))
session_keys = st.tuples(st.sampled_from(["s:", "p:"]), ids).map("".join)
sessions = st.builds(PrunedSession, session_keys, texts)
pruned_uses = st.builds(
    PrunedUse, ids, sessions, st.builds(SessionUse, st.integers(0, 10), st.integers(10, MILLION), st.none() | times)
)


def _same(one: LogRow, other: LogRow) -> bool:
    """Equality to the last bit, of arrays too."""
    return write_row("n", one) == write_row("n", other)


@given(packets() | reports | ratings | states | priors | sessions | pruned_uses)
def test_every_row_comes_back_as_it_was(row: LogRow) -> None:
    """On one line, and to the last bit of every number."""
    written = write_row("n", row)
    assert written.count(b"\n") == 1
    namespace, found = read_row(written)
    assert namespace == "n"
    assert _same(found, row)
    if isinstance(row, Packet):
        assert isinstance(found, Packet)
        before: list[PacketItem | PoolItem] = [*row.items, *row.undrawn]
        after: list[PacketItem | PoolItem] = [*found.items, *found.undrawn]
        for one, other in zip(before, after, strict=True):
            np.testing.assert_array_equal(one.features, other.features)
            np.testing.assert_array_equal(np.signbit(one.raw), np.signbit(other.raw))
    else:
        assert found == row


def row(**changes: Any) -> bytes:
    """A packet's line with something else in it; ... removes a field."""
    item = {"memory_id": "m", "segment": "ranked", "score": 1.0, "task_fit": 0.5, "features": [0.5], "raw": [None]}
    item |= {"contributions": [0.5], "tokens": 1, "inclusion_propensity": 1, "position_probability": 1}
    given_: dict[str, Any] = {
        "type": "packet",
        "namespace": "n",
        "packet_id": "p",
        "create_time": "2026-10-01T00:00:00Z",
        "as_of_time": "2026-10-01T00:00:00Z",
        "score_version": 1,
        "reserved_slots": 0,
        "reserve_pool_size": 0,
        "pool_size_unreported": 0,
        "pool_size_reported": 0,
        "items": [item],
    }
    item |= changes.pop("item", {})
    given_ |= changes
    return json.dumps({name: value for name, value in given_.items() if value is not ...}).encode()


def line(kind: str, **fields: Any) -> bytes:
    return json.dumps({"type": kind, "namespace": "n", **fields}).encode()


@pytest.mark.parametrize(
    ("given_", "says"),
    [
        (b"{", "not one JSON object"),
        (b"[" * 100_000, "not one JSON object"),
        (b"[]", "not a JSON object"),
        (row(type="memo"), "type is 'memo'; must be one of"),
        (row(namespace=""), "namespace"),
        (row(namespace="n" * 129), "namespace"),
        (row(packet_id=...), "packet_id"),
        (row(packet_id="p\0"), "packet_id"),
        (row(packet_id="\ud800"), "packet_id"),
        (row(create_time="2026-10-01"), "create_time"),
        (row(create_time=5), "create_time"),
        (row(create_time="2300-10-01T00:00:00Z"), "create_time"),
        (row(score_version=True), "score_version"),
        (row(score_version=2**63), "score_version"),
        (row(left_out={"lost": 1}), "lost"),
        (row(left_out={"budget": -1}), "left_out.budget"),
        (row(degradations=[["log_unavailable"]]), "degradations"),
        (row(request="?"), "request"),
        (row(request="/w=="), "request"),
        (row(items={}), "items"),
        (row(item={"score": math.inf}), "items[0].score"),
        (row(item={"score": 10**400}), "items[0].score"),
        (row(item={"features": [10**400]}), "items[0].features"),
        (row(item={"features": 1}), "items[0].features"),
        (row(item={"inclusion_propensity": 1.5}), "items[0].inclusion_propensity"),
        (row(item={"inclusion_propensity": 0}), "items[0].inclusion_propensity"),
        (row(item={"segment": "first"}), "items[0].segment"),
        (row(item={"key": 2}), "items[0].key"),
        (row(item={"swapped": 1}), "items[0].swapped"),
        (row(other_ways=[{"way": "", "items": [1], "undrawn": []}]), "other_ways[0].way"),
        (row(other_ways=[{"way": "a:b", "items": [1, 1], "undrawn": []}]), "not one number for each of items"),
        (row(other_ways=[{"way": "a:b", "items": [1], "undrawn": []}] * 2), "name a way twice"),
        (line("rating", memory_id="m", rating="withdrawn", time="2026-10-01T00:00:00Z"), "rating is 'withdrawn'"),
        (line("memory_state", memory_id="m", update_time="2026-10-01T00:00:00Z", importance_use=2), "importance_use"),
        (line("report", report_id="r"), "channel"),
    ],
)
def test_a_bad_row_says_what_is_wrong(given_: bytes, says: str) -> None:
    """The field by its path, its value, and what it must be."""
    with pytest.raises(ValueError, match=re.escape(says)):
        read_line(given_)


def test_a_row_with_a_memory_twice_or_uneven_numbers_is_refused() -> None:
    """It could not be written as one matrix."""
    one = json.loads(row())["items"][0]
    for other, says in (({}, "twice"), ({"memory_id": "m2", "raw": [1, 2]}, "different lengths")):
        with pytest.raises(ValueError, match=says):
            read_row(row(items=[one, {**one, **other}]))


@pytest.mark.parametrize(
    ("given_", "words"),
    [
        ({"session_key": "x"}, "session_key is 'x'; must be s: with"),
        ({"seen_millionths": MILLION + 1}, "seen_millionths is 1000001"),
        ({"used_millionths": 6}, "used_millionths is 6; must be a whole number from 0 to 5"),
    ],
)
def test_a_pruned_use_out_of_bounds_is_refused(given_: dict[str, Any], words: str) -> None:
    """It says which value, and what it must be."""
    row = {"type": "pruned_use", "namespace": "n", "memory_id": "m", "session_key": "s:s"}
    with pytest.raises(ValueError, match=words):
        read_row(json.dumps({**row, "used_millionths": 0, "seen_millionths": 5, **given_}).encode())
