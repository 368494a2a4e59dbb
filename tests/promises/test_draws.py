"""Reserved slots through the running service: what is logged is what is drawn, and a draw can be made again."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from memoryranker.client import Client, rank_request
from memoryranker.v1 import ranker_pb2_grpc
from scipy import stats

from sidecar.domain import Packet, PacketItem, PoolItem, Segment
from sidecar.features import RAW_NAMES
from sidecar.store.store import Store
from tests.promises.frozen import BY_RELEVANCE, GIVEN_SALT, frozen, hash_of, ids, write
from tests.promises.test_reserved_slots import RANKED, RESERVED, see
from tests.serving import channel_to

DRAWS = 160
SIGNIFICANT = 0.001


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
