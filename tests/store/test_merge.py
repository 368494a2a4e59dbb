from dataclasses import astuple, replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.domain import DAY, Channel, ReportState
from sidecar.store.counts import AgentUse, SessionUse, total
from sidecar.store.merge import INFERRED_UNUSED, MILLION, Merged, Report, merge, report_state, report_window

IDS = ("a", "b", "c")
MU, KAPPA = 0.2, 10.0


def report(
    name: str = "r",
    channel: Channel = Channel.EXPLICIT,
    used: str = "",
    unused: str = "",
    shown: str | None = None,
    *,
    complete: bool = True,
    confidence: float = 0.8,
    sequence: int | None = None,
    report_time: int | None = None,
    receive_time: int = 100,
) -> Report:
    """A report that names memories by letters."""
    return Report(
        report_id=name,
        channel=channel,
        complete=complete,
        confidence=confidence,
        sequence=sequence,
        report_time=report_time,
        receive_time=receive_time,
        used=frozenset(used),
        unused=frozenset(unused) - frozenset(used),
        shown=None if shown is None else frozenset(shown),
    )


def merged(*reports: Report) -> dict[str, Merged]:
    """The merged reports by memory."""
    return {one.memory_id: one for one in merge(reports, IDS)}


def words(*reports: Report) -> dict[str, list[tuple[Channel, bool]]]:
    """Channel and word by memory."""
    return {key: [(word.channel, word.used) for word in one.words] for key, one in merged(*reports).items()}


def pairs(*reports: Report) -> dict[str, tuple[int, int]]:
    """(used, seen) by memory."""
    return {key: (one.used, one.seen) for key, one in merged(*reports).items()}


WHOLE = (MILLION, MILLION)
NONE = (0, MILLION)


def test_a_complete_report_speaks_for_all_that_was_shown() -> None:
    """Named memories were used, the other shown ones were not, and of trimmed ones nothing is known."""
    assert pairs(report(used="a")) == {"a": WHOLE, "b": NONE, "c": NONE}
    assert pairs(report(used="a", shown="ab")) == {"a": WHOLE, "b": NONE}


def test_an_incomplete_report_names_only_positives() -> None:
    """What an incomplete report leaves out is unknown; what it names counts as a use, but in no rate."""
    found = merged(report(used="a", complete=False))
    assert list(found) == ["a"]
    assert (found["a"].used, found["a"].seen, found["a"].last_use_time) == (0, 0, 100)


def test_the_latest_named_word_stands() -> None:
    """A used is taken back by naming the memory as unused in a later report, and the other way round."""
    yes, no = report("yes", used="a", sequence=1), report("no", unused="a", sequence=2)
    assert pairs(yes, no)["a"] == pairs(no, yes)["a"] == NONE
    assert pairs(yes, replace(no, sequence=0))["a"] == WHOLE


def test_silence_never_takes_a_named_use_back() -> None:
    """A later complete report that does not mention a used memory leaves it used."""
    assert words(report("one", used="a", sequence=1), report("two", used="b", sequence=2)) == {
        "a": [(Channel.EXPLICIT, True)],
        "b": [(Channel.EXPLICIT, True)],
        "c": [(Channel.EXPLICIT, False)],
    }


def test_the_latest_complete_report_says_what_was_shown() -> None:
    """A memory that turns out to have been trimmed is unshown, not unused."""
    everything, trimmed = report("one", used="a", sequence=1), report("two", used="a", shown="ab", sequence=2)
    assert "c" in pairs(everything)
    assert "c" not in pairs(everything, trimmed)


def test_explicit_replaces_inferred() -> None:
    """The agent's own word wins over a handle that was found, for used and for not used."""
    match = report("match", Channel.INFERRED, used="ab", complete=False, confidence=0.6)
    assert pairs(match) == {"a": (600_000, MILLION), "b": (600_000, MILLION)}
    assert pairs(match, report("said", used="a")) == {"a": WHOLE, "b": NONE, "c": NONE}
    assert words(match, report("said", used="a"))["b"] == [(Channel.EXPLICIT, False), (Channel.INFERRED, True)]


def test_inferred_keeps_its_highest_confidence() -> None:
    """Of several matches the surest counts, whichever came last."""
    sure = report("sure", Channel.INFERRED, used="a", confidence=0.9, sequence=1)
    unsure = report("unsure", Channel.INFERRED, used="a", confidence=0.3, sequence=2)
    found = merged(sure, unsure)["a"]
    assert found.words[0].confidence == 0.9
    assert (found.used, found.seen) == (900_000, MILLION)


def test_an_inferred_report_without_a_match_is_a_doubtful_no() -> None:
    """A memory whose handles were looked for and not found was seen with the confidence of that silence."""
    found = merged(report("r", Channel.INFERRED, used="a", complete=True))["b"]
    assert (found.used, found.seen) == (0, round(INFERRED_UNUSED * MILLION))
    assert found.words[0].confidence == INFERRED_UNUSED


def test_an_unlikely_match_is_no_use_yet() -> None:
    """A match of small confidence moves the rate by that much, but does not make a memory young."""
    assert merged(report("r", Channel.INFERRED, used="a", confidence=0.4))["a"].last_use_time is None
    assert merged(report("r", Channel.INFERRED, used="a", confidence=0.5))["a"].last_use_time == 100


def test_packet_and_echo_say_nothing_of_use() -> None:
    """A good turn and a repetition give no pair and no use time."""
    turn = report("turn", Channel.PACKET, used="a", unused="b", complete=True)
    echo = report("echo", Channel.ECHO, used="a", unused="b", complete=False)
    assert merged(turn) == {}
    found = merged(turn, echo)
    assert list(found) == ["a"]
    assert (found["a"].used, found["a"].seen, found["a"].last_use_time) == (0, 0, None)
    assert [(word.channel, word.confidence) for word in found["a"].words] == [(Channel.ECHO, 0.1)]


def test_a_report_time_ahead_of_ours_makes_no_use_in_the_future() -> None:
    """The use time is the reporter's, but never later than the arrival."""
    assert merged(report(used="a", report_time=10**18))["a"].last_use_time == 100
    assert merged(report(used="a", report_time=50))["a"].last_use_time == 50


@pytest.mark.parametrize(
    ("first_late", "age", "state"),
    [
        (None, 2 * DAY, ReportState.OPEN),
        (None, 2 * DAY + 1, ReportState.UNREPORTED),
        (False, 3 * DAY, ReportState.REPORTED),
        (True, DAY, ReportState.LATE),
        (None, -5, ReportState.OPEN),
    ],
)
def test_a_packet_is_open_for_a_window(first_late: bool | None, age: int, state: ReportState) -> None:
    """Without a report a packet is open until its window ends; what its first report was when it came, it stays."""
    assert report_state(age, first_late, 2 * DAY) is state


@pytest.mark.parametrize(
    ("delays", "window"),
    [
        ([], DAY),
        ([9 * DAY] * 99, DAY),
        ([9 * DAY] * 100, 9 * DAY),
        ([5] * 99 + [9 * DAY], DAY),
        ([5] * 98 + [9 * DAY, 2 * DAY], 2 * DAY),
        ([-5] * 200, DAY),
    ],
)
def test_the_window_goes_by_the_slowest_reports_in_a_hundred(delays: list[int], window: int) -> None:
    """It is the 99th percentile of delays, never under a day, and a day before there are a hundred of them."""
    assert report_window(delays) == window


@given(st.lists(st.integers(0, 30 * DAY), min_size=100, max_size=300))
def test_at_most_one_report_in_a_hundred_was_slower_than_the_window(delays: list[int]) -> None:
    """Whatever the delays are, and no shorter window of a delay would do."""
    window = report_window(delays)
    assert sum(delay > window for delay in delays) * 100 <= len(delays)
    assert window == DAY or sum(delay >= window for delay in delays) * 100 > len(delays)


def named(one: Report) -> str:
    """A name that differs where the words differ, as in the store."""
    return repr([sorted(value) if isinstance(value, frozenset) else value for value in astuple(one)])


letters = st.sets(st.sampled_from(IDS)).map("".join)


@st.composite
def reports(draw: st.DrawFn, *, by_arrival: bool = False) -> Report:
    """Any report. Unless `by_arrival`, its reporter says its order."""
    sequence = draw(st.none() | st.integers(0, 3))
    time = draw(st.none() | st.integers(0, 3)) if sequence is not None or by_arrival else draw(st.integers(0, 3))
    any_report = report(
        "",
        draw(st.sampled_from([Channel.EXPLICIT, Channel.INFERRED, Channel.ECHO])),
        draw(letters),
        draw(letters),
        draw(st.none() | letters),
        complete=draw(st.booleans()),
        confidence=draw(st.sampled_from([0.0, 0.1, 0.5, 0.8, 1.0])),
        sequence=sequence,
        report_time=time,
        receive_time=draw(st.integers(0, 9)) if by_arrival else 100,
    )
    return replace(any_report, report_id=named(any_report))


@given(st.lists(reports(), max_size=7), st.randoms(use_true_random=False), st.data())
def test_order_and_repetition_of_arrival_change_nothing(
    arrived: list[Report], random: Random, data: st.DataObject
) -> None:
    """Reports whose reporter orders them come to the same in any order of arrival, and however often they arrive."""
    again = arrived + (data.draw(st.lists(st.sampled_from(arrived), max_size=4)) if arrived else [])
    random.shuffle(again)
    unique = {one.report_id: one for one in arrived}
    assert merge(again, IDS) == merge(unique.values(), IDS)
    late = [replace(one, receive_time=one.receive_time + 7) for one in again]
    assert [(one.used, one.seen) for one in merge(late, IDS)] == [
        (one.used, one.seen) for one in merge(unique.values(), IDS)
    ]


@given(st.lists(reports(by_arrival=True), max_size=7))
def test_a_pair_is_always_a_part_of_a_session(arrived: list[Report]) -> None:
    """0 <= used <= seen <= 1 holds for whatever is reported."""
    for one in merge(arrived, IDS):
        assert 0 <= one.used <= one.seen <= MILLION


def use_rate(sessions: dict[str, SessionUse], agent_of: dict[str, str]) -> float:
    """The use rate with mu and kappa frozen."""
    agents: dict[str, AgentUse] = {}
    for session, use in sessions.items():
        agents[agent_of[session]] = agents.get(agent_of[session], AgentUse()).plus(use.as_agent())
    counts = total(agents.values())
    assert 0 <= counts.used <= counts.seen
    return (counts.used + KAPPA * MU) / (counts.seen + KAPPA)


@st.composite
def histories(draw: st.DrawFn) -> tuple[dict[int, str], dict[str, str], dict[int, list[Report]]]:
    """Sessions of packets, agents of sessions, and reports on packets."""
    session_of = {packet: f"s{packet % draw(st.integers(1, 4))}" for packet in range(draw(st.integers(1, 6)))}
    agent_of = {session: draw(st.sampled_from(["x", "y"])) for session in set(session_of.values())}
    arrived = {packet: draw(st.lists(reports(by_arrival=True), max_size=4)) for packet in session_of}
    return session_of, agent_of, arrived


def rate_of(
    session_of: dict[int, str], agent_of: dict[str, str], arrived: dict[int, list[Report]], base: dict[str, SessionUse]
) -> float:
    """The use rate of memory a, on top of sessions known before."""
    sessions = dict(base)
    for packet, of_packet in arrived.items():
        for one in merge(of_packet, IDS):
            if one.memory_id == "a":
                session = session_of[packet]
                old = sessions.get(session, SessionUse())
                sessions[session] = old.with_packet(one.used, one.seen, one.last_use_time)
    return use_rate(sessions, agent_of)


@given(histories(), reports(by_arrival=True), st.data(), st.integers(0, 30), st.integers(0, 30))
def test_an_unused_report_never_raises_a_use_rate(
    history: tuple[dict[int, str], dict[str, str], dict[int, list[Report]]],
    unused: Report,
    data: st.DataObject,
    used_before: int,
    unused_before: int,
) -> None:
    """Whatever was reported before, a report that does not say used leaves the use rate where it is, or lower."""
    session_of, agent_of, arrived = history
    base = {f"before{i}": SessionUse(MILLION, MILLION) for i in range(used_before)}
    base |= {f"idle{i}": SessionUse(0, MILLION) for i in range(unused_before)}
    agent_of = agent_of | dict.fromkeys(base, "x")
    before = rate_of(session_of, agent_of, arrived, base)
    packet = data.draw(st.sampled_from(sorted(session_of)))
    saying_no = replace(unused, used=unused.used - {"a"})
    # A report that trims the memory after all says that it was not shown: that takes an implied "not used" back.
    if saying_no.shown is not None:
        saying_no = replace(saying_no, shown=saying_no.shown | {"a"})
    after = rate_of(session_of, agent_of, {**arrived, packet: [*arrived[packet], saying_no]}, base)
    assert after <= before + 1e-12


@given(st.integers(1, 50), st.integers(1, 60))
def test_many_uses_in_one_session_never_beat_one_in_each_of_many(uses: int, agents: int) -> None:
    """Fifty uses in one session weigh as one; one in each of fifty weighs more, whoever's sessions they are."""
    one = SessionUse()
    for _ in range(50):
        one = one.with_packet(MILLION, MILLION, 1)
    many = {f"s{i}": SessionUse(MILLION, MILLION, 1) for i in range(uses)}
    agent_of = {session: f"agent{i % agents}" for i, session in enumerate(many)}
    assert use_rate({"s": one}, {"s": "x"}) <= use_rate(many, agent_of)
    assert use_rate({"s": one}, {"s": "x"}) == use_rate({"s": SessionUse(MILLION, MILLION, 1)}, {"s": "x"})


def test_one_agent_weighs_at_most_twenty_sessions() -> None:
    """An agent's further sessions move its rate, but not the weight of its word; all its sessions are still counted."""
    loud = AgentUse(used=90 * MILLION, seen=100 * MILLION, use_sessions=90, reported_sessions=100)
    other = AgentUse(used=0, seen=10 * MILLION, use_sessions=0, reported_sessions=10, last_use_time=5)
    counts = total([loud, other])
    assert (counts.used, counts.seen) == (18.0, 30.0)
    assert (counts.use_sessions, counts.reported_sessions, counts.last_use_time) == (90, 110, 5)


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=6), st.randoms(use_true_random=False))
def test_the_order_of_agents_changes_no_bit(sums: list[tuple[int, int]], random: Random) -> None:
    """The counts are the same to the last bit in whatever order the sums are read."""
    agents = [AgentUse(min(one) * 333_333, max(one) * 777_777, 1, 1) for one in sums]
    expected = total(agents)
    random.shuffle(agents)
    assert total(agents) == expected
