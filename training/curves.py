"""The curves form: a LightGBM ranker fitted on pairs, as step functions that a server looks up (LEARNING section 7).

Pure but for LightGBM, which works in a process of its own. The booster is read out exactly and held against LightGBM
before anything is scaled. Then every curve starts at 0, all together reach what the fitted features may have, and a
curve above its feature's or family's cap is cut off there. A feature that the data say too little of keeps what it
had, as in the linear form.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sidecar.domain import Floats
from sidecar.features import FEATURE_NAMES
from sidecar.weights import Weights, make_curve_weights
from sidecar.weights.curves import Curve, table_of
from training.boosting import Job, Ranking, boost_all
from training.capped import FAMILY, stated_caps
from training.dataset import Dataset
from training.lambdarank import DEFAULT_ROUNDS, Booster, difference, normalised, parameters, read_booster
from training.lambdarank import Curve as BoosterCurve
from training.linear import LEAST_VARYING_SESSIONS, told_apart, varying
from training.movement import HALVINGS, Candidates, Movement, MovementCaps, overlap
from training.pairs import Pairs

STOPPING_SHARE = 0.2
"""Of the sessions that are fitted on, the last ones: they say how many trees are enough. Then all are fitted on."""
GROUPS = 10
"""Groups of sessions, each left out once, for the standard errors (a delete-a-group jackknife)."""
STEPS = 256
"""Steps that a straight line is taken in where it has to be a curve."""
PROOF_TOLERANCE = 1e-12

Progress = Callable[[int, int], None]
Columns = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class CurvesFit:
    """What a fit came to; arrays have shape (d,), in the order of FEATURE_NAMES.

    `curves` are as they could serve, before any movement cap. `fitted` marks the features whose curve comes from the
    booster, and `standard_errors` are of the tops of these, NaN elsewhere. `clipped` names the curves that a cap cut
    off. `difference` is how far the curves are from LightGBM's own scores at most, over `proof_rows` rows.
    """

    curves: Weights
    fitted: NDArray[np.bool_]
    standard_errors: Floats
    clipped: tuple[str, ...]
    trees: int
    difference: float
    proof_rows: int
    sessions: int
    pairs: int
    effective_sessions: float

    @property
    def weights(self) -> Floats:
        """The top of each curve."""
        return self.curves.values


def fit_curves(
    dataset: Dataset,
    pairs: Pairs,
    old: Weights,
    *,
    k: int,
    seed: int = 0,
    rounds: int = DEFAULT_ROUNDS,
    groups: int = GROUPS,
    least_varying_sessions: int = LEAST_VARYING_SESSIONS,
    progress: Progress = lambda done, total: None,
) -> CurvesFit:
    """Fits curves that take the place of `old`. `groups` of 0 leaves the standard errors out. Where the data say
    nothing no feature is fitted, and the curves are the old weights. Raises BoostingError."""
    columns = _fittable(pairs, old, least_varying_sessions)
    if not len(columns):
        return _unfitted(pairs, old)
    total = rounds * (2 + groups)
    (trees,) = _enough_trees(dataset, [(pairs, columns)], k, seed, rounds, lambda done, _: progress(done, total))
    group = np.random.default_rng(seed).permutation(len(pairs.sessions)) % max(1, groups)
    parts = [(pairs, columns), *((pairs.of_sessions(group != each), columns) for each in range(groups))]
    booster, *left_out = _boosted(
        dataset,
        parts,
        [trees] * len(parts),
        k,
        seed,
        lambda done, of: progress(rounds + done * (total - rounds) // of, total),
    )
    if _is_flat(booster):
        return _unfitted(pairs, old)
    served, clipped = _served(booster, columns, old)
    apart, proof_rows = difference(booster, len(columns), seed)
    fitted, errors = np.zeros(len(FEATURE_NAMES), bool), np.full(len(FEATURE_NAMES), np.nan)
    fitted[columns] = True
    errors[columns] = _jackknife([_tops(each, columns, old) for each in left_out])
    progress(total, total)
    return CurvesFit(
        curves=served,
        fitted=fitted,
        standard_errors=errors,
        clipped=clipped,
        trees=booster.tree_count,
        difference=apart,
        proof_rows=proof_rows,
        sessions=len(pairs.sessions),
        pairs=len(pairs),
        effective_sessions=pairs.effective_sessions,
    )


def fit_each(
    dataset: Dataset, parts: Sequence[Pairs], old: Weights, *, k: int, seed: int, rounds: int = DEFAULT_ROUNDS
) -> list[Weights]:
    """The curves of each part of the data, without proof and standard errors."""
    fitted = [(pairs, _fittable(pairs, old, LEAST_VARYING_SESSIONS)) for pairs in parts]
    able = [each for each in fitted if len(each[1])]
    trees = _enough_trees(dataset, able, k, seed, rounds)
    boosters = iter(_boosted(dataset, able, trees, k, seed))
    found = []
    for pairs, columns in fitted:
        booster = next(boosters) if len(columns) else None
        if booster is None or _is_flat(booster):
            found.append(_unfitted(pairs, old).curves)
        else:
            found.append(_served(booster, columns, old)[0])
    return found


def _fittable(pairs: Pairs, old: Weights, least_varying_sessions: int) -> Columns:
    """The columns that the data say enough of; none where they say nothing."""
    if len(pairs.sessions) < 2:
        return np.zeros(0, np.intp)
    return told_apart(pairs, old, varying(pairs, least_varying_sessions))


def _enough_trees(
    dataset: Dataset,
    parts: Sequence[tuple[Pairs, Columns]],
    k: int,
    seed: int,
    rounds: int,
    progress: Progress = lambda done, total: None,
) -> list[int]:
    """How many trees are enough for each part: fitted on its first sessions, judged by its last."""
    jobs = []
    for pairs, columns in parts:
        count = len(pairs.sessions)
        late = np.arange(count) >= count - max(1, int(np.ceil(STOPPING_SHARE * count)))
        early, judged = (ranking_of(dataset, pairs.of_sessions(chosen), columns) for chosen in (~late, late))
        jobs.append(Job(early, judged, parameters(len(columns), k, seed), rounds))
    texts = boost_all(jobs, lambda job, number, _: progress(job * rounds + number, len(jobs) * rounds))
    return [max(1, read_booster(text).tree_count) for text in texts]


def _boosted(
    dataset: Dataset,
    parts: Sequence[tuple[Pairs, Columns]],
    trees: Sequence[int],
    k: int,
    seed: int,
    progress: Progress = lambda done, total: None,
) -> list[Booster]:
    jobs = [
        Job(ranking_of(dataset, pairs, columns), None, parameters(len(columns), k, seed), count)
        for (pairs, columns), count in zip(parts, trees, strict=True)
    ]
    total = sum(trees)
    texts = boost_all(jobs, lambda job, number, _: progress(sum(trees[:job]) + number, total))
    return [read_booster(text) for text in texts]


def ranking_of(dataset: Dataset, pairs: Pairs, columns: Columns) -> Ranking:
    """The rows that stand in pairs as LightGBM takes them: a group is one packet's rows of one channel.

    A row weighs what its pairs do in the mean, times how many pairs its packet has: as much as its packet does where
    labels are whole. LightGBM weighs rows and not pairs, so what is known of one row (how sure its label is, how often
    its place is looked at) counts for that row.
    """
    n = len(pairs.row)
    packet = dataset.packet[pairs.row]
    _, sizes = np.unique(packet * 4 + dataset.channel[pairs.row], return_counts=True)  # rows stand by group
    ends = np.concatenate([pairs.better, pairs.worse])
    mean = np.bincount(ends, np.tile(pairs.weight, 2), n) / np.bincount(ends, minlength=n)
    weight = mean * np.bincount(packet[pairs.better], minlength=len(dataset.packets))[packet]
    grade = np.zeros(n, np.int64)
    grade[pairs.better] = 1
    return Ranking(pairs.features[:, columns], grade, sizes.astype(np.int64), weight / weight.mean())


def as_curve(weights: Weights, index: int) -> Curve:
    """What a feature adds, as a step function: its curve, or its line in STEPS steps, each at its middle."""
    if weights.curves and (curve := weights.curves[index]):
        return curve
    if weights.curves:
        return Curve(np.zeros(0), np.zeros(1))
    middles = (np.arange(STEPS) + 0.5) / STEPS
    return _without_flats(np.arange(STEPS) / STEPS, np.append(0.0, weights.part(index, middles)))


def blended(old: Weights, new: Weights, share: float) -> Weights:
    """The curves that lie `share` of the way from old ones, or from old lines in steps, to new ones."""
    if share == 1.0:
        return new
    mixed = {}
    for index, name in enumerate(FEATURE_NAMES):
        one, other = as_curve(old, index), as_curve(new, index)
        thresholds = np.union1d(one.thresholds, other.thresholds)
        values = (1.0 - share) * _by_stretch(one, thresholds) + share * _by_stretch(other, thresholds)
        mixed[name] = _without_flats(thresholds, values)
    return _weights(mixed, new)


def capped_curves(
    old: Weights, new: Weights, candidates: Candidates, caps: MovementCaps, *, free: bool = False
) -> tuple[Weights, Movement]:
    """The furthest on the way from `old` to `new` at which re-ranking keeps enough of the top K; `free`: all the way.

    Curves have no weights whose moves could be summed, so the share that is kept is the only cap.
    """
    packets = len(candidates.width)
    before = candidates.top(candidates.scores(old), caps.top_k)

    def kept(share: float) -> float:
        moved = candidates.scores(blended(old, new, share))
        return overlap(before, candidates.top(moved, caps.top_k), candidates.packet, packets)

    eta, reached, stopped_by = 1.0, kept(1.0), ""
    if reached < caps.least_overlap and not free:
        stopped_by = f"the share of the top {caps.top_k} that is kept, {caps.least_overlap:g}"
        low, high, reached = 0.0, 1.0, kept(0.0)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            share = kept(middle)
            if share >= caps.least_overlap:
                low, reached = middle, share
            else:
                high = middle
        eta = low
    found = blended(old, new, eta)
    moves = np.abs(found.values - old.values)
    return found, Movement(found.values, eta, reached, float(moves.sum()), float(moves.max()), stopped_by)


def _unfitted(pairs: Pairs, old: Weights) -> CurvesFit:
    d = len(FEATURE_NAMES)
    curves = {name: as_curve(old, index) for index, name in enumerate(FEATURE_NAMES)}
    return CurvesFit(
        curves=_weights(curves, old),
        fitted=np.zeros(d, bool),
        standard_errors=np.full(d, np.nan),
        clipped=(),
        trees=0,
        difference=0.0,
        proof_rows=0,
        sessions=len(pairs.sessions),
        pairs=len(pairs),
        effective_sessions=pairs.effective_sessions,
    )


def _is_flat(booster: Booster) -> bool:
    return not any(curve.values.max() > curve.values.min() for curve in booster.curves.values())


def _served(booster: Booster, columns: Columns, old: Weights) -> tuple[Weights, tuple[str, ...]]:
    """What serves, with the features that are not fitted as they were, and the names of the curves that a cap cut."""
    others = np.setdiff1d(np.flatnonzero(old.values), columns)
    kept = {FEATURE_NAMES[index]: as_curve(old, int(index)) for index in others}
    share = 1.0 - sum(curve.top for curve in kept.values())
    found = {
        FEATURE_NAMES[columns[column]]: _without_flats(curve.thresholds, curve.values * share)
        for column, curve in normalised(_inside(booster)).items()
    }
    cut, clipped = _clipped(found, old)
    return _weights({**kept, **cut}, old), clipped


def _inside(booster: Booster) -> dict[int, BoosterCurve]:
    """Its curves on [0, 1]: what lies left or right of it no feature can have."""
    inside = {}
    for column, curve in booster.curves.items():
        within = (curve.thresholds >= 0.0) & (curve.thresholds < 1.0)
        first = int((curve.thresholds < 0.0).sum())
        values = curve.values[first : first + int(within.sum()) + 1]
        # A sum of rising trees rises, but for the last bit of the addition.
        inside[column] = BoosterCurve(curve.thresholds[within], np.maximum.accumulate(values))
    return inside


def _tops(booster: Booster, columns: Columns, old: Weights) -> Floats:
    """What the fitted curves reach, (f,); 0 for each of a booster that learned nothing."""
    return np.zeros(len(columns)) if _is_flat(booster) else _served(booster, columns, old)[0].values[columns]


def _jackknife(left_out: Sequence[Floats]) -> Floats | float:
    """The standard error from estimates with one group left out each, (f,); NaN without groups."""
    if len(left_out) < 2:
        return np.nan
    given, g = np.array(left_out), len(left_out)
    error: Floats = np.sqrt((g - 1) / g * np.square(given - given.mean(axis=0)).sum(axis=0))
    return error


def _clipped(curves: Mapping[str, Curve], old: Weights) -> tuple[dict[str, Curve], tuple[str, ...]]:
    """The curves cut off at the caps, and which ones were. Just below: a cap that equals the top would be taken for
    one that nobody set."""
    caps = stated_caps(old).copy()
    caps[FAMILY] = np.minimum(caps[FAMILY], old.use_family_cap)
    found, clipped = {}, []
    for name, curve in curves.items():
        cap = float(caps[FEATURE_NAMES.index(name)])
        if curve.top > cap:
            curve = _without_flats(curve.thresholds, np.minimum(curve.values, max(0.0, np.nextafter(cap, 0.0))))
            clipped.append(name)
        found[name] = curve
    return found, tuple(clipped)


def _weights(curves: Mapping[str, Curve], like: Weights) -> Weights:
    """Weights of these curves, with the caps and half-lives of others."""
    stated = stated_caps(like)
    return make_curve_weights(
        like.version,
        table_of([curves.get(name) for name in FEATURE_NAMES]),
        caps={name: float(cap) for name, cap in zip(FEATURE_NAMES, stated, strict=True) if np.isfinite(cap)},
        use_family_cap=like.use_family_cap,
        half_life_days=like.half_life_days,
    )


def _by_stretch(curve: Curve, thresholds: Floats) -> Floats:
    """The curve's values between these thresholds, which hold its own, shape (m + 1,)."""
    found: Floats = curve.values[np.append(np.searchsorted(curve.thresholds, thresholds), len(curve.thresholds))]
    return found


def _without_flats(thresholds: Floats, values: Floats) -> Curve:
    """The same step function without thresholds at which nothing changes."""
    rises = np.diff(values) > 0.0
    return Curve(thresholds[rises], np.append(values[:1], values[1:][rises]))
