"""Reserved slots through the running service: what is logged is what is drawn, and a draw can be made again."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from memoryranker.client import Client, rank_request
from memoryranker.v1 import ranker_pb2, ranker_pb2_grpc, types_pb2
from scipy import stats

from sidecar.domain import Packet, PacketItem, PoolItem, Segment
from sidecar.features import RAW_NAMES
from sidecar.store.store import Store
from tests.promises.frozen import BY_RELEVANCE, GIVEN_SALT, NOW_TIME, frozen, hash_of, ids, text, write
from tests.serving import Running, channel_to

DRAWS = 160
SIGNIFICANT = 0.001
RESERVED, RANKED = types_pb2.SEGMENT_RESERVED, types_pb2.SEGMENT_RANKED


def see(client: Client, namespace: str, names: Sequence[str], sessions: int) -> None:
    """Lets each memory be seen and reported on in that many sessions."""
    for number in range(sessions):
        packet = client.rank(
            namespace, session_id=f"seen{number}", filter={"ids": names}, reserved_slots=0, max_items=200
        )
        assert len(packet.items) == len(names)
        client.report_use(packet.packet_id, [])


@dataclass(slots=True)
class Case:
    """One shape of pool, and what came of drawing from it."""

    pool: list[str]
    slots: int
    packets: list[str] = field(default_factory=list)
    drawn: Counter[str] = field(default_factory=Counter)
    inverse: list[float] = field(default_factory=list)
    logged: dict[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class Drawn:
    """All cases, and the log that they left."""

    cases: list[Case]
    log: dict[str, Packet]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Drawn:
    """Draws through the service from pools of 1 to 24, of one stratum and of both, with one slot and with two; then
    stops it and reads its log."""
    folder = tmp_path_factory.mktemp("drawn")
    fresh = [f"fresh{i:02}" for i in range(24)]
    seen = [f"seen{i:02}" for i in range(24)]
    fit = {name: 0.56 + 0.34 * (hash_of(name) % 1000) / 1000 for name in fresh + seen}
    cases = []
    for size, slots in itertools.product(range(1, 25), (1, 2)):
        # One stratum at the odd sizes, both at the even ones; seen ones alone now and then.
        alone = seen if size % 3 == 0 else fresh
        pool = alone[:size] if size % 2 else fresh[: size - size // 3] + seen[: size // 3]
        cases.append(Case(pool, slots))
    with frozen(folder) as server, channel_to(server.listen) as channel:
        write(server.client, "n", {"top0": 0.95, "top1": 0.92, **fit})
        see(server.client, "n", seen, 2)
        stub = ranker_pb2_grpc.RankerServiceStub(channel)
        for case in cases:
            _draw(server.client, stub, case)
    with Store.open(folder / "data") as store:
        log = {packet_id: store.get_packet("n", packet_id).packet for case in cases for packet_id in case.packets}
    return Drawn(cases, log)


def _draw(client: Client, stub: ranker_pb2_grpc.RankerServiceStub, case: Case) -> None:
    request = rank_request(
        "n",
        weights=BY_RELEVANCE,
        filter={"ids": ["top0", "top1", *case.pool]},
        max_items=2 + case.slots,
        reserved_slots=case.slots,
        token_budget=200,
        explain="none",
    )
    for _ in range(DRAWS):
        packet = stub.Rank(request, timeout=30)
        case.packets.append(packet.packet_id)
        assert ids(packet, RANKED) == ["top0", "top1"]
        assert packet.reserve_pool_size == len(case.pool)
        reserved = [item for item in packet.items if item.segment == RESERVED]
        case.drawn.update(item.memory.id for item in reserved)
        case.inverse.append(sum(1 / item.inclusion_propensity for item in reserved))
        case.logged.update({item.memory.id: item.inclusion_propensity for item in reserved})
    whole = client.get_packet("n", case.packets[0])
    again = {item.memory.id: item.inclusion_propensity for item in whole.packet.items if item.segment == RESERVED}
    undrawn = {member.memory_id: member.inclusion_propensity for member in whole.undrawn}
    assert sorted([*again, *undrawn]) == sorted(case.pool)
    assert all(case.logged.get(name, pi) == pi for name, pi in {**again, **undrawn}.items())
    case.logged = {**again, **undrawn}


@dataclass(frozen=True, slots=True)
class Rule:
    """LEARNING section 8 once more, straight from the log of one packet: a second implementation."""

    packet: Packet

    @property
    def pool(self) -> list[tuple[str, float, float]]:
        """(id, task fit, reported sessions) of every member, best task fit first."""
        reported = RAW_NAMES.index("reported_sessions")
        members: list[PacketItem | PoolItem] = [*self.packet.undrawn]
        members += [item for item in self.packet.items if item.segment is Segment.RESERVED]
        found = [(each.memory_id, each.task_fit, each.raw[reported]) for each in members]
        return sorted(found, key=lambda member: (-member[1], member[0]))

    def setting(self, name: str) -> float:
        """A constant of the policy, as the log names it."""
        return float(dict(each.split("=") for each in self.packet.exploration_policy.split()[1:])[name])

    def chance(self, label: str) -> float:
        """The number that decides one step."""
        message = f"{self.packet.packet_id}\n{label}\n{self.packet.exploration_policy}".encode()
        digest = hashlib.blake2b(message, key=GIVEN_SALT, digest_size=8).digest()
        return (int.from_bytes(digest, "big") >> 11) / 2**53

    def strata(self) -> list[dict[str, float]]:
        """The strata that are not empty, each as member -> g."""
        strata = []
        for reported in (False, True):
            fits = {name: fit for name, fit, sessions in self.pool if (sessions > 0) == reported}
            if fits:
                soft = {name: math.exp(fit / self.setting("temperature")) for name, fit in fits.items()}
                total = sum(soft.values())
                epsilon = self.setting("epsilon")
                strata.append({name: epsilon / len(fits) + (1 - epsilon) * soft[name] / total for name in fits})
        return strata

    def outcomes(self) -> dict[tuple[str, ...], float]:
        """Every outcome of the draw with its probability."""
        strata = self.strata()
        if self.packet.reserved_slots == 1:
            return {(name,): g / len(strata) for stratum in strata for name, g in stratum.items()}
        if len(strata) == 2:
            return {(a, b): strata[0][a] * strata[1][b] for a in strata[0] for b in strata[1]}
        (alone,) = strata
        if len(alone) == 1:
            return {tuple(alone): 1.0}
        return {(a, b): alone[a] * alone[b] / (1 - alone[a]) for a, b in itertools.permutations(alone, 2)}

    def draw(self) -> list[str]:
        """The members drawn, in their order."""
        strata = self.strata()
        if self.packet.reserved_slots == 1:
            chosen = strata[int(self.chance("stratum") * len(strata))]
            return [_pick(chosen, self.chance("slot-0"))]
        if len(strata) == 2:
            return [_pick(stratum, self.chance(f"slot-{i}")) for i, stratum in enumerate(strata)]
        first = _pick(strata[0], self.chance("slot-0"))
        rest = {name: g for name, g in strata[0].items() if name != first}
        if not rest:
            return [first]
        total = sum(rest.values())
        return [first, _pick({name: g / total for name, g in rest.items()}, self.chance("slot-1"))]

    def places(self, drawn: int) -> list[int]:
        """The places of the drawn, from 0."""
        n = len(self.packet.items)
        window = list(range(n - max(drawn, n - 2), n))
        return [window.pop(int(self.chance(f"place-{i}") * len(window))) for i in range(drawn)]


def _pick(weights: dict[str, float], u: float) -> str:
    for name, weight in weights.items():
        if u < weight:
            return name
        u -= weight
    return name


def holm(p_values: Sequence[float]) -> float:
    """The least of the p-values, corrected for their number: below SIGNIFICANT, one of them is no accident."""
    ordered = sorted(p_values)
    return min(min(1.0, p * (len(ordered) - i)) for i, p in enumerate(ordered))


def test_what_is_drawn_follows_what_is_logged(drawn: Drawn) -> None:
    """Chi-square of drawn against logged, with the exact covariance of the draw, in every shape of pool: p > .001
    after Holm; and nothing of it adds up over all of them."""
    p_values, whole, freedom = [], 0.0, 0
    for case in drawn.cases:
        names = case.pool
        expected = DRAWS * np.array([case.logged[name] for name in names])
        together = np.zeros((len(names), len(names)))
        for outcome, p in Rule(drawn.log[case.packets[0]]).outcomes().items():
            rows = [names.index(name) for name in outcome]
            together[np.ix_(rows, rows)] += p
        assert np.diag(together) == pytest.approx(expected / DRAWS, abs=1e-12)
        covariance = DRAWS * (together - np.outer(np.diag(together), np.diag(together)))
        difference = np.array([case.drawn[name] for name in names]) - expected
        rank = int(np.linalg.matrix_rank(covariance, tol=1e-9))
        if not rank:
            assert np.abs(difference).max() < 1e-9
            continue
        chi_square = float(difference @ np.linalg.pinv(covariance, rcond=1e-10, hermitian=True) @ difference)
        p_values.append(float(stats.chi2.sf(chi_square, rank)))
        whole, freedom = whole + chi_square, freedom + rank
    assert holm(p_values) > SIGNIFICANT
    assert stats.chi2.sf(whole, freedom) > SIGNIFICANT


def test_the_pool_s_size_is_the_mean_of_the_inverse_propensities(drawn: Drawn) -> None:
    """Over many draws the mean of the sum of 1/pi over the drawn is the size of the pool, of whichever shape."""
    p_values = []
    for case in drawn.cases:
        values = np.array(case.inverse)
        spread = values.std(ddof=1) / math.sqrt(len(values))
        if spread < 1e-9:
            assert values.mean() == pytest.approx(len(case.pool))
        else:
            p_values.append(float(2 * stats.t.sf(abs(values.mean() - len(case.pool)) / spread, len(values) - 1)))
    assert holm(p_values) > SIGNIFICANT


def test_places_follow_their_probabilities(drawn: Drawn) -> None:
    """Each memory stands at each of its places as often as the position probability that is logged there says."""
    p_values = []
    for case in drawn.cases:
        stands: dict[tuple[str, int], float] = {}
        times: Counter[tuple[str, int]] = Counter()
        for packet_id in case.packets:
            for place, item in enumerate(drawn.log[packet_id].items):
                who = "drawn" if item.segment is Segment.RESERVED else item.memory_id
                known = stands.setdefault((who, place), item.position_probability)
                assert known == item.position_probability
                times[who, place] += 1
        for who in ("top0", "top1", "drawn"):
            probability = {key: q for key, q in stands.items() if key[0] == who}
            assert sum(probability.values()) == pytest.approx(1)
            if len(probability) > 1:
                count = sum(times[key] for key in probability)
                observed, expected = zip(*((times[key], count * q) for key, q in probability.items()), strict=True)
                p_values.append(float(stats.chisquare(observed, expected).pvalue))
    assert holm(p_values) > SIGNIFICANT


def test_every_draw_is_made_again_from_the_log_alone(drawn: Drawn) -> None:
    """Packet id, salt and what the packet's log holds give the same members at the same places, packet by packet."""
    for packet in drawn.log.values():
        rule = Rule(packet)
        members = rule.draw()
        assert dict(zip(members, rule.places(len(members)), strict=True)) == {
            item.memory_id: place for place, item in enumerate(packet.items) if item.segment is Segment.RESERVED
        }


def test_the_log_holds_all_of_the_pool(drawn: Drawn) -> None:
    """Of drawn and undrawn members alike it holds features, raw counts, tokens, score and task fit; and the sizes."""
    for packet in drawn.log.values():
        by_id = {each[0]: each for each in Rule(packet).pool}
        assert packet.pool_sizes == (
            sum(sessions == 0 for *_, sessions in by_id.values()),
            sum(sessions > 0 for *_, sessions in by_id.values()),
        )
        assert packet.reserve_pool_size == len(by_id)
        assert (packet.ranked_budget, packet.slot_budget) == (200 - 20 * packet.reserved_slots, 20)
        logged: list[PacketItem | PoolItem] = [*packet.items, *packet.undrawn]
        for each in logged:
            assert each.tokens == 10
            assert each.task_fit == each.score == each.features[1]


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
