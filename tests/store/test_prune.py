from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sidecar.domain import DAY, Channel, Packet, UseReport
from sidecar.errors import PacketNotFoundError
from sidecar.store.log import MemoryState
from sidecar.store.prune import Pruned
from sidecar.store.store import Store

NOW = 1_790_000_000_000_000
Make = Callable[..., Packet]


def prepare(store: Store, make_packet: Make, days: int = 40) -> dict[str, int]:
    """Memories a and b, and a packet a day with a report, the newest today; sessions of two packets."""
    outcome = store.upsert("n", [(name, {"content": name, "tokens": 1}) for name in "ab"], NOW)
    keys = {memory.id: memory.key for _, memory in outcome[0]}  # type: ignore[index]
    for day in reversed(range(days)):
        time = NOW - day * DAY
        packet_id = f"p{day}"
        store.log_packet(make_packet(packet_id, keys, session_id=f"s{day // 2}", create_time=time, agent_id=f"g{day}"))
        store.report(UseReport(packet_id, used_memory_ids=("a",) if day % 3 else ()), time + 5)
    return keys


def prune(store: Store, **given: Any) -> Pruned:
    wanted: dict[str, Any] = {"namespace": "", "older_than": None, "max_bytes": None, "keep_from": NOW - 10 * DAY}
    return store.prune(**{**wanted, **given}, check=lambda: None)


def test_old_packets_go_and_no_score_moves(store: Store, make_packet: Make) -> None:
    """Packets and reports before the cut are gone; what use came to is the same, also when worked out anew from the
    log, and after a restart of the namespace."""
    prepare(store, make_packet)
    before, version = store.load("n").uses, store.namespace("n").score_version
    done = prune(store, older_than=NOW - 20 * DAY)
    assert (done.packets, done.reports) == (19, 19)
    assert done.freed_bytes > 0
    assert store.numbers().packet_count == 21
    with pytest.raises(PacketNotFoundError):
        store.get_packet("n", "p21")
    assert store.get_packet("n", "p20").uses
    assert store.load("n").uses == before == store.use_counts_as_of("n", 2**60)
    assert store.namespace("n").score_version == version


def test_a_dry_run_counts_and_removes_nothing(store: Store, make_packet: Make) -> None:
    """It says what the run then does."""
    prepare(store, make_packet)
    shown = prune(store, older_than=NOW - 20 * DAY, dry_run=True)
    assert store.numbers().packet_count == 40
    assert prune(store, older_than=NOW - 20 * DAY) == shown


def test_what_training_may_need_is_kept(store: Store, make_packet: Make) -> None:
    """However small the log should be, nothing from the kept days on goes."""
    prepare(store, make_packet)
    assert prune(store, max_bytes=0).packets == 29
    assert prune(store, max_bytes=0, older_than=NOW).packets == 0
    assert store.numbers().packet_count == 11


def test_the_log_shrinks_to_a_size(store: Store, make_packet: Make) -> None:
    """The oldest go until the rest fits; a log that fits loses nothing."""
    prepare(store, make_packet)
    whole = prune(store, max_bytes=0, keep_from=NOW + DAY, dry_run=True).freed_bytes
    done = prune(store, max_bytes=whole // 2)
    assert whole // 2 <= done.freed_bytes < whole // 2 + whole // 20
    assert prune(store, max_bytes=whole // 2).packets == 0
    with pytest.raises(PacketNotFoundError):
        store.get_packet("n", "p39")


def test_only_the_named_namespace_is_pruned(store: Store, make_packet: Make) -> None:
    """Another keeps its log."""
    prepare(store, make_packet)
    assert prune(store, namespace="other", older_than=NOW - 20 * DAY).packets == 0
    assert prune(store, namespace="n", older_than=NOW - 20 * DAY).packets == 19


def test_a_pruned_session_still_counts_once_and_for_its_agent(store: Store, make_packet: Make) -> None:
    """A later packet of the session, a use taken back in it, and another agent's name move what they would have moved
    with the old packets there."""
    keys = prepare(store, make_packet, days=2)
    prune(store, older_than=NOW, keep_from=NOW)
    before = store.load("n").uses
    store.log_packet(make_packet("late", keys, session_id="s0", agent_id="another", create_time=NOW + 1))
    store.report(UseReport("late", used_memory_ids=("a",)), NOW + 2)
    assert store.load("n").uses[keys["a"]].used == before[keys["a"]].used == 1.0
    store.report(UseReport("late", unused_memory_ids=("a",)), NOW + 3)
    assert store.load("n").uses[keys["a"]].used == 1.0
    assert store.load("n").uses == store.use_counts_as_of("n", 2**60)


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 30), st.sampled_from(["a", "b", "ab", ""]), st.booleans()),
        min_size=1,
        max_size=12,
    ),
    st.integers(0, 30),
)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_pruning_never_moves_a_count(
    make_packet: Make,
    tmp_path_factory: pytest.TempPathFactory,
    events: list[tuple[int, int, str, bool]],
    cut: int,
) -> None:
    """Whatever was reported in whichever session, the counts before and after are the same, as kept and as worked
    out."""
    with Store.open(tmp_path_factory.mktemp("prune") / "data") as store:
        outcome = store.upsert("n", [(name, {"content": name, "tokens": 1}) for name in "ab"], NOW)
        keys = {memory.id: memory.key for _, memory in outcome[0]}  # type: ignore[index]
        for number, (session, day, used, is_explicit) in enumerate(sorted(events, key=lambda event: -event[1])):
            time = NOW - day * DAY
            packet = make_packet(f"p{number}", keys, session_id=f"s{session}", agent_id=f"g{number}", create_time=time)
            store.log_packet(packet)
            channel = Channel.EXPLICIT if is_explicit else Channel.INFERRED
            store.report(UseReport(f"p{number}", channel=channel, used_memory_ids=tuple(used)), time)
        before = store.load("n").uses
        prune(store, older_than=NOW - cut * DAY, keep_from=NOW + DAY)
        assert store.load("n").uses == before
        assert store.use_counts_as_of("n", 2**60) == {key: counts for key, counts in before.items() if counts.seen}


def test_what_is_pruned_while_the_log_is_read_out_is_in_it(
    store: Store, make_packet: Make, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Packets that go before their page is read leave what they said to the rows of pruned packets at the end."""
    keys = prepare(store, make_packet)
    store.delete("n", ["b"], NOW)
    pages = store.log_rows("n")
    rows = []
    for page in pages:
        rows += page
        if any(isinstance(row, MemoryState) for row in page):
            break
    assert prune(store, older_than=NOW - 20 * DAY).packets == 19
    for page in pages:
        rows += page
    with Store.open(tmp_path_factory.mktemp("copy") / "data") as copy:
        outcome = copy.upsert("n", [("a", {"content": "a", "tokens": 1})], NOW)
        (key,) = [memory.key for _, memory in outcome[0]]  # type: ignore[index]
        assert copy.take_log_rows("n", list(enumerate(rows))).rejected == []
        assert copy.load("n").uses[key] == store.load("n").uses[keys["a"]]
        assert copy.load("n").uses == copy.use_counts_as_of("n", 2**60)


def test_the_growth_of_the_log_is_told_per_day(store: Store, make_packet: Make) -> None:
    """About a packet's bytes for a packet a day; 0 without any."""
    assert store.log_growth(NOW) == 0
    prepare(store, make_packet)
    whole = prune(store, max_bytes=0, keep_from=NOW + DAY, dry_run=True).freed_bytes
    assert store.log_growth(NOW) == pytest.approx(whole / 40, rel=0.2)
