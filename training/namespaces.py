"""Weights by namespace, shrunk to the common ones: a small user is safe, a large one is served well. Pure.

Each namespace's v_n is taken to lie around the common v as N(v, tau^2 S^2 I + sigma^2 v v'), S the scale of v: needs
scatter by tau, and by sigma how sharply use follows them, which moves no order and is no need. Both come from the data
(empirical Bayes): under the common weights the slope g_n of a namespace's loss has covariance J_n + H_n C H_n, C the
prior's, so that their likelihood needs no inverse of H_n and no namespace needs to be large. v_n is then the fit of its
own pairs with that prior: with few pairs it is v, with many it is its own.
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
SIGMAS = (0.0, 0.125, 0.25, 0.5, 1.0, 2.0)
"""The grid of how far their scales scatter, as a share of it."""
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
    """How far namespaces scatter, and the weights of each, by name; of each tau, its best likelihood."""

    tau: float = 0.0
    sigma: float = 0.0
    likelihoods: tuple[float, ...] = ()
    found: tuple[OfNamespace, ...] = ()


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
        return Namespaces()
    tau, sigma, likelihoods = _scatter(list(problems.values()), common)
    found = []
    for number, (name, problem) in enumerate(problems.items()):
        progress(number, len(problems))
        found.append(_fit_one(name, problem, common, tau, sigma))
    progress(len(problems), len(problems))
    return Namespaces(tau, sigma, likelihoods, tuple(found))


def _prior(common: Floats, tau: float, sigma: float) -> Floats:
    """The covariance of a namespace's v around the common one, shape (f, f)."""
    scatter: Floats = (tau * common.sum()) ** 2 * np.eye(len(common)) + sigma**2 * np.outer(common, common)
    return scatter


def _scatter(problems: list[Problem], common: Floats) -> tuple[float, float, tuple[float, ...]]:
    """The likeliest tau of TAUS and sigma of SIGMAS, and the log-likelihood of each tau."""
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
    g, h = np.array(slopes), np.array(informations)
    own = np.array(counts)[:, None, None] * of_session

    def likelihood(tau: float, sigma: float) -> float:
        # Where v is at its bound of 0 the common slope is not 0, and says nothing of a scatter.
        covariance = own + h @ _prior(common, tau, sigma) @ h
        covariance += _JITTER * np.trace(covariance, axis1=1, axis2=2)[:, None, None] * np.eye(len(common))
        sign, size = np.linalg.slogdet(covariance)
        if (sign <= 0).any():
            return -np.inf
        return -float(size.sum() + (g * np.linalg.solve(covariance, g[:, :, None])[:, :, 0]).sum()) / 2

    every = np.array([[likelihood(tau, sigma) for sigma in SIGMAS] for tau in TAUS])
    best = every.max(axis=1)
    tau = int(best.argmax())
    return TAUS[tau], SIGMAS[int(every[tau].argmax())], tuple(best.tolist())


def _fit_one(name: str, problem: Problem, common: Floats, tau: float, sigma: float) -> OfNamespace:
    sessions = len(problem.pairs.sessions)
    d = len(problem.base)
    weights = problem.base.copy()
    errors = np.full(d, np.nan)
    share = 0.0
    v = common
    if tau > 0.0:
        # The loss is a mean over sessions: the prior is as strong against them as its scatter says.
        precision = np.linalg.inv(_prior(common, tau, sigma)) / sessions
        v = solve(problem, common, precision, np.maximum(common, 1e-3))
        information = problem.information(v)
        kept = np.linalg.solve(information + precision, information)
        share = float(np.trace(kept) / len(common))
        errors[problem.columns] = standard_errors(problem, v, common, precision)
    if v.sum() > 0.0:
        weights[problem.columns] = problem.share * v / v.sum()
    of_common = problem.base.copy()
    of_common[problem.columns] = problem.share * common / common.sum()
    return OfNamespace(name, weights, float(np.abs(weights - of_common).sum()), share, sessions, errors)
