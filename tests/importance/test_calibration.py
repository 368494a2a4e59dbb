"""User calibration: a user's own ratings shift the weights of their namespace, held back to the common ones."""

from __future__ import annotations

import random

import pytest
from memoryranker.client import Client

from sidecar.importance.calibration import FEWEST_RATED, calibrate, fit_weights
from sidecar.importance.content import PARTS
from tests.rpc.test_importance import line, score, subject
from tests.serving import Running

COMMON = {"content": 0.5, "access": 0.3, "emotion": 0.2}
TRUTH = {"content": 0.1, "access": 0.8, "emotion": 0.1}


def rated(count: int, seed: int, truth: dict[str, float] = TRUTH) -> list[tuple[float, dict[str, float | None]]]:
    """Memories that a user with these weights rates."""
    dice = random.Random(seed)
    found = []
    for _ in range(count):
        values: dict[str, float | None] = {name: dice.random() for name in truth}
        found.append((sum(truth[name] * (values[name] or 0.0) for name in truth), values))
    return found


def distance(one: dict[str, float], other: dict[str, float]) -> float:
    return sum(abs(one[name] - other[name]) for name in one)


@pytest.mark.parametrize("seed", range(5))
def test_many_ratings_bring_the_users_weights_and_few_stay_near_the_common_ones(seed: int) -> None:
    """400 ratings go most of the way to a user's true weights, 10 less than half; the sum stays."""
    far = distance(COMMON, TRUTH)
    many, few = (calibrate(COMMON, rated(count, seed)) for count in (400, 10))
    assert distance(many, TRUTH) < 0.35 * far
    assert 0 < distance(few, COMMON) < 0.5 * far
    for found in (many, few):
        assert sum(found.values()) == pytest.approx(1.0)
        assert min(found.values()) >= 0.0


def test_too_few_ratings_or_equal_ones_change_nothing() -> None:
    """Below four there is nothing to go by; and of equal ratings none is above another."""
    assert calibrate(COMMON, rated(FEWEST_RATED - 1, 1)) == COMMON
    same = [(0.5, values) for _, values in rated(50, 2)]
    assert calibrate(COMMON, same) == COMMON


def test_an_absent_signal_says_nothing() -> None:
    """Where a signal is known of no memory, ratings do not raise it above others."""
    known = [(rating, {**values, "emotion": None}) for rating, values in rated(400, 3)]
    found = calibrate(COMMON, known)
    assert found["emotion"] <= COMMON["emotion"] + 1e-6
    assert found["access"] > COMMON["access"]
    assert fit_weights(COMMON, [], [], 10.0) == COMMON


def test_ratings_shift_the_scores_of_their_namespace_alone(
    client: Client, shared_server: Running, namespace: str
) -> None:
    """A user who rates names high and instructions low has entities weigh more there, and nowhere else."""
    for number in range(20):
        name = f"Anna Keller met Bo Lindqvist and Priya Raman about PostgreSQL{number} and KubeFlow{number}"
        rule = f"always check the list number {number} first, never skip a step, and remember to ask"
        client.upsert(namespace, [{"id": f"n{number}", "content": name, "importance_override": 0.9}])
        client.upsert(namespace, [{"id": f"r{number}", "content": rule, "importance_override": 0.1}])
    text = "Anna Keller told Bo Lindqvist about PostgreSQL and pgvector"
    (own,) = score(shared_server, namespace, subject(text, "fact"))
    (other,) = score(shared_server, f"{namespace}-other", subject(text, "fact"))

    def share(result: object, part: str) -> float:
        return line(result, f"content.{part}").weight / line(result, "content").weight  # type: ignore[arg-type]

    present = sum(PARTS[part] for part in PARTS if part != "uniqueness")
    assert share(other, "entities") == pytest.approx(PARTS["entities"] / present)
    assert share(own, "entities") > PARTS["entities"]
    assert share(own, "actionability") < 0.8 * PARTS["actionability"]
