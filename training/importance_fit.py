"""Weights of importance from what agents used: what was used against what was shown beside it and was not. Pure.

The signals are taken as they were when a packet was served: content and emotion follow from the text, access from the
sessions that had used the memory by then, the context from what was logged. The user's signal keeps its weight:
ratings have their say in the server, where they shift the weights of their namespace at once. Of a packet only memories
that fit its task about as well are compared, so that importance is not credited with what the task decided.

The fit is `sidecar.importance.calibration.fit_weights`: few sessions move little, many as far as they agree. The last
sessions are held out; weights are worth having where they put more of those in the right order than the old ones do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from sidecar.domain import DAY, Floats
from sidecar.features import FEATURE_NAMES, RAW_NAMES
from sidecar.features.recency import HALF_LIFE_DAYS
from sidecar.importance.access import RECENCY_SHARE, SESSIONS_SHARE, recency_value, sessions_value
from sidecar.importance.calibration import Values, fit_weights
from sidecar.importance.settings import AccessForm, SignalWeights
from training.dataset import Dataset, Ints
from training.held_out import Difference, bootstrap
from training.pairs import make_pairs

LEARNED = ("content", "access", "emotion", "context")
"""Signals whose weights are learned; the columns of `signals`."""
NEAR_FIT = 0.1
"""Task fits that are this near count as one."""
HELD_OUT = 0.25
"""Share of the sessions, the last ones, by which a fit is judged."""
LEAST_SESSIONS = 40
"""Sessions with a pair, below which nothing is said."""
MOST_PAIRS = 40
"""Pairs of one session that are looked at, so that a long one has no more say than others."""
ROUNDS, CONFIDENCE = 2_000, 0.95

Contents = Mapping[tuple[str, str], Mapping[str, float | None]]
"""(namespace, memory id) -> the values of its signals "content" and "emotion" that follow from the text."""


@dataclass(frozen=True, slots=True)
class Fit:
    """What use says of the weights. `gain` is how much more often the new weights agree with held-out use than the old
    ones, which agree on `before` of it; None with too few sessions, and then `weights` are the old ones."""

    weights: SignalWeights
    sessions: int
    pairs: int
    before: float = 0.0
    gain: Difference | None = None

    @property
    def is_better(self) -> bool:
        """True where held-out sessions say so, surely."""
        return self.gain is not None and self.gain.lower_bound > 0.0


def signals(dataset: Dataset, contents: Contents, form: AccessForm = AccessForm.LOGARITHM) -> Floats:
    """The signals of every served memory as they were then: shape (n, 4), columns as LEARNED, NaN for an absent one."""
    n = len(dataset)
    found = np.full((n, len(LEARNED)), np.nan)
    sessions, reported, age = (
        dataset.raw[:, RAW_NAMES.index(name)] for name in ("use_sessions", "reported_sessions", "age_days")
    )
    context = dataset.features[:, FEATURE_NAMES.index("context")]
    most: dict[str, int] = {}
    for row in range(n):  # ascends by time
        namespace = dataset.packets.namespace[dataset.packet[row]]
        known = contents.get((namespace, dataset.memory_id[dataset.memory_key[row]]), {})
        content, emotion = known.get("content"), known.get("emotion")
        found[row, 0] = np.nan if content is None else content
        found[row, 2] = np.nan if emotion is None else emotion
        if reported[row] or sessions[row]:
            most[namespace] = max(most.get(namespace, 0), int(sessions[row]))
            half_life = HALF_LIFE_DAYS.get(dataset.kinds[dataset.kind[row]], HALF_LIFE_DAYS["default"])
            found[row, 1] = SESSIONS_SHARE * sessions_value(
                int(sessions[row]), most[namespace], form
            ) + RECENCY_SHARE * recency_value(round(age[row] * DAY), half_life)
    # A packet without a context has it at 0 throughout, which says nothing.
    total = np.bincount(dataset.packet, context, len(dataset.packets)).astype(np.float64)
    found[:, 3] = np.where(total[dataset.packet] > 0.0, context, np.nan)
    return found


def fit_domain(dataset: Dataset, values: Floats, common: SignalWeights, seed: int = 0) -> Fit:
    """The weights of one domain from a log of its namespaces, shrunk to `common`; `values` are its `signals`."""
    pairs = make_pairs(dataset)
    better, worse, session = pairs.row[pairs.better], pairs.row[pairs.worse], pairs.session
    apart = values[better] - values[worse]
    fit = dataset.task_fit
    # A pair of which no signal is known on both sides says nothing.
    tells = (np.abs(fit[better] - fit[worse]) <= NEAR_FIT) & (np.nan_to_num(apart) != 0.0).any(axis=1)
    chosen = _some_of_each(np.flatnonzero(tells), session, seed)
    better, worse, session = better[chosen], worse[chosen], session[chosen]
    sessions = np.unique(session)
    if len(sessions) < LEAST_SESSIONS:
        return Fit(common, len(sessions), len(chosen))
    held = session >= sessions[round(len(sessions) * (1 - HELD_OUT))]
    new = _fitted(values[better[~held]], values[worse[~held]], session[~held], common)
    old_right, new_right = (_right(values[better[held]] - values[worse[held]], weights) for weights in (common, new))
    _, of_session = np.unique(session[held], return_inverse=True)
    count = np.bincount(of_session)
    gain = np.bincount(of_session, new_right - old_right) / count
    before = float((np.bincount(of_session, old_right) / count).mean())
    judged = bootstrap(gain, rounds=ROUNDS, confidence=CONFIDENCE, seed=seed)
    # What is kept is fitted to all sessions; the held-out ones have said whether such a fit is worth having.
    final = _fitted(values[better], values[worse], session, common)
    return Fit(final, len(sessions), len(chosen), before, judged)


def _fitted(better: Floats, worse: Floats, session: Ints, common: SignalWeights) -> SignalWeights:
    apart = np.nan_to_num(better - worse)
    # What nothing was seen of keeps its weight, and so does the user's signal.
    seen = [name for column, name in enumerate(LEARNED) if apart[:, column].any()]
    start = {name: weight for name, weight in common.by_name().items() if name in seen}
    evidence = float(len(np.unique(session)))
    return replace(common, **fit_weights(start, _as_values(better), _as_values(worse), evidence))


def _as_values(rows: Floats) -> list[Values]:
    return [
        {name: None if value != value else value for name, value in zip(LEARNED, row, strict=True)}
        for row in rows.tolist()
    ]


def _right(apart: Floats, weights: SignalWeights) -> Floats:
    """1 for each pair that the weights put in the right order, half for a tie, shape (q,)."""
    own = weights.by_name()
    score = np.nan_to_num(apart) @ np.array([own[name] for name in LEARNED])
    right: Floats = np.where(score == 0.0, 0.5, score > 0.0)
    return right


def _some_of_each(pairs: Ints, session: Ints, seed: int) -> Ints:
    """At most MOST_PAIRS of each session, in their order."""
    mixed = np.random.default_rng(seed).permutation(pairs)
    order = mixed[np.argsort(session[mixed], kind="stable")]
    of = session[order]
    kept: Ints = np.sort(order[np.arange(len(order)) - np.searchsorted(of, of) < MOST_PAIRS])
    return kept
