from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.domain import UseCounts
from sidecar.features.use_rate import PRIOR
from sidecar.feedback.rescoring import FEWEST_MEMORIES, fit_priors, moves, use_part
from sidecar.store.rescores import ScoredMemory

PRIORS = {"default": (0.2, 10.0)}
PLAIN = ScoredMemory("n", "m", 1, "fact", None, None, None, UseCounts())


def with_use(used: float, seen: float, **fields: object) -> ScoredMemory:
    counts = UseCounts(used=used, seen=seen, use_sessions=int(used), reported_sessions=int(seen))
    return replace(PLAIN, counts=counts, **fields)  # type: ignore[arg-type]


def test_a_memory_used_as_often_as_its_kinds_mean_keeps_its_score() -> None:
    """Average use says nothing: such a memory stands like one that was never reported on, and like a new one."""
    assert moves([with_use(2, 10)], PRIORS, 1.0) == []
    assert moves([PLAIN], PRIORS, 1.0) == []


def test_more_use_raises_and_less_lowers() -> None:
    """A move says from where, to where and why."""
    (up,) = moves([with_use(10, 10)], PRIORS, 1.0)
    (down,) = moves([with_use(0, 10)], PRIORS, 1.0)
    assert up.from_score == down.from_score == 0.7
    assert up.to_score > 0.7 > down.to_score
    assert "used in 10 of 10 reported sessions: rate 0.600, above the mean 0.200 of fact" in up.reason
    assert "below" in down.reason


def test_a_score_moves_by_no_more_than_the_cap_in_one_run() -> None:
    """The rest follows in later runs, which end where an uncapped run does."""
    memory = with_use(50, 50)
    (free,) = moves([memory], PRIORS, 1.0)
    steps = 0
    while found := moves([memory], PRIORS, 0.05):
        (move,) = found
        assert abs(move.to_score - move.from_score) <= 0.05 + 1e-12
        assert move.is_capped == ("later runs" in move.reason)
        memory = replace(memory, use=move.use)
        steps += 1
    assert steps > 1
    assert memory.use == pytest.approx(free.use)


def test_the_users_word_stands() -> None:
    """With an override only the use part moves, the score does not."""
    (move,) = moves([with_use(10, 10, override=0.9)], PRIORS, 1.0)
    assert move.from_score == move.to_score == 0.9
    assert "the user's word stands" in move.reason


def test_what_is_no_longer_known_goes_back_to_nothing() -> None:
    """Where reports were taken back the use part is taken out again."""
    (move,) = moves([replace(PLAIN, use=0.8)], PRIORS, 1.0)
    assert (move.use, move.to_score) == (None, 0.7)
    (first,) = moves([replace(PLAIN, use=0.95)], PRIORS, 0.05)
    assert first.use is not None
    assert first.is_capped


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.floats(0.01, 0.95))
def test_the_use_part_follows_the_rate(own: float, one: float, other: float, mean: float) -> None:
    """It is in [0, 1], grows with the rate, and is the content's own part at the mean."""
    low, high = sorted((one, other))
    assert 0 <= use_part(own, low, mean) <= use_part(own, high, mean) + 1e-12 <= 1 + 2e-12
    assert use_part(own, mean, mean) == pytest.approx(own)


@given(
    st.floats(0, 30),
    st.floats(0, 30),
    st.one_of(st.none(), st.floats(0, 1)),
    st.one_of(st.none(), st.floats(0, 1)),
    st.floats(0.01, 1),
)
def test_every_move_is_bounded_and_in_range(
    used: float, unused: float, content: float | None, use: float | None, cap: float
) -> None:
    """Whatever was reported, scores stay in [0, 1] and move by the cap at most; the same input gives the same moves."""
    memory = with_use(used, used + unused, content=content, use=use)
    for move in moves([memory], PRIORS, cap):
        assert 0 <= move.to_score <= 1
        assert move.use is None or -1e-12 <= move.use <= 1 + 1e-12
        assert abs(move.to_score - move.from_score) <= cap + 1e-9
    assert moves([memory], PRIORS, cap) == moves([memory], PRIORS, cap)


def test_priors_come_from_a_kinds_own_memories_or_from_all() -> None:
    """mu is the share of used sessions, kappa within [4, 50]; a kind with fewer than 30 memories takes all kinds'."""
    alike = [(3.0, 10.0)] * 100
    unlike = [(10.0, 10.0)] * 30 + [(0.0, 10.0)] * 70
    priors = fit_priors({"fact": alike, "decision": unlike, "failure": [(1.0, 1.0)] * (FEWEST_MEMORIES - 1)})
    assert set(priors) == {"fact", "decision", "default"}
    assert priors["fact"][0] == pytest.approx(0.3)
    assert priors["fact"][1] == 50.0
    assert priors["decision"][0] == pytest.approx(0.3)
    assert priors["decision"][1] == pytest.approx(4.0)
    assert all(4.0 <= kappa <= 50.0 for _, kappa in priors.values())


def test_few_memories_keep_the_first_prior() -> None:
    """With fewer than 30 memories in all nothing is fitted."""
    assert fit_priors({"fact": [(1.0, 1.0)] * (FEWEST_MEMORIES - 1)}) == {"default": PRIOR["default"]}
    assert fit_priors({}) == {"default": PRIOR["default"]}
    everything = fit_priors({"fact": [(1.0, 1.0)] * 40, "decision": [(0.0, 1.0)] * 40})
    assert everything["fact"][0] == 0.95
    assert everything["decision"][0] == 0.01


def test_kappa_finds_what_the_data_came_from() -> None:
    """Beta-binomial counts drawn with kappa 10 give a kappa near it."""
    import numpy as np

    random = np.random.default_rng(5)
    rates = random.beta(0.3 * 10, 0.7 * 10, 2_000)
    pairs = [(float(random.binomial(20, rate)), 20.0) for rate in rates]
    mu, kappa = fit_priors({"fact": pairs})["fact"]
    assert mu == pytest.approx(0.3, abs=0.02)
    assert 7 < kappa < 14
