from collections.abc import Callable
from typing import Any

import pytest

from sidecar.domain import (
    DAY,
    SECOND,
    Change,
    Channel,
    MemoryUse,
    Packet,
    ReportState,
    UseCounts,
    UseReport,
)
from sidecar.errors import PacketNotFoundError, RequestIdReusedError
from sidecar.store.reports import CONTRADICTORY, NOT_IN_PACKET, ReportItem, ReportOutcome
from sidecar.store.requests import Once, Replayed
from sidecar.store.store import Store

NOW = 1_700_000_000_000_000


class House:
    """A store with the memories a, b and c in namespace n, and one to log packets and reports in few words."""

    def __init__(self, store: Store, make_packet: Callable[..., Packet]) -> None:
        self.store = store
        self._make_packet = make_packet
        result = store.upsert("n", [(name, {"content": name, "tokens": 1}) for name in "abc"], NOW)
        assert not isinstance(result, Replayed)
        self.keys = {memory.id: memory.key for _, memory in result[0]}

    def packet(self, packet_id: str, session: str = "", memories: str = "abc", **fields: Any) -> None:
        """Logs a packet."""
        keys = {name: self.keys[name] for name in memories}
        self.store.log_packet(self._make_packet(packet_id, keys, session_id=session, **fields))

    def report(self, packet_id: str, used: str = "", unused: str = "", now: int = NOW, **fields: Any) -> ReportOutcome:
        """Reports; memories are named by letters."""
        report = UseReport(packet_id, used_memory_ids=tuple(used), unused_memory_ids=tuple(unused), **fields)
        outcome = self.store.report(report, now)
        assert not isinstance(outcome, Replayed)
        return outcome

    def counts(self, name: str) -> UseCounts:
        """What use says of a memory: as kept, and the same as from the log alone."""
        key = self.keys[name]
        kept = self.store.load("n").uses.get(key, UseCounts())
        assert kept == self.store.use_counts_as_of("n", 2**60).get(key, UseCounts())
        return kept


@pytest.fixture
def house(store: Store, make_packet: Callable[..., Packet]) -> House:
    """A store with three memories."""
    return House(store, make_packet)


def test_a_report_counts_what_it_names_and_implies(house: House) -> None:
    """A complete report counts its used memories as used and seen, and the others as seen."""
    house.packet("p", "s")
    outcome = house.report("p", used="a", now=NOW + SECOND)
    assert (outcome.used_count, outcome.unused_count, outcome.replayed) == (1, 2, False)
    assert outcome.state is ReportState.REPORTED
    assert house.counts("a") == UseCounts(1.0, 1.0, 1, 1, NOW + SECOND)
    assert house.counts("b") == UseCounts(0.0, 1.0, 0, 1, None)
    logged = house.store.get_packet("n", "p")
    assert logged.uses == (
        MemoryUse("a", Channel.EXPLICIT, True, 1.0, NOW + SECOND),
        MemoryUse("b", Channel.EXPLICIT, False, 1.0, NOW + SECOND),
        MemoryUse("c", Channel.EXPLICIT, False, 1.0, NOW + SECOND),
    )
    assert logged.report_state(NOW + 9 * DAY) is ReportState.REPORTED


def test_serving_and_silence_change_nothing(house: House) -> None:
    """A packet without a report, and reports of the turn or of repetitions, leave every count and version alone."""
    changes: list[Change] = []
    house.store.subscribe(changes.append)
    house.packet("p1", "s1")
    house.packet("p2", "s2")
    house.report("p2", channel=Channel.PACKET, complete=False, outcome=1.0)
    house.report("p2", used="a", channel=Channel.ECHO, complete=False)
    assert house.counts("a") == UseCounts()
    assert changes == []
    assert house.store.namespace("n").score_version == 1
    assert house.store.numbers().reported_packet_count == 0


def test_a_second_packet_of_the_session_with_the_same_outcome_changes_nothing(house: House) -> None:
    """A session counts once, however many of its packets say the same."""
    for number in range(5):
        house.packet(f"p{number}", "s")
        house.report(f"p{number}", used="a")
    assert house.counts("a") == UseCounts(1.0, 1.0, 1, 1, NOW)
    assert house.store.namespace("n").score_version == 2


def test_packets_without_a_session_are_sessions_of_their_own(house: House) -> None:
    """Each packet without a session id counts by itself."""
    for number in range(3):
        house.packet(f"p{number}")
        house.report(f"p{number}", used="a" if number else "b")
    assert house.counts("a") == UseCounts(2.0, 3.0, 2, 3, NOW)


def test_a_changed_verdict_replaces_the_first(house: House) -> None:
    """After used and then not used only the last word counts, and a late first word does not bring it back."""
    house.packet("p", "s")
    house.report("p", used="ab", sequence=1)
    assert house.counts("a") == UseCounts(1.0, 1.0, 1, 1, NOW)
    house.report("p", unused="a", sequence=3, complete=False)
    assert house.counts("a") == UseCounts(0.0, 1.0, 0, 1, None)
    house.report("p", used="a", sequence=2)
    assert house.counts("a") == UseCounts(0.0, 1.0, 0, 1, None)
    assert house.counts("b") == UseCounts(1.0, 1.0, 1, 1, NOW)


def test_taking_back_looks_at_the_sessions_other_packets(house: House) -> None:
    """A use that was taken back in one packet still stands in another of the session."""
    house.packet("p1", "s")
    house.packet("p2", "s")
    house.report("p1", used="a", now=NOW + 1)
    house.report("p2", used="a", now=NOW + 2)
    house.report("p2", unused="a", now=NOW + 3)
    assert house.counts("a") == UseCounts(1.0, 1.0, 1, 1, NOW + 1)
    house.report("p1", unused="a", now=NOW + 4)
    assert house.counts("a") == UseCounts(0.0, 1.0, 0, 1, None)


def test_the_same_words_count_once(house: House) -> None:
    """A report that is sent again, ids in another order, is known by its words and changes nothing."""
    house.packet("p", "s")
    first = house.report("p", used="ab", unused="c")
    again = house.report("p", used="ba", unused="c", now=NOW + 5)
    assert again.replayed
    assert (again.report_id, again.used_count, again.unused_count) == (first.report_id, 2, 1)
    assert house.store.namespace("n").score_version == 2


def test_a_request_id_makes_a_retry_count_once(house: House) -> None:
    """The same request id is answered with the first answer; with another report it is refused."""
    house.packet("p", "s")
    once = Once("ReportUse", "r", b"hash", lambda outcome: str(outcome.used_count).encode())
    report = UseReport("p", used_memory_ids=("a",), request_id="r")
    assert isinstance(house.store.report(report, NOW, once), ReportOutcome)
    assert house.store.report(report, NOW + DAY - 1, once) == Replayed(b"1")
    with pytest.raises(RequestIdReusedError, match="'r'"):
        house.store.report(report, NOW, Once("ReportUse", "r", b"other", lambda outcome: b""))


def test_ids_that_are_not_in_the_packet_are_named(house: House) -> None:
    """Each id that does not count says why, and the rest counts."""
    house.packet("p", "s", "ab")
    report = UseReport(
        "p", used_memory_ids=("a", "c", "x"), unused_memory_ids=("a", "b"), shown_memory_ids=("a", "b", "y")
    )
    outcome = house.store.report(report, NOW)
    assert isinstance(outcome, ReportOutcome)
    assert outcome.results == (
        ReportItem("a"),
        ReportItem("c", NOT_IN_PACKET),
        ReportItem("x", NOT_IN_PACKET),
        ReportItem("a", CONTRADICTORY),
        ReportItem("b"),
        ReportItem("a"),
        ReportItem("b"),
        ReportItem("y", NOT_IN_PACKET),
    )
    assert (outcome.used_count, outcome.unused_count) == (1, 1)
    assert house.counts("a").used == 1.0
    assert house.counts("c") == UseCounts()


def test_a_report_with_only_wrong_names_implies_nothing(house: House) -> None:
    """If no used id is in the packet, silence on the others is not taken for "not used"."""
    house.packet("p", "s")
    outcome = house.report("p", used="xy")
    assert (outcome.used_count, outcome.unused_count) == (0, 0)
    assert house.counts("a") == UseCounts()
    house.report("p", used="")
    assert house.counts("a") == UseCounts(0.0, 1.0, 0, 1, None)


def test_another_namespaces_packet_cannot_be_reported_on(house: House) -> None:
    """A report names its packet's namespace or none; all else is an unknown packet, and counts nothing."""
    house.packet("p", "s")
    for packet_id, namespace in (("p", "n2"), ("p", ""), ("q", "n"), ("q", None)):
        with pytest.raises(PacketNotFoundError):
            house.report(packet_id, used="a", namespace=namespace)
    assert house.counts("a") == UseCounts()
    house.report("p", used="a", namespace="n")
    assert house.counts("a").used == 1.0


def test_a_report_on_a_deleted_memory_is_history(house: House) -> None:
    """It is accepted and kept with the packet, but neither the memory nor its successor of that id counts it."""
    house.packet("p1", "s1")
    house.packet("p2", "s2")
    house.report("p1", used="a")
    house.store.delete("n", ["a"], NOW)
    assert house.report("p2", used="a").results == (ReportItem("a"),)
    house.store.upsert("n", [("a", {"content": "new", "tokens": 1})], NOW)
    state = house.store.load("n")
    assert [state.uses.get(memory.key) for memory in state.memories if memory.id == "a"] == [None]
    assert state.uses == house.store.use_counts_as_of("n", 2**60)
    assert house.store.get_packet("n", "p2").uses[0] == MemoryUse("a", Channel.EXPLICIT, True, 1.0, NOW)


def test_a_callers_own_candidates_are_reported_but_not_counted(house: House) -> None:
    """Memories that are not stored have negative keys; what is reported of them stays with the packet."""
    house.keys |= {"x": -1, "y": -2}
    house.packet("p", "s", "xy")
    outcome = house.report("p", used="x")
    assert (outcome.used_count, outcome.unused_count) == (1, 1)
    assert [use.used for use in house.store.get_packet("n", "p").uses] == [True, False]
    assert house.store.load("n").uses == {}


def test_a_late_report_counts_from_its_arrival_on(house: House) -> None:
    """A report after the window marks the packet as late, counts now, and is unknown to a ranking as of before."""
    house.packet("p", "s")
    outcome = house.report("p", used="a", now=NOW + 2 * DAY, report_time=NOW + SECOND)
    assert outcome.state is ReportState.LATE
    assert house.counts("a").used == 1.0
    assert house.store.use_counts_as_of("n", NOW + 2 * DAY - 1) == {}
    assert house.store.use_counts_as_of("n", NOW + 2 * DAY)[house.keys["a"]].last_use_time == NOW + SECOND


def test_slow_reporters_have_a_longer_window(house: House) -> None:
    """Once a hundred first reports have come, the window is as long as 99 of 100 took; what was late before stays so,
    later words on a packet are no delays, and only the last thousand count."""
    for number in range(101):
        house.packet(f"p{number}", f"s{number}")
    states = [house.report(f"p{number}", used="a", now=NOW + 3 * DAY).state for number in range(101)]
    assert states == [ReportState.LATE] * 100 + [ReportState.REPORTED]
    house.report("p3", unused="a", now=NOW + 90 * DAY)
    house.packet("open", "s")

    def state(age: int) -> ReportState:
        return house.store.get_packet("n", "open").report_state(NOW + age)

    assert (state(3 * DAY), state(3 * DAY + 1)) == (ReportState.OPEN, ReportState.UNREPORTED)
    assert house.store.get_packet("n", "p0").report_state(NOW + 91 * DAY) is ReportState.LATE
    for number in range(101, 1_101):
        house.packet(f"p{number}", f"s{number}", create_time=NOW + 90 * DAY)
        house.report(f"p{number}", used="a", now=NOW + 92 * DAY)
    assert (state(2 * DAY), state(2 * DAY + 1)) == (ReportState.OPEN, ReportState.UNREPORTED)


def test_a_window_is_a_namespaces_own(house: House, make_packet: Callable[..., Packet]) -> None:
    """Slow reports of one namespace leave the window of another as it is."""
    for number in range(100):
        house.packet(f"p{number}", f"s{number}")
        house.report(f"p{number}", used="a", now=NOW + 3 * DAY)
    house.store.log_packet(make_packet("other", {"x": -1}, namespace="m"))
    house.packet("own")
    assert house.store.get_packet("m", "other").report_state(NOW + 2 * DAY) is ReportState.UNREPORTED
    assert house.store.get_packet("n", "own").report_state(NOW + 2 * DAY) is ReportState.OPEN


def test_changes_carry_the_new_counts(house: House) -> None:
    """Subscribers hear of exactly the memories whose counts moved."""
    changes: list[Change] = []
    house.packet("p1", "s")
    house.packet("p2", "s")
    house.report("p1", used="a")
    house.store.subscribe(changes.append)
    house.report("p2", used="b")
    (change,) = changes
    assert change.score_version == 3
    assert change.uses == {house.keys["b"]: UseCounts(1.0, 1.0, 1, 1, NOW)}


def test_one_agent_weighs_at_most_twenty_sessions(house: House) -> None:
    """The sessions of one agent weigh as twenty at most; a session belongs to the agent of its first packet."""
    for number in range(25):
        house.packet(f"p{number}", f"s{number}", agent_id="loud")
        house.report(f"p{number}", used="a", agent_id="someone else")
    house.packet("q", "s0", agent_id="other")
    house.report("q", used="a")
    assert house.counts("a") == UseCounts(20.0, 20.0, 25, 25, NOW)


def test_numbers_tell_reported_packets(house: House) -> None:
    """A packet is reported once it has an explicit or an inferred report."""
    for number in range(4):
        house.packet(f"p{number}", "s")
    house.report("p0", used="a")
    house.report("p0", unused="a")
    house.report("p1", used="a", channel=Channel.INFERRED, complete=False)
    house.report("p2", channel=Channel.PACKET, complete=False)
    assert house.store.numbers().reported_packet_count == 2
    assert house.store.namespace_numbers("n").reported_packet_count == 2
    assert house.store.namespace_numbers("n2").reported_packet_count == 0


def test_a_purge_takes_reports_and_counts_too(house: House) -> None:
    """Nothing of a purged namespace's use is left."""
    house.packet("p", "s")
    house.report("p", used="a")
    assert house.store.purge_namespace("n") == (3, 1)
    assert house.store.load("n").uses == {}
    assert house.store.use_counts_as_of("n", 2**60) == {}
    assert house.store.numbers().reported_packet_count == 0


def test_use_priors_are_replaced_as_a_whole(house: House) -> None:
    """The priors of a rescore replace all earlier ones."""
    assert house.store.use_priors() == {}
    house.store.set_use_priors("run1", {"fact": (0.2, 10.0), "decision": (0.5, 4.0)})
    house.store.set_use_priors("run2", {"fact": (0.3, 50.0)})
    assert house.store.use_priors() == {"fact": (0.3, 50.0)}
