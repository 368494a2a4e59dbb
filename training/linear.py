"""The linear model: weights at least 0 that put what was used above what was not (LEARNING section 6). Pure.

    minimise  sum over pairs of c log(1 + exp(-(f(x_i) - f(x_j)))) + lambda/2 (v - v0)' diag(F) (v - v0)

over v >= 0, where f is the served score with every contribution cap, at whatever scale v has: no slope is fixed, so a
weight of 0 stays 0. Then w = v / sum v. v0 = s * w0, the old weights at the scale s >= 0 that fits best, F the diagonal
Fisher information there, lambda by cross-validation over whole sessions on LAMBDAS. Standard errors are clustered by
session.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sidecar.domain import Floats
from sidecar.weights import Weights
from training.capped import CappedRows, stated_caps
from training.pairs import Pairs

LAMBDAS = (0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
"""The grid of prior strengths, as multiples of the information that the data have themselves."""
FOLDS = 5
CROSS_VALIDATED_SESSIONS = 2_000
"""Sessions that cross-validation looks at, at most; the fit takes all. More of them move lambda by nothing."""
LEAST_VARYING_SESSIONS = 30
"""A feature that differs within pairs of fewer sessions keeps its weight: too little is known of it."""
LEAST_SPREAD = 0.05
"""By how much a feature must differ within pairs, as a root mean square: less moves no order, and says nothing."""
LEAST_OWN_SHARE = 0.02
"""Of what a feature says, the share that no others together say too: below it, it keeps its weight."""
LEAST_CURVATURE = 1e-9
"""Information below which a direction counts as unknown."""
_LEAST_SCALE = 1e-12
_OPTIONS = {"maxiter": 500, "ftol": 1e-11, "gtol": 1e-8, "maxcor": 20}
ROUGH = 1e-8
"""The tolerance of fits of which only the loss is looked at."""

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class LinearFit:
    """What a fit came to; arrays have shape (d,), in the order of FEATURE_NAMES.

    `fitted` marks the features that the data say enough of. `weights` are w_hat: like the base they sum to what it
    sums to, and features that are not fitted have their old weight. `v` is the unscaled solution of the fitted ones, 0
    elsewhere. `standard_errors` are of the weights, NaN where nothing was fitted. `lambda_losses` has the held-out loss
    of each of `lambdas`; `slope` is s. Losses are per pair weight: log 2 is what weights of 0 would have.
    """

    base: Floats
    fitted: NDArray[np.bool_]
    weights: Floats
    v: Floats
    slope: float
    prior_strength: float
    lambdas: tuple[float, ...]
    lambda_losses: tuple[float, ...]
    standard_errors: Floats
    base_loss: float
    loss: float
    sessions: int
    pairs: int
    effective_sessions: float


@dataclass(frozen=True, slots=True)
class Problem:
    """The pairs, which features are fitted, and the old weights. v has shape (f,), for the f fitted features."""

    pairs: Pairs
    rows: CappedRows
    base: Floats
    columns: NDArray[np.intp]
    share: float
    """What the fitted weights sum to together, as the base's do."""

    @classmethod
    def of(cls, pairs: Pairs, weights: Weights, columns: NDArray[np.intp]) -> Problem:
        """The problem of fitting these columns from weights that serve now."""
        rows = CappedRows(pairs.features, pairs.without_use, stated_caps(weights), weights.use_family_cap)
        kept = np.delete(weights.values, columns).sum()
        return cls(pairs, rows, weights.values, columns, float(weights.values.sum() - kept))

    def of_sessions(self, chosen: NDArray[np.bool_]) -> Problem:
        """The same on some of the sessions."""
        pairs = self.pairs.of_sessions(chosen)
        rows = CappedRows(pairs.features, pairs.without_use, self.rows.caps, self.rows.family_cap)
        return Problem(pairs, rows, self.base, self.columns, self.share)

    def spread(self, v: Floats) -> tuple[Floats, float]:
        """All weights at the scale of v, shape (d,), and that scale: those that are not fitted go along with it."""
        scale = max(float(v.sum()) / self.share, _LEAST_SCALE)
        u: Floats = self.base * scale
        u[self.columns] = v
        return u, scale

    def loss(self, v: Floats) -> tuple[float, Floats]:
        """The weighted loss of v and its slope, shape (f,)."""
        u, scale = self.spread(v)
        losses, pull = self._pulls(self.rows.scores(u, scale))
        slope, of_scale = self.rows.pulled_back(u, scale, pull)
        kept = np.delete(slope, self.columns) @ np.delete(self.base, self.columns)
        return float(self.pairs.weight @ losses), slope[self.columns] + (of_scale + kept) / self.share

    def _pulls(self, score: Floats) -> tuple[Floats, Floats]:
        """The loss of each pair, shape (q,), and how it all pulls at each row, (n,)."""
        pairs = self.pairs
        margin = score[pairs.better] - score[pairs.worse]
        losses: Floats = np.logaddexp(0.0, -margin)
        pull = -pairs.weight * np.exp(-margin - losses)
        n = len(score)
        back = np.bincount(pairs.better, pull, n).astype(np.float64) - np.bincount(pairs.worse, pull, n)
        return losses, back

    def slopes(self, v: Floats) -> Floats:
        """The slope of each row's score in v, shape (n, f)."""
        u, scale = self.spread(v)
        slope, of_scale = self.rows.slopes(u, scale)
        kept = np.delete(slope, self.columns, axis=1) @ np.delete(self.base, self.columns)
        along: Floats = slope[:, self.columns] + ((of_scale + kept) / self.share)[:, None]
        return along

    def information(self, v: Floats, slopes: Floats | None = None, at_once: int = 200_000) -> Floats:
        """The Fisher information of v, shape (f, f), per unit of pair weight."""
        slopes = self.slopes(v) if slopes is None else slopes
        u, scale = self.spread(v)
        score = self.rows.scores(u, scale)
        pairs = self.pairs
        total = np.zeros((slopes.shape[1], slopes.shape[1]))
        for start in range(0, len(pairs), at_once):
            better, worse = pairs.better[start : start + at_once], pairs.worse[start : start + at_once]
            odds = _expit(score[better] - score[worse])
            apart = slopes[better] - slopes[worse]
            total += (apart * (pairs.weight[start : start + at_once] * odds * (1 - odds))[:, None]).T @ apart
        return total

    def session_slopes(self, v: Floats, slopes: Floats | None = None) -> Floats:
        """The slope of each session's loss in v, shape (s, f)."""
        slopes = self.slopes(v) if slopes is None else slopes
        u, scale = self.spread(v)
        _, pull = self._pulls(self.rows.scores(u, scale))
        session = np.zeros(len(slopes), np.int64)
        session[self.pairs.better] = self.pairs.session
        session[self.pairs.worse] = self.pairs.session
        pulled = slopes * pull[:, None]
        by_feature = [np.bincount(session, column, len(self.pairs.sessions)) for column in pulled.T]
        return np.stack(by_feature, axis=1)


def fit_linear(
    pairs: Pairs,
    weights: Weights,
    *,
    lambdas: Sequence[float] = LAMBDAS,
    folds: int = FOLDS,
    seed: int = 0,
    least_varying_sessions: int = LEAST_VARYING_SESSIONS,
    progress: Progress = lambda done, total: None,
) -> LinearFit:
    """Fits weights that start from `weights`. One lambda is taken as it is; of more, cross-validation chooses."""
    columns = told_apart(pairs, weights, varying(pairs, least_varying_sessions))
    d = len(weights.values)
    problem = Problem.of(pairs, weights, columns)
    if not len(pairs) or not len(columns) or problem.share <= 0.0:
        return _unfitted(pairs, weights)
    steps = folds * len(lambdas) + 2 if len(lambdas) > 1 else 2
    slope = best_slope(problem)
    losses: tuple[float, ...] = ()
    strength = lambdas[0]
    if len(lambdas) > 1:
        losses = _cross_validated(problem, lambdas, folds, seed, lambda done: progress(done, steps))
        # Of equal ones the strongest, which stays closest to what serves.
        strength = lambdas[max(range(len(lambdas)), key=lambda i: (-losses[i], lambdas[i]))]
    progress(steps - 1, steps)
    v0 = slope * weights.values[columns]
    precision = strength * _diagonal(problem.information(v0))
    found = solve(problem, v0, precision, _start(problem, slope))
    errors = standard_errors(problem, found, v0, precision)
    progress(steps, steps)
    v, fitted_errors, fitted = np.zeros(d), np.full(d, np.nan), np.zeros(d, bool)
    v[columns], fitted_errors[columns], fitted[columns] = found, errors, True
    return LinearFit(
        base=weights.values,
        fitted=fitted,
        weights=_weights(problem, found),
        v=v,
        slope=slope,
        prior_strength=strength,
        lambdas=tuple(lambdas),
        lambda_losses=losses,
        standard_errors=fitted_errors,
        base_loss=problem.loss(v0)[0] / float(pairs.weight.sum()),
        loss=problem.loss(found)[0] / float(pairs.weight.sum()),
        sessions=len(pairs.sessions),
        pairs=len(pairs),
        effective_sessions=pairs.effective_sessions,
    )


def varying(pairs: Pairs, least_sessions: int = 1, least_spread: float = LEAST_SPREAD) -> NDArray[np.intp]:
    """Indices of the features that differ within pairs by `least_spread`, and of that many sessions at least."""
    found = []
    for j in range(pairs.features.shape[1]):
        column = pairs.features[:, j]
        apart = np.abs(column[pairs.better] - column[pairs.worse])
        spread = np.sqrt(float(pairs.weight @ apart**2) / max(float(pairs.weight.sum()), _LEAST_SCALE))
        if spread < least_spread:
            continue
        if len(np.unique(pairs.session[apart > LEAST_CURVATURE])) >= max(1, least_sessions):
            found.append(j)
    return np.array(found, np.intp)


def told_apart(pairs: Pairs, weights: Weights, columns: NDArray[np.intp]) -> NDArray[np.intp]:
    """The columns without those that say, within packets, only what others say: of a group that the data cannot tell
    apart, the ones with the least weight are left out, and so keep it."""
    if not len(columns) or not len(pairs):
        return columns
    problem = Problem.of(pairs, weights, columns)
    if problem.share <= 0.0:
        return columns
    # At weights of 0 all pairs count alike, and what features say of each other is seen by the features alone.
    information = problem.information(np.zeros(len(columns)))
    kept = list(range(len(columns)))
    while len(kept) > 1:
        inner = information[np.ix_(kept, kept)]
        size = np.sqrt(np.diag(inner))
        inner = inner / np.outer(size, size) + LEAST_CURVATURE * np.eye(len(kept))
        own = 1.0 / np.diag(np.linalg.inv(inner))
        doubtful = [i for i in range(len(kept)) if own[i] < LEAST_OWN_SHARE]
        if not doubtful:
            break
        base = weights.values[columns]
        kept.remove(min((kept[i] for i in doubtful), key=lambda i: (base[i], i)))
    return columns[kept]


def best_slope(problem: Problem) -> float:
    """s >= 0: the scale of the old weights that fits best; 0 if they rank no better than nothing."""
    from scipy.optimize import minimize

    direction = problem.base[problem.columns]
    if not direction.any():
        return 0.0

    def loss(s: Floats) -> tuple[float, Floats]:
        value, slope = problem.loss(s[0] * direction)
        return value, np.array([slope @ direction])

    found = minimize(loss, np.array([1.0]), jac=True, method="L-BFGS-B", bounds=[(0.0, 1e4)], options=_OPTIONS)
    return float(found.x[0])


def solve(problem: Problem, centre: Floats, precision: Floats, start: Floats, tolerance: float = 1e-11) -> Floats:
    """v >= 0 that minimises the loss and (v - centre)' precision (v - centre) / 2, with a precision of shape (f, f)."""
    from scipy.optimize import minimize

    def loss(v: Floats) -> tuple[float, Floats]:
        value, slope = problem.loss(v)
        pull = precision @ (v - centre)
        return value + float(pull @ (v - centre)) / 2, slope + pull

    bounds = [(0.0, 1e6)] * len(start)
    options = {**_OPTIONS, "ftol": tolerance}
    found: Floats = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
    return found


def standard_errors(problem: Problem, v: Floats, centre: Floats, precision: Floats) -> Floats:
    """Of the weights w = share v / sum v, clustered by session, shape (f,); of a fit with that prior.

    A weight at its bound of 0 has the deviation of a normal estimate that is cut off at 0: free beside those above it,
    it would lie below. NaN where the data say nothing.
    """
    errors = np.full(len(v), np.nan)
    total = float(v.sum())
    count = len(problem.pairs.sessions)
    if total <= 0.0 or count < 2:
        return errors
    slopes = problem.slopes(v)
    bread = problem.information(v, slopes) + precision
    by_session = problem.session_slopes(v, slopes)
    by_session = by_session - by_session.mean(axis=0)
    meat = by_session.T @ by_session * count / (count - 1)
    slope = problem.loss(v)[1] + precision @ (v - centre)
    free = np.flatnonzero(v > 0.0)
    for bound in (None, *np.flatnonzero(v <= 0.0).tolist()):
        among = free if bound is None else np.append(free, bound)
        inner = bread[np.ix_(among, among)]
        if np.linalg.eigvalsh(inner)[0] <= LEAST_CURVATURE * max(1.0, np.abs(inner).max()):
            continue
        turned = np.linalg.inv(inner)
        covariance = turned @ meat[np.ix_(among, among)] @ turned
        onto = problem.share * (np.eye(len(among)) / total - np.outer(v[among], np.ones(len(among))) / total**2)
        found = np.sqrt(np.maximum(np.diag(onto @ covariance @ onto.T), 0.0))
        if bound is None:
            errors[among] = found
        else:
            # Its own optimum, by one step of Newton's; turned[-1, -1] is what is left of its curvature, inverted.
            wanted = -float(slope[bound]) * float(turned[-1, -1]) * problem.share / total
            errors[bound] = _cut_off_at_0(wanted, float(found[-1]))
    return errors


def _cut_off_at_0(mean: float, deviation: float) -> float:
    """The standard deviation of max(0, x) for a normal x."""
    if deviation <= 0.0:
        return 0.0
    a = mean / deviation
    above, density = (1.0 + math.erf(a / math.sqrt(2.0))) / 2.0, math.exp(-(a**2) / 2.0) / math.sqrt(2.0 * math.pi)
    first, second = a * above + density, (1.0 + a**2) * above + a * density
    return deviation * math.sqrt(max(second - first**2, 0.0))


def _start(problem: Problem, slope: float) -> Floats:
    """Inside the bounds, so that every weight may move: half the old weights, half all alike."""
    f = len(problem.columns)
    scale = max(slope, 1.0) * problem.share
    old = problem.base[problem.columns]
    start: Floats = scale * (old / max(float(old.sum()), _LEAST_SCALE) + 1.0 / f) / 2
    return start


def _cross_validated(
    problem: Problem, lambdas: Sequence[float], folds: int, seed: int, progress: Callable[[int], None]
) -> tuple[float, ...]:
    """The mean loss on held-out sessions of each lambda."""
    dice = np.random.default_rng(seed)
    count = len(problem.pairs.sessions)
    order = dice.permutation(count)
    fold = np.full(count, -1)
    fold[order[:CROSS_VALIDATED_SESSIONS]] = np.arange(min(count, CROSS_VALIDATED_SESSIONS)) % folds
    losses = np.zeros(len(lambdas))
    for number in range(folds):
        out = fold == number
        if not out.any() or out.sum() == (fold >= 0).sum():
            continue
        inside, outside = problem.of_sessions((fold >= 0) & ~out), problem.of_sessions(out)
        slope = best_slope(inside)
        centre = slope * problem.base[problem.columns]
        fisher = _diagonal(inside.information(centre))
        found = _start(inside, slope)
        for i in sorted(range(len(lambdas)), key=lambda i: -lambdas[i]):  # from the easy to the free
            found = solve(inside, centre, lambdas[i] * fisher, np.maximum(found, 1e-3), ROUGH)
            losses[i] += outside.loss(found)[0]
            progress(number * len(lambdas) + 1 + sorted(range(len(lambdas)), key=lambda i: -lambdas[i]).index(i))
    return tuple((losses / folds).tolist())


def _weights(problem: Problem, v: Floats) -> Floats:
    found = problem.base.copy()
    if v.sum() > 0.0:
        found[problem.columns] = problem.share * v / v.sum()
    return found


def _unfitted(pairs: Pairs, weights: Weights) -> LinearFit:
    d = len(weights.values)
    return LinearFit(
        base=weights.values,
        fitted=np.zeros(d, bool),
        weights=weights.values.copy(),
        v=np.zeros(d),
        slope=0.0,
        prior_strength=0.0,
        lambdas=(),
        lambda_losses=(),
        standard_errors=np.full(d, np.nan),
        base_loss=float(np.log(2.0)),
        loss=float(np.log(2.0)),
        sessions=len(pairs.sessions),
        pairs=len(pairs),
        effective_sessions=pairs.effective_sessions,
    )


def _diagonal(matrix: Floats) -> Floats:
    """The matrix without what is off its diagonal."""
    return np.diag(np.diag(matrix))


def _expit(x: Floats) -> Floats:
    """1 / (1 + exp(-x)) without overflow."""
    found: Floats = np.exp(-np.logaddexp(0.0, -x))
    return found
