"""Weights by namespace, shrunk to the common ones: a small user is safe, a large one is served well. Pure.

Each namespace's v_n is taken to lie around the common v as N(v, tau^2 S^2 I), S the scale of v. How far they scatter,
tau, comes from the data (empirical Bayes): under the common weights the slope g_n of a namespace's loss has covariance
J_n + tau^2 S^2 H_n H_n, so that the likelihood of tau needs no inverse and no namespace needs to be large. v_n is then
the fit of its own pairs with that prior: with few pairs it is v, with many it is its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sidecar.domain import Floats
from sidecar.weights import Weights
from training.dataset import Dataset
from training.linear import Problem, solve, standard_errors
from training.pairs import make_pairs

TAUS = (0.0, *(2.0 ** (step / 2) for step in range(-14, 5)))
"""The grid of how far namespaces scatter, as a share of the scale of the common weights."""
LEAST_DIFFERENCE = 0.02
"""In sum: a namespace whose weights are nearer to the common ones has these."""
_JITTER = 1e-9


@dataclass(frozen=True, slots=True)
class OfNamespace:
    """One namespace's weights, (d,), before any movement cap. `difference` is the sum of moves from the common ones.

    `share` in [0, 1] says how much of the way to its own fit its data carry it; `standard_errors` are NaN where not
    fitted.
    """

    namespace: str
    weights: Floats
    difference: float
    share: float
    sessions: int
    standard_errors: Floats

    @property
    def differs(self) -> bool:
        """True if it is served better by weights of its own."""
        return self.difference >= LEAST_DIFFERENCE


@dataclass(frozen=True, slots=True)
class Namespaces:
    """How far namespaces scatter, and the weights of each, by name."""

    tau: float
    likelihoods: tuple[float, ...]
    found: tuple[OfNamespace, ...]


def fit_namespaces(
    dataset: Dataset,
    packets: NDArray[np.bool_],
    weights: Weights,
    columns: NDArray[np.intp],
    common: Floats,
    theta: Floats | None = None,
    max_agent_share: float = 1.0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Namespaces:
    """The weights of every namespace with pairs among the packets that `packets` (p,) marks.

    `common` (f,) is the v of all together, on the features `columns`. With one namespace there is nothing to share.
    """
    names = np.array(dataset.packets.namespace)
    every = sorted(set(names[packets].tolist()))
    problems: dict[str, Problem] = {}
    for name in every:
        pairs = make_pairs(dataset, packets & (names == name), theta, max_agent_share)
        if len(pairs):
            problems[name] = Problem.of(pairs, weights, columns)
    scale = float(common.sum())
    if len(problems) < 2 or scale <= 0.0:
        return Namespaces(0.0, (), ())
    tau, likelihoods = _scatter(list(problems.values()), common, scale)
    found = []
    for number, (name, problem) in enumerate(problems.items()):
        progress(number, len(problems))
        found.append(_fit_one(name, problem, common, tau * scale))
    progress(len(problems), len(problems))
    return Namespaces(tau, likelihoods, tuple(found))


def _scatter(problems: list[Problem], common: Floats, scale: float) -> tuple[float, tuple[float, ...]]:
    """The likeliest tau of TAUS, and the log-likelihood of each."""
    slopes, informations, counts, scattered = [], [], [], np.zeros((len(common), len(common)))
    for problem in problems:
        by_session = problem.session_slopes(common) * len(problem.pairs.sessions)
        slopes.append(by_session.sum(axis=0))
        counts.append(len(by_session))
        informations.append(problem.information(common) * len(by_session))
        centred = by_session - by_session.mean(axis=0)
        scattered += centred.T @ centred
    # One session's slope varies alike in all namespaces: a small one cannot tell by itself.
    of_session = scattered / max(1, sum(counts) - len(problems))
    # Where v is at its bound of 0 the common slope is not 0, and says nothing of a scatter.
    likelihoods = []
    for tau in TAUS:
        total = 0.0
        for slope, information, count in zip(slopes, informations, counts, strict=True):
            covariance = count * of_session + (tau * scale) ** 2 * information @ information
            covariance += _JITTER * np.trace(covariance) * np.eye(len(common))
            sign, size = np.linalg.slogdet(covariance)
            total -= (size + slope @ np.linalg.solve(covariance, slope)) / 2 if sign > 0 else np.inf
        likelihoods.append(total)
    return TAUS[int(np.argmax(likelihoods))], tuple(likelihoods)


def _fit_one(name: str, problem: Problem, common: Floats, spread: float) -> OfNamespace:
    sessions = len(problem.pairs.sessions)
    d = len(problem.base)
    weights = problem.base.copy()
    errors = np.full(d, np.nan)
    share = 0.0
    v = common
    if spread > 0.0:
        # The loss is a mean over sessions: the prior is as strong against them as tau says.
        precision = np.full(len(common), 1.0 / (sessions * spread**2))
        v = solve(problem, common, precision, np.maximum(common, 1e-3))
        information = problem.information(v)
        kept = np.linalg.solve(information + np.diag(precision), information)
        share = float(np.trace(kept) / len(common))
        errors[problem.columns] = standard_errors(problem, v, common, precision)
    if v.sum() > 0.0:
        weights[problem.columns] = problem.share * v / v.sum()
    of_common = problem.base.copy()
    of_common[problem.columns] = problem.share * common / common.sum()
    return OfNamespace(name, weights, float(np.abs(weights - of_common).sum()), share, sessions, errors)
