from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

import numpy as np
import pytest

from sidecar.domain import Floats
from sidecar.features import FEATURE_NAMES
from sidecar.weights import make_weights
from tests.training.made import Truth, make_dataset
from training.dataset import Dataset, Packets
from training.linear import fit_linear
from training.namespaces import Namespaces, OfNamespace, fit_namespaces
from training.pairs import make_pairs

FOUR = ("semantic", "lexical", "handles", "context")
COLUMNS = [FEATURE_NAMES.index(name) for name in FOUR]
START = make_weights("start", dict.fromkeys(FOUR, 0.25))
COMMON = (0.4, 0.3, 0.2, 0.1)
OTHER = (0.1, 0.2, 0.3, 0.4)


def together(parts: Sequence[Dataset]) -> Dataset:
    """One data set of several; sessions, packets and memories are renumbered."""
    shifts = {"packet": 0, "pool_packet": 0, "memory_key": 0, "pool_memory_key": 0}
    joined: dict[str, list[np.ndarray]] = {each.name: [] for each in fields(Dataset)}
    session = 0
    packets: dict[str, list[object]] = {each.name: [] for each in fields(Packets)}
    for part in parts:
        for name in joined:
            value = getattr(part, name)
            if isinstance(value, np.ndarray):
                joined[name].append(value + shifts.get(name, 0))
        for name in packets:
            value = getattr(part.packets, name)
            packets[name] += list(value + session if name == "session" else value)
        for name in ("packet", "pool_packet"):
            shifts[name] += len(part.packets)
        for name in ("memory_key", "pool_memory_key"):
            shifts[name] += len(part.memory_id)
        session += int(part.packets.session.max()) + 1
    first = parts[0]
    table = {
        name: np.array(value) if isinstance(getattr(first.packets, name), np.ndarray) else tuple(value)
        for name, value in packets.items()
    }
    arrays = {name: np.concatenate(value) for name, value in joined.items() if value}
    names = tuple(name for part in parts for name in part.memory_id)
    return replace(first, **arrays, memory_id=names, packets=Packets(**table))  # type: ignore[arg-type]


def fitted(
    parts: Sequence[tuple[str, tuple[float, ...], int]], seed: int = 1, slopes: Sequence[float] = (6.0,)
) -> tuple[Namespaces, Floats]:
    """The namespaces' weights and the common ones, from (name, truth, sessions); `slopes` take turns."""
    dataset = together(
        [
            make_dataset(
                Truth(dict(zip(FOUR, truth, strict=True)), namespace=name, slope=slopes[number % len(slopes)]),
                sessions=sessions,
                seed=seed * 100 + number,
            )
            for number, (name, truth, sessions) in enumerate(parts)
        ]
    )
    fit = fit_linear(make_pairs(dataset), START, lambdas=(0.01,))
    columns = np.flatnonzero(fit.fitted)
    every = np.ones(len(dataset.packets), bool)
    return fit_namespaces(dataset, every, START, columns, fit.v[columns]), fit.weights


def away(found: Floats, truth: tuple[float, ...]) -> float:
    """L1 from the truth."""
    return float(np.abs(found[COLUMNS] - truth).sum())


def by_name(found: Namespaces) -> dict[str, OfNamespace]:
    return {each.namespace: each for each in found.found}


def test_a_large_namespace_with_another_need_gets_its_own_weights() -> None:
    """Close to its truth, and far from the common ones; the report says that it differs."""
    found, common = fitted([(f"n{i}", COMMON, 300) for i in range(4)] + [("odd", OTHER, 300)])
    odd = by_name(found)["odd"]
    assert odd.differs
    assert away(odd.weights, OTHER) < 0.5 * away(common, OTHER)
    assert away(odd.weights, OTHER) < 0.2
    assert odd.share > by_name(fitted([("a", COMMON, 300), ("odd", OTHER, 20)])[0])["odd"].share
    assert odd.weights.sum() == pytest.approx(1.0)


def test_a_small_namespace_is_safe() -> None:
    """With eight sessions it stays near the common weights, nearer to the truth than its own fit would be."""
    gains = []
    for seed in range(6):
        parts = [(f"n{i}", COMMON, 200) for i in range(5)] + [("small", COMMON, 8)]
        found, common = fitted(parts, seed)
        small = by_name(found)["small"]
        alone = make_dataset(Truth(dict(zip(FOUR, COMMON, strict=True))), sessions=8, seed=seed * 100 + 5)
        own = fit_linear(make_pairs(alone), START, lambdas=(0.0,), least_varying_sessions=1).weights
        gains.append((away(small.weights, COMMON), away(own, COMMON), away(common, COMMON)))
    small_away, own_away, common_away = np.mean(gains, axis=0)
    assert small_away < 0.5 * own_away
    assert small_away < common_away + 0.03


def test_alike_namespaces_share_their_weights() -> None:
    """Where all want the same, the scatter that is found is small, and hardly any namespace is said to differ."""
    found, _ = fitted([(f"n{i}", COMMON, 150) for i in range(8)])
    assert found.tau < 0.1
    assert sum(each.difference > 0.15 for each in found.found) == 0


def test_how_sharply_use_follows_a_need_is_no_need_of_its_own() -> None:
    """Agents that go by the same weights, some nearly always and some hardly, scatter in sigma and not in tau; nobody
    gets weights far from the common ones."""
    found, _ = fitted([(f"n{i}", COMMON, 200) for i in range(8)], slopes=(2.0, 14.0))
    assert found.sigma >= 0.25
    assert found.tau < 0.1
    assert max(each.difference for each in found.found) < 0.2
    assert fitted([(f"n{i}", COMMON, 200) for i in range(8)])[0].sigma <= 0.125


def test_the_scatter_comes_from_the_data() -> None:
    """Namespaces that want different things give a larger tau."""
    alike, _ = fitted([(f"n{i}", COMMON, 150) for i in range(6)])
    apart, _ = fitted([(f"n{i}", COMMON if i % 2 else OTHER, 150) for i in range(6)])
    assert apart.tau > 2 * alike.tau


def test_one_namespace_has_nothing_to_share() -> None:
    """Then the common weights are its own."""
    found, _ = fitted([("n", COMMON, 100)])
    assert found.found == ()
