"""Reserved slots through the running service: who is in their pool, how many there are, and what a retry repeats."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from memoryranker.client import Client
from memoryranker.v1 import ranker_pb2, types_pb2

from sidecar.store.store import Store
from tests.promises.frozen import BY_RELEVANCE, NOW_TIME, frozen, hash_of, ids, text, write
from tests.serving import Running

RESERVED, RANKED = types_pb2.SEGMENT_RESERVED, types_pb2.SEGMENT_RANKED


def see(client: Client, namespace: str, names: Sequence[str], sessions: int) -> None:
    """Lets each memory be seen and reported on in that many sessions."""
    for number in range(sessions):
        packet = client.rank(
            namespace, session_id=f"seen{number}", filter={"ids": names}, reserved_slots=0, max_items=200
        )
        assert len(packet.items) == len(names)
        client.report_use(packet.packet_id, [])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server that stands still."""
    with frozen(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture
def client(server: Running) -> Client:
    """A client of it."""
    return server.client


def pool_of(client: Client, namespace: str, **options: object) -> tuple[ranker_pb2.RankResponse, set[str]]:
    """A packet ranked by relevance, and the members of its pool."""
    given = {"weights": BY_RELEVANCE, "max_items": 3, "reserved_slots": 1, **options}
    packet = client.rank(namespace, **given)  # type: ignore[arg-type]
    undrawn = client.get_packet(namespace, packet.packet_id).undrawn
    pool = {*ids(packet, RESERVED), *(member.memory_id for member in undrawn)}
    assert packet.reserve_pool_size == len(pool)
    return packet, pool


def test_the_pool_is_the_24_best_that_fit_nearly_as_well_as_the_last_ranked(client: Client, namespace: str) -> None:
    """Task fit of at least .6 of the last ranked memory's and of the floor; at most 24, the best."""
    write(client, namespace, {"a": 0.9, "b": 0.5, "just": 0.3, "under": 0.2999, "far": 0.1})
    packet, pool = pool_of(client, namespace)
    assert ids(packet, RANKED) == ["a", "b"]
    assert pool == {"just"}
    write(client, namespace, {f"m{i:02}": 0.31 + i / 1000 for i in range(30)})
    _, pool = pool_of(client, namespace)
    assert pool == {f"m{i:02}" for i in range(6, 30)}
    write(client, namespace, {"low0": 0.07, "low1": 0.06, "at the floor": 0.05, "under the floor": 0.0499})
    low = {"ids": ["low0", "low1", "at the floor", "under the floor"]}
    assert pool_of(client, namespace, filter=low)[1] == {"at the floor"}


def test_the_floor_alone_counts_where_nothing_is_ranked(client: Client, namespace: str) -> None:
    """Where pinned memories took all places and the ranked segment holds nothing, a member needs the floor alone."""
    write(client, namespace, {"a": 0.9, "b": 0.9}, pinned=True)
    write(client, namespace, {"least": 0.05, "under": 0.0499})
    packet, pool = pool_of(client, namespace)
    assert ids(packet, RANKED) == []
    assert pool == {"least"}


@pytest.mark.parametrize("slots", [1, 2])
def test_who_has_had_its_turns_is_out(client: Client, namespace: str, slots: int) -> None:
    """Five reported sessions are enough; sessions that were served and not reported do not count."""
    write(client, namespace, {"top": 0.9, "four": 0.8, "five": 0.8, "served": 0.8})
    see(client, namespace, ["four", "five"], 4)
    packet = client.rank(namespace, session_id="fifth", filter={"ids": ["five"]})
    client.report_use(packet.packet_id, ["five"])
    for number in range(6):
        client.rank(namespace, session_id=f"s{number}", filter={"ids": ["served"]})
    _, pool = pool_of(client, namespace, max_items=slots + 1, reserved_slots=slots)
    assert pool == {"four", "served"}


def test_what_may_not_be_served_is_not_in_the_pool(client: Client, namespace: str) -> None:
    """Pinned, suppressed, rated unhelpful, expired, not yet valid, superseded, filtered and too large ones, and what
    scores below min_score, are never drawn."""
    names = ["top", "good", "pinned", "suppressed", "unhelpful", "expired", "early", "old", "other", "big", "low"]
    write(client, namespace, {name: 0.9 if name == "top" else 0.8 for name in names})
    client.update(namespace, "pinned", pinned=True)
    client.update(namespace, "suppressed", suppressed=True)
    client.rate(namespace, "unhelpful", "unhelpful")
    client.update(namespace, "expired", valid_until_time=NOW_TIME)
    client.update(namespace, "early", valid_from_time=NOW_TIME.replace(year=NOW_TIME.year + 1))
    client.update(namespace, "old", superseded_by="top")
    client.update(namespace, "big", token_count=101)
    client.update(namespace, "low", relevance=0.7)
    options = {"filter": {"exclude_ids": ["other"]}, "token_budget": 1000, "min_score": 0.75}
    for _ in range(5):
        packet, pool = pool_of(client, namespace, **options)
        assert ids(packet, RANKED) == ["top"]
        assert pool == {"good"}
        assert ids(packet, RESERVED) == ["good"]


def test_a_pinned_memory_that_did_not_fit_is_not_drawn_either(client: Client, namespace: str) -> None:
    """Pinned is pinned: what found no place there gets none in a reserved slot."""
    write(client, namespace, {"a": 0.9, "b": 0.8, "c": 0.7})
    write(client, namespace, {"p1": 0.9, "p2": 0.8, "p3": 0.7}, pinned=True)
    packet, pool = pool_of(client, namespace)
    assert ids(packet, types_pb2.SEGMENT_PINNED) == ["p1", "p2"]
    assert pool == {"a", "b", "c"}


def test_near_duplicates_are_left_out_before_the_draw(client: Client, namespace: str) -> None:
    """Neither what says the same as a ranked or pinned memory, nor the worse of two that say the same, is a member."""
    write(client, namespace, {"top": 0.9, "second": 0.85, "better": 0.8, "worse": 0.7, "alone": 0.6, "again": 0.6})
    write(client, namespace, {"pinned": 0.5}, pinned=True)
    for name, of, form in (
        ("worse", "better", str.upper),
        ("again", "top", lambda content: content + "!"),
        ("alone", "alone", str.strip),
    ):
        content = client.get(namespace, of).content
        client.update(namespace, name, content=form(content))
    client.upsert(
        namespace,
        [{"id": "as pinned", "content": " ".join(client.get(namespace, "pinned").content), "relevance": 0.8}],
    )
    chosen: Counter[str] = Counter()
    for _ in range(20):
        packet, pool = pool_of(client, namespace, max_items=4)
        assert ids(packet, RANKED) == ["top", "second"]
        assert pool == {"better", "alone"}
        chosen.update(ids(packet, RESERVED))
    assert set(chosen) == {"better", "alone"}


def test_a_session_does_not_explore_the_same_memory_in_its_next_three_packets(client: Client, namespace: str) -> None:
    """What was drawn is out of the pool of the session's next three packets, and of no other session's."""
    write(client, namespace, {"top": 0.9, **{f"m{i}": 0.8 for i in range(6)}})
    everyone = {f"m{i}" for i in range(6)}
    drawn: list[str] = []
    for number in range(12):
        packet, pool = pool_of(client, namespace, session_id="s", max_items=2)
        assert pool == everyone - set(drawn[-3:]), number
        drawn += ids(packet, RESERVED)
        assert pool_of(client, namespace, max_items=2)[1] == everyone
        assert pool_of(client, namespace, session_id=f"other{number}", max_items=2)[1] == everyone
    client.rank(namespace, session_id="s", weights=BY_RELEVANCE, reserved_slots=0)
    assert pool_of(client, namespace, session_id="s", max_items=2)[1] == everyone - set(drawn[-2:])


def test_in_a_caller_s_own_list_it_goes_by_the_id_and_not_by_the_place(client: Client, namespace: str) -> None:
    """The next packet of a session knows what was explored, also when its list comes in another order."""
    names = ["top", *(f"m{i}" for i in range(5))]
    drawn: list[str] = []
    for number in range(8):
        order = names[number % 6 :] + names[: number % 6]
        candidates = [
            {"id": name, "content": text(hash_of(name)), "relevance": 0.9 if name == "top" else 0.8} for name in order
        ]
        packet, pool = pool_of(client, namespace, candidates=candidates, session_id="s", max_items=2)
        assert ids(packet, RANKED) == ["top"]
        assert pool == set(names[1:]) - set(drawn[-3:])
        drawn += ids(packet, RESERVED)


def test_what_a_slot_does_not_spend_is_not_given_back(client: Client, namespace: str) -> None:
    """Neither tokens nor places of a slot that stays empty go to the ranked segment."""
    write(client, namespace, {f"m{i}": 0.9 for i in range(9)})
    see(client, namespace, [f"m{i}" for i in range(9)], 5)
    packet, pool = pool_of(client, namespace, max_items=9, reserved_slots=2, token_budget=75)
    assert pool == set()
    assert packet.tokens_used == 60
    assert len(packet.items) == 6
    packet, _ = pool_of(client, namespace, max_items=9, reserved_slots=2)
    assert len(packet.items) == 7


def test_the_number_of_slots_is_fixed_by_the_size_of_the_packet(client: Client, namespace: str) -> None:
    """None below 6 items, one from 6, two from 12, unless asked; none for a caller's own list; always fewer than
    max_items."""
    write(client, namespace, {f"m{i:02}": 0.9 for i in range(20)})
    for max_items, slots in ((1, 0), (5, 0), (6, 1), (11, 1), (12, 2), (20, 2)):
        packet = client.rank(namespace, weights=BY_RELEVANCE, max_items=max_items)
        assert packet.reserved_slots == slots
        assert len(ids(packet, RESERVED)) == (slots if max_items < 20 else 2)
    assert client.rank(namespace, weights=BY_RELEVANCE, max_items=3, reserved_slots=2).reserved_slots == 2
    own = [{"id": f"c{i}", "content": text(i)} for i in range(20)]
    assert client.rank(namespace, candidates=own, max_items=12).reserved_slots == 0
    assert client.rank(namespace, dry_run=True, max_items=12).reserved_slots == 0


def test_ranked_and_pinned_memories_are_in_for_certain(client: Client, namespace: str) -> None:
    """Their inclusion propensity is 1, with and without a draw, and without one so is that of every place."""
    write(client, namespace, {f"m{i:02}": 0.9 for i in range(12)})
    client.update(namespace, "m11", pinned=True)
    packet = client.rank(namespace, weights=BY_RELEVANCE, max_items=6, reserved_slots=2)
    assert {item.inclusion_propensity for item in packet.items if item.segment != RESERVED} == {1.0}
    packet = client.rank(namespace, weights=BY_RELEVANCE, max_items=6, reserved_slots=0)
    assert {(item.inclusion_propensity, item.position_probability) for item in packet.items} == {(1.0, 1.0)}


REPEATS: list[Callable[[str], dict[str, object]]] = [
    lambda _: {"max_items": 12},
    lambda _: {"max_items": 12, "explain": "full", "weights": "engine"},
    lambda _: {"max_items": 8, "explain": "full", "weights": {"relevance": 0.5, "lexical": 0.5}},
    lambda name: {
        "candidates": [{"id": f"{name}{i}", "content": text(i), "relevance": i / 20} for i in range(20)],
        "reserved_slots": 2,
        "explain": "full",
        "token_budget": 300,
    },
    lambda _: {"token_budget": 0},
    lambda _: {"min_score": 1.0, "explain": "none"},
]


def test_a_retry_has_the_same_packet_also_after_a_restart(tmp_path: Path) -> None:
    """A repeated request_id gives the packet that it gave before, draw and places and all, from stored memories and
    from a caller's own list."""

    def ask(server: Running) -> list[bytes]:
        answers = []
        for number, options in enumerate(REPEATS):
            packet = server.client.rank("n", "harbour", request_id=f"r{number}", **options("c"))  # type: ignore[arg-type]
            packet.replayed = False
            answers.append(packet.SerializeToString(deterministic=True))
        return answers

    with frozen(tmp_path) as server:
        write(server.client, "n", {f"m{i:02}": 0.5 + i / 100 for i in range(40)})
        first = ask(server)
        assert ask(server) == first
    with frozen(tmp_path, "again") as server:
        again = server.client.rank("n", "harbour", request_id="r0", max_items=12)
        assert again.replayed
        assert len(ids(again, RESERVED)) == 2
        assert ask(server) == first


def test_without_slots_a_packet_is_the_same_every_time(tmp_path: Path) -> None:
    """The same store, request and time give the same packet bit for bit, but for its name, also after a restart."""

    def ask(server: Running) -> set[bytes]:
        answers = set()
        for _ in range(5):
            packet = server.client.rank("n", text(3)[:30], reserved_slots=0, max_items=12)
            packet.packet_id = ""
            answers.add(packet.SerializeToString(deterministic=True))
        return answers

    with frozen(tmp_path, embedder="wordllama") as server:
        write(server.client, "n", {f"m{i:02}": 0.5 + i / 100 for i in range(40)})
        before = ask(server)
        assert len(before) == 1
    with Store.open(tmp_path / "data") as store:
        logged = store.get_packet("n", "p0").packet
    assert not logged.undrawn
    with frozen(tmp_path, "again", embedder="wordllama") as server:
        assert ask(server) == before
