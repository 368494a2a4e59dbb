from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sidecar.domain import Floats
from sidecar.ranking.reserved import ReserveSettings, draw
from training.off_policy import FOLDS, RIDGE, Draws, Estimate, OffPolicy, estimate, predict

SETTINGS = ReserveSettings()
TRUTH = np.array([0.7, -0.3, 0.1])


def simulate(seed: int, sessions: int = 200, target: Floats | None = None) -> tuple[Draws, float]:
    """Draws by the product's own rule from pools whose members are used by a known truth, and the use rate that the
    target weights would have had. Sessions have one to three packets and a mood of their own."""
    random = np.random.default_rng(seed)
    logged = np.array([0.5, 0.5, 0.0])
    target = np.array([1.0, 0.0, 0.0]) if target is None else target
    rows: list[tuple[float, float, float, int, Floats]] = []
    pools: list[tuple[float, int, Floats]] = []
    expected, count = 0.0, 0
    for session in range(sessions):
        mood = random.normal(0.0, 0.1)
        for _ in range(random.integers(1, 4)):
            features = random.random((int(random.integers(3, 12)), 3))
            reported = random.integers(0, 5, len(features)).tolist()
            chance = np.clip(0.3 + features @ TRUTH + mood - 0.25, 0.02, 0.98)
            drawn = draw(features @ logged, reported, 1, lambda _: float(random.random()), SETTINGS)
            wanted = draw(features @ target, reported, 1, lambda _: 0.0, SETTINGS).inclusion_propensity
            expected, count = expected + float(wanted @ chance), count + 1
            for index in drawn.drawn:
                reward = float(random.random() < chance[index])
                pi = float(drawn.inclusion_propensity[index])
                rows.append((reward, pi, float(wanted[index]), session, features[index]))
            pools.extend((float(w), session, row) for w, row in zip(wanted, features, strict=True))
    rewards, propensity, weighted, of, x = zip(*rows, strict=True)
    pool_target, pool_of, pool_x = zip(*pools, strict=True)
    numbers = (np.array(rewards), np.array(propensity), np.array(weighted), np.array(of), np.array(x))
    return Draws(*numbers, np.array(pool_target), np.array(pool_of), np.array(pool_x)), expected / count


def plainly(draws: Draws, tau: float) -> dict[str, float]:
    """A second implementation of DM, DR and Switch-DR, a draw at a time; the regression by least squares."""
    sessions = sorted(set(draws.session.tolist()))
    fold = {session: place % FOLDS for place, session in enumerate(sessions)}

    def model(without: int) -> tuple[Floats, Floats, float]:
        rest = [i for i, s in enumerate(draws.session.tolist()) if fold[s] != without]
        x, y = draws.features[rest], draws.reward[rest]
        middle, centre = x.mean(axis=0), float(y.mean())
        above = np.vstack([x - middle, np.sqrt(RIDGE) * np.eye(x.shape[1])])
        slope = np.linalg.lstsq(above, np.concatenate([y - centre, np.zeros(x.shape[1])]), rcond=None)[0]
        return slope, middle, centre

    models = [model(each) for each in range(FOLDS)]

    def expected(row: Floats, session: int) -> float:
        slope, middle, centre = models[fold[session]]
        return min(1.0, max(0.0, centre + float((row - middle) @ slope)))

    n = len(draws.reward)
    modelled = sum(
        t * expected(row, s)
        for t, s, row in zip(draws.pool_target.tolist(), draws.pool_session.tolist(), draws.pool_features, strict=True)
    )
    corrected = switched = 0.0
    for i in range(n):
        w = float(draws.target[i]) / float(draws.propensity[i])
        step = w * (float(draws.reward[i]) - expected(draws.features[i], int(draws.session[i])))
        corrected += step
        switched += step if w <= tau else 0.0
    return {"DM": modelled / n, "DR": (modelled + corrected) / n, "Switch-DR": (modelled + switched) / n}


def test_ips_and_snips_agree_with_another_library() -> None:
    """To 1e-12 with the estimators of Vowpal Wabbit."""
    bandits: Any = pytest.importorskip("estimators.bandits", reason="make test installs vw-estimators")
    ips, snips = (
        __import__(f"{bandits.__name__}.{name}", fromlist=["Estimator"]).Estimator() for name in ("ips", "snips")
    )
    draws, _ = simulate(1)
    for reward, pi, target in zip(draws.reward, draws.propensity, draws.target, strict=True):
        ips.add_example(pi, reward, target)
        snips.add_example(pi, reward, target)
    found = estimate(draws).estimates
    assert found["IPS"].value == pytest.approx(ips.get(), abs=1e-12)
    assert found["SNIPS"].value == pytest.approx(snips.get(), abs=1e-12)


@pytest.mark.parametrize("tau", [0.5, 1.5, 5.0])
def test_the_modelled_ones_agree_with_a_plain_second_implementation(tau: float) -> None:
    """DM, DR and Switch-DR, to 1e-12, with a switch that does and does not matter."""
    draws, _ = simulate(2)
    found = estimate(draws, tau=tau).estimates
    for name, value in plainly(draws, tau).items():
        assert found[name].value == pytest.approx(value, abs=1e-12), name


def test_the_policy_that_logged_is_estimated_at_what_was_seen() -> None:
    """With target = propensity every weight is 1: IPS and SNIPS are the mean reward, with no difference to tell."""
    draws, _ = simulate(3, target=np.array([0.5, 0.5, 0.0]))
    found = estimate(draws)
    for name in ("IPS", "SNIPS"):
        assert found.estimates[name].value == pytest.approx(draws.reward.mean(), abs=1e-12)
        assert found.estimates[name].low == pytest.approx(0.0, abs=1e-12)
        assert found.estimates[name].high == pytest.approx(0.0, abs=1e-12)
    assert found.effective_draws == pytest.approx(found.draw_count)


def test_better_weights_are_found_to_be_better_and_worse_ones_harmful() -> None:
    """In a world where the second feature misleads: weights without it gain, weights of it alone lose."""
    better = estimate(simulate(4, sessions=2_000)[0])
    worse = estimate(simulate(4, sessions=2_000, target=np.array([0.0, 1.0, 0.0]))[0])
    assert better.sufficient
    assert not better.harmful
    assert not better.at_odds
    assert better.estimates["SNIPS"].low > 0.0
    assert worse.harmful


def test_intervals_hold_the_truth_about_as_often_as_they_say() -> None:
    """Of 200 seeds, 95 % intervals of each unbiased estimator hold the difference in at least 88 % (99.99 % bound)."""
    held = dict.fromkeys(("IPS", "SNIPS", "DR"), 0)
    for seed in range(200):
        draws, truth = simulate(1_000 + seed, sessions=100)
        _, logged = simulate(1_000 + seed, sessions=100, target=np.array([0.5, 0.5, 0.0]))
        for name in held:
            found = estimate(draws).estimates[name]
            held[name] += found.low <= truth - logged <= found.high
    assert min(held.values()) >= 176, held


def test_too_little_is_said_and_decides_nothing() -> None:
    """A few sessions are INSUFFICIENT in words, neither harmful nor at odds; none at all is an error."""
    found = estimate(simulate(5, sessions=12, target=np.array([0.0, 1.0, 0.0]))[0])
    assert not found.sufficient
    assert found.words.startswith("INSUFFICIENT: ")
    assert not found.harmful
    assert not found.at_odds
    empty = np.zeros(0)
    with pytest.raises(ValueError, match="no reported draw"):
        estimate(
            Draws(empty, empty, empty, np.zeros(0, int), np.zeros((0, 3)), empty, np.zeros(0, int), np.zeros((0, 3)))
        )


def test_a_draw_that_could_not_happen_is_refused() -> None:
    """A logged propensity of 0 is an error of the log, and no infinite weight."""
    draws, _ = simulate(6, sessions=40)
    draws.propensity[0] = 0.0
    with pytest.raises(ValueError, match="propensity of 0"):
        estimate(draws)


def test_estimators_that_contradict_each_other_are_at_odds() -> None:
    """Where the logged propensities are wrong by much, SNIPS and DR part beyond their intervals or both are unharmed;
    the flag needs intervals that do not meet."""
    apart = {"SNIPS": Estimate(0.2, 0.1, 0.05, 0.15), "DR": Estimate(0.0, -0.1, -0.12, -0.08)}
    assert OffPolicy(apart, 100, 100, 90.0, True).at_odds
    assert not OffPolicy(apart, 10, 10, 9.0, False).at_odds


def test_no_session_predicts_itself() -> None:
    """A reward that only one session has does not show in that session's own prediction."""
    draws, _ = simulate(7, sessions=30)
    before, _ = predict(draws)
    mine = draws.session == 3
    changed = Draws(
        np.where(mine, 1.0 - draws.reward, draws.reward),
        draws.propensity,
        draws.target,
        draws.session,
        draws.features,
        draws.pool_target,
        draws.pool_session,
        draws.pool_features,
    )
    after, _ = predict(changed)
    assert np.array_equal(before[mine], after[mine])
    assert not np.array_equal(before, after)


def test_one_session_tells_nothing() -> None:
    """Its intervals have no end."""
    draws, _ = simulate(8, sessions=1)
    for each in estimate(draws).estimates.values():
        assert (each.low, each.high) == (-np.inf, np.inf)
