from __future__ import annotations

import dataclasses
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.domain import DAY, Channel, ReportState, Segment
from sidecar.features import FEATURE_NAMES, PARTLY_FED_BY_USE, RAW_NAMES
from sidecar.store.log import LogRow
from sidecar.store.merge import merge
from tests.training.logs import HOUR, START, features_of, make_packet, make_report
from training.dataset import STATES, Cutoffs, Dataset, build_dataset
from training.labels import CHANNELS

LATER = START + 10 * DAY
ALL = Cutoffs(event=LATER, ingest=LATER)
PLAIN = [features_of({"semantic": 0.9}), features_of({"semantic": 0.5}), features_of({"semantic": 0.1})]


def labels(dataset: Dataset) -> dict[str, tuple[float, float, Channel | None]]:
    """(a, b, channel) by memory id."""
    return {
        dataset.memory_id[dataset.memory_key[row]]: (
            float(dataset.used[row]),
            float(dataset.unused[row]),
            CHANNELS[dataset.channel[row]],
        )
        for row in range(len(dataset))
    }


def same(one: Any, other: Any) -> bool:
    """True if two data sets are the same, bit for bit."""
    for each in dataclasses.fields(one):
        left, right = getattr(one, each.name), getattr(other, each.name)
        if isinstance(left, np.ndarray):
            if left.dtype != right.dtype or left.shape != right.shape or left.tobytes() != right.tobytes():
                return False
        elif dataclasses.is_dataclass(left):
            if not same(left, right):
                return False
        elif left != right:
            return False
    return True


def test_a_packet_without_a_report_has_no_labels() -> None:
    """Served and unreported is missing data: neither used nor unused, whatever the age."""
    dataset = build_dataset([make_packet("p", PLAIN)], ALL)
    assert not dataset.used.any()
    assert not dataset.unused.any()
    assert [STATES[each] for each in dataset.packets.state] == [ReportState.UNREPORTED]
    young = build_dataset([make_packet("p", PLAIN)], Cutoffs(LATER, START + HOUR))
    assert [STATES[each] for each in young.packets.state] == [ReportState.OPEN]


def test_a_complete_explicit_report_labels_every_shown_memory() -> None:
    """Named is used, shown and unnamed is unused, trimmed from the prompt is neither."""
    rows: list[LogRow] = [make_packet("p", PLAIN, ids="abc"), make_report("p", "a", shown="ab")]
    assert labels(build_dataset(rows, ALL)) == {
        "a": (1.0, 0.0, Channel.EXPLICIT),
        "b": (0.0, 1.0, Channel.EXPLICIT),
        "c": (0.0, 0.0, None),
    }


def test_an_incomplete_report_names_only_what_it_names() -> None:
    """Silence in an incomplete report labels nothing; a memory named as unused is unused."""
    rows: list[LogRow] = [make_packet("p", PLAIN, ids="abc"), make_report("p", "a", unused="c", complete=False)]
    found = labels(build_dataset(rows, ALL))
    assert (found["a"][0], found["b"][:2], found["c"][1]) == (1.0, (0.0, 0.0), 1.0)


def test_an_inferred_word_is_worth_what_explicit_ones_prove() -> None:
    """Beta(8, 2), updated by packets in which both channels speak; a less sure reporter is taken at its word."""
    both: list[LogRow] = []
    for number in range(10):
        both += [
            make_packet(f"p{number}", PLAIN, ids="abc"),
            make_report(f"p{number}", "a"),
            make_report(f"p{number}", "b", channel=Channel.INFERRED, confidence=1.0),
        ]
    alone: list[LogRow] = [
        make_packet("q", PLAIN, ids="abc"),
        make_report("q", "a", channel=Channel.INFERRED, confidence=1.0),
        make_report("q", "b", channel=Channel.INFERRED, confidence=0.2, complete=False),
    ]
    first = build_dataset(alone, ALL)
    assert labels(first) == {
        "a": (0.8, 0.0, Channel.INFERRED),
        "b": (0.2, 0.0, Channel.INFERRED),
        "c": (0.0, 0.8, Channel.INFERRED),
    }
    dataset = build_dataset([*both, *alone], ALL)
    last = dataset.packets.packet_id.index("q")
    used = dataset.used[dataset.packet == last]
    assert used[0] == pytest.approx(8 / 20)  # ten times b was inferred and refuted
    # Of a, unnamed by INFERRED, explicit words say used; of c they confirm "unused".
    assert dataset.unused[dataset.packet == last][2] == pytest.approx((8 + 10) / (10 + 20))


def test_explicit_replaces_inferred() -> None:
    """One memory has one label, from the strongest channel that speaks."""
    rows: list[LogRow] = [
        make_packet("p", PLAIN, ids="abc"),
        make_report("p", "a", channel=Channel.INFERRED),
        make_report("p", "b"),
    ]
    assert labels(build_dataset(rows, ALL))["a"] == (0.0, 1.0, Channel.EXPLICIT)


def test_an_echo_is_a_tenth_of_a_use_and_a_fifth_at_most() -> None:
    """ECHO starts at .1, rises where explicit words confirm it, stops at .2, and never says "not used"."""
    rows: list[LogRow] = [make_packet("e", PLAIN, ids="abc"), make_report("e", "a", channel=Channel.ECHO)]
    found = labels(build_dataset(rows, ALL))
    assert found == {"a": (0.1, 0.0, Channel.ECHO), "b": (0.0, 0.0, None), "c": (0.0, 0.0, None)}
    for number in range(50):
        rows += [
            make_packet(f"p{number}", PLAIN, ids="abc"),
            make_report(f"p{number}", "a"),
            make_report(f"p{number}", "a", channel=Channel.ECHO),
        ]
    dataset = build_dataset(rows, ALL)
    assert dataset.trust.echo.right == 50
    assert dataset.used[dataset.packet == 0][0] == 0.2


def test_the_packet_channel_weighs_the_packet_and_labels_nothing() -> None:
    """g is what was said last on the PACKET channel; no memory gets a label from it."""
    rows: list[LogRow] = [
        make_packet("p", PLAIN, ids="abc"),
        make_report("p", channel=Channel.PACKET, outcome=0.25, at=START + 2 * HOUR),
        make_report("p", channel=Channel.PACKET, outcome=1.0, at=START + HOUR),
    ]
    dataset = build_dataset(rows, ALL)
    assert dataset.packets.outcome.tolist() == [0.25]
    assert not dataset.packets.reported.any()
    assert all(channel is None for _, _, channel in labels(dataset).values())
    assert build_dataset(rows[:1], ALL).packets.outcome.tolist() == [0.0]


def test_cut_offs_fix_what_counts() -> None:
    """Packets from the event cut-off on and reports after the ingest cut-off do not exist; a late report counts."""
    rows: list[LogRow] = [
        make_packet("before", PLAIN, create_time=START - DAY),
        make_packet("in", PLAIN, ids="abc"),
        make_packet("after", PLAIN, create_time=START + DAY),
        make_report("in", "a", at=START + 3 * DAY, late=True),
        make_report("in", "b", at=START + 5 * DAY),
    ]
    dataset = build_dataset(rows, Cutoffs(START + DAY, START + 3 * DAY, START))
    assert dataset.packets.packet_id == ("in",)
    assert [STATES[each] for each in dataset.packets.state] == [ReportState.LATE]
    assert dataset.packets.reported.all()
    assert dataset.used.tolist() == [1.0, 0.0, 0.0]
    earlier = build_dataset(rows, Cutoffs(START + DAY, START + 3 * DAY - 1, START))
    assert not earlier.used.any()


def test_sessions_are_counted_by_namespace_and_id() -> None:
    """A packet without a session id is a session of its own; sessions are numbered by when they start."""
    rows: list[LogRow] = [
        make_packet("a", PLAIN, session_id="s", create_time=START + 2),
        make_packet("b", PLAIN, session_id="s", create_time=START + 1),
        make_packet("c", PLAIN, session_id="s", namespace="other", create_time=START),
        make_packet("d", PLAIN, create_time=START + 3),
    ]
    packets = build_dataset(rows, ALL).packets
    assert packets.packet_id == ("c", "b", "a", "d")
    assert packets.session.tolist() == [0, 1, 1, 2]
    assert (packets.session_start - START).tolist() == [0, 1, 1, 3]


def test_packets_of_another_schema_are_counted_and_left_out() -> None:
    """Numbers under another feature schema mean something else."""
    rows: list[LogRow] = [make_packet("old", [np.zeros(3)], feature_schema_hash="old"), make_packet("new", PLAIN)]
    dataset = build_dataset(rows, ALL)
    assert dataset.packets.packet_id == ("new",)
    assert dataset.other_schemas == {"old": 1}


def test_packets_of_a_preset_with_measures_of_its_own_are_counted_and_left_out() -> None:
    """Under the same names they log other numbers; the other presets measure as the default does."""
    names = ("smartctx", "importance", "smartctx", "engine", "default")
    rows: list[LogRow] = [make_packet(f"p{i}", PLAIN, model_version=name) for i, name in enumerate(names)]
    dataset = build_dataset(rows, ALL)
    assert dataset.packets.packet_id == ("p3", "p4")
    assert dataset.own_measures == {"importance": 1, "smartctx": 2}
    assert dataset.other_schemas == {}


def test_numbers_are_as_logged_and_pools_stand_beside() -> None:
    """Features, places, segments and pools come through bit for bit."""
    pool = [features_of({"lexical": 1 / 3})]
    segments = [Segment.PINNED, Segment.RANKED, Segment.RESERVED]
    dataset = build_dataset([make_packet("p", PLAIN, pool=pool, segments=segments)], ALL)
    assert dataset.features.tobytes() == np.stack(PLAIN).tobytes()
    assert dataset.place.tolist() == [1, 2, 3]
    assert dataset.segment.tolist() == [2, 0, 1]
    assert dataset.pool_features[0, FEATURE_NAMES.index("lexical")] == 1 / 3
    assert dataset.pool_propensity.tolist() == [0.5]
    assert dataset.memory_id[dataset.pool_memory_key[0]] == "p-u0"


def test_recency_without_use_follows_the_half_life_that_the_value_shows() -> None:
    """The value from creation alone goes by the half-life in force when it was logged, not by today's."""

    def raw(age: float, create_age: float) -> np.ndarray:
        return np.array([{"age_days": age, "create_age_days": create_age}.get(name, 0.0) for name in RAW_NAMES])

    rows = [features_of({"recency": 2.0 ** (-5 / 10)}), features_of({"recency": 1.0}), features_of({"recency": 0.3})]
    ages = [raw(5, 20), raw(0, 90), raw(7, 7)]
    dataset = build_dataset([make_packet("p", rows, raw=ages)], ALL)
    found = dataset.without_use[:, PARTLY_FED_BY_USE.index("recency")]
    assert found.tolist() == pytest.approx([2.0 ** (-20 / 10), 0.5, 0.3])


reports = st.lists(
    st.builds(
        make_report,
        packet_id=st.sampled_from(["p0", "p1", "p2"]),
        used=st.sets(st.sampled_from("abc")).map(sorted),
        unused=st.sets(st.sampled_from("abc")).map(sorted),
        shown=st.none() | st.sets(st.sampled_from("abc")).map(sorted),
        channel=st.sampled_from(Channel),
        complete=st.booleans(),
        confidence=st.sampled_from([0.2, 0.5, 0.9]),
        sequence=st.none() | st.integers(0, 3),
        at=st.integers(START, START + 5 * DAY),
        outcome=st.sampled_from([0.0, 0.5, 1.0]),
        late=st.booleans(),
    ),
    max_size=8,
)


@settings(max_examples=150, deadline=None)
@given(reports=reports, seed=st.integers(0, 2**16), copies=st.integers(1, 3))
def test_replays_reordering_and_duplicates_change_nothing(reports: list[LogRow], seed: int, copies: int) -> None:
    """The data set depends on the set of rows alone, to the last bit; and labels are the store's own merge."""
    packets: list[LogRow] = [
        make_packet(f"p{i}", PLAIN, ids="abc", session_id=f"s{i % 2}", create_time=START + i) for i in range(3)
    ]
    once = build_dataset([*packets, *reports], ALL)
    rows = [*packets, *reports] * copies
    random.Random(seed).shuffle(rows)
    assert same(once, build_dataset(rows, ALL))
    assert ((once.used == 0) | (once.unused == 0)).all()
    for number, packet_id in enumerate(once.packets.packet_id):
        mine = {each.report.report_id: each.report for each in reports if each.packet_id == packet_id}  # type: ignore[union-attr]
        spoken = {one.memory_id for one in merge(mine.values(), list("abc"))}
        of_packet = once.packet == number
        labelled = {once.memory_id[key] for key in once.memory_key[of_packet & (once.channel > 0)]}
        assert labelled == spoken
