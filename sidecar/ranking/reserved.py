"""Reserved slots: a turn for memories that have had few, drawn with known probabilities (LEARNING section 8).

The order matters, or the logged propensities are wrong: budgets are fixed and the ranked segment is filled before the
pool is built, every exclusion happens before the draw, and the draw is a keyed hash that can be replayed.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, fields
from functools import lru_cache

import numpy as np

from sidecar.domain import Floats

RULE = "reserve-1"
"""Names the rule below in the log; any change of it is a new name."""


@dataclass(frozen=True, slots=True)
class ReserveSettings:
    """The constants of the rule. `floor` and `fit_share` bound task fit; `epsilon` mixes in uniform chance. Beside it,
    the first two ranked memories take either place by chance if their scores are no more than `swap_within` apart."""

    min_reported_sessions: int = 5
    pool_size: int = 24
    floor: float = 0.05
    fit_share: float = 0.6
    epsilon: float = 0.5
    temperature: float = 0.1
    swap_within: float = 0.0

    @property
    def policy(self) -> str:
        """The rule with its constants, as the log names it: a draw can be computed again from the log alone."""
        values = zip(fields(self), astuple(self), strict=True)
        # What is off goes unnamed, so that the draws of logs from before it stay the same.
        named = (f"{each.name}={value!r}" for each, value in values if each.name != "swap_within" or value)
        return " ".join([RULE, *named])

    @classmethod
    def of_policy(cls, policy: str) -> ReserveSettings:
        """The constants that `policy` names. ValueError if it is of another rule than this one."""
        rule, *constants = policy.split(" ")
        if rule != RULE:
            raise ValueError(f"exploration policy {policy!r} is not of the rule {RULE}")
        given = dict(each.split("=", 1) for each in constants)
        types = {each.name: type(value) for each, value in zip(fields(cls), astuple(cls()), strict=True)}
        return cls(**{name: types[name](text) for name, text in given.items()})


def default_slots(max_items: int) -> int:
    """How many slots are kept when the request does not say: none below 6 items, one from 6, two from 12."""
    return 0 if max_items < 6 else 1 if max_items < 12 else 2


def least_fit(settings: ReserveSettings, last_ranked_fit: float | None) -> float:
    """The task fit that a pool member needs; `last_ranked_fit` is None where nothing is ranked."""
    if last_ranked_fit is None:
        return settings.floor
    return max(settings.floor, settings.fit_share * last_ranked_fit)


@dataclass(frozen=True, slots=True)
class Draw:
    """The outcome: indices into the pool in the order drawn, and every member's inclusion propensity, shape (n,)."""

    drawn: tuple[int, ...]
    inclusion_propensity: Floats


def draw(
    fit: Floats, reported_sessions: Sequence[int], slots: int, chance: Callable[[str], float], settings: ReserveSettings
) -> Draw:
    """Draws up to `slots` (1 or 2) members from the pool.

    `fit` holds the task fits, shape (n,). Two strata by reported sessions: none, and some. `chance(label)` gives a
    number in [0, 1) that depends on the packet and the label alone.
    """
    new = [index for index, count in enumerate(reported_sessions) if count == 0]
    known = [index for index, count in enumerate(reported_sessions) if count > 0]
    filled = [np.array(stratum) for stratum in (new, known) if stratum]
    propensity = np.zeros(len(fit))
    if not filled or slots == 0:
        return Draw((), propensity)
    within = [_mixture(fit[stratum], settings) for stratum in filled]
    if slots == 1:
        share = 1.0 / len(filled)
        for stratum, g in zip(filled, within, strict=True):
            propensity[stratum] = share * g
        chosen = int(chance("stratum") * len(filled))
        return Draw((int(filled[chosen][_pick(within[chosen], chance("slot-0"))]),), propensity)
    if len(filled) == 2:
        for stratum, g in zip(filled, within, strict=True):
            propensity[stratum] = g
        picks = (_pick(g, chance(f"slot-{slot}")) for slot, g in enumerate(within))
        return Draw(tuple(int(stratum[pick]) for stratum, pick in zip(filled, picks, strict=True)), propensity)
    return _two_from_one(filled[0], within[0], chance, propensity)


def inclusion_propensity(
    fit: Floats, reported_sessions: Sequence[int], slots: int, settings: ReserveSettings
) -> Floats:
    """Every member's probability of being drawn, shape (n,), as `draw` gives it."""
    return draw(fit, reported_sessions, slots, lambda _: 0.0, settings).inclusion_propensity


def _two_from_one(stratum: np.ndarray, g: Floats, chance: Callable[[str], float], propensity: Floats) -> Draw:
    """Both slots fall to one stratum: one after the other, without replacement."""
    first = _pick(g, chance("slot-0"))
    if len(stratum) == 1:
        propensity[stratum] = 1.0
        return Draw((int(stratum[0]),), propensity)
    left = g.copy()
    left[first] = 0.0
    second = _pick(left / left.sum(), chance("slot-1"))
    if len(stratum) == 2:
        propensity[stratum] = 1.0
    else:
        # pi_i = g_i + sum over j != i of g_j * g_i / (1 - g_j)
        after = g / (1.0 - g)
        propensity[stratum] = g * (1.0 + after.sum() - after)
    return Draw((int(stratum[first]), int(stratum[second])), propensity)


def _mixture(fit: Floats, settings: ReserveSettings) -> Floats:
    """g_i = eps / |L| + (1 - eps) softmax(fit / T): good fits first, yet no member without a chance."""
    scaled = fit / settings.temperature
    soft = np.exp(scaled - scaled.max())
    mixed: Floats = settings.epsilon / len(fit) + (1.0 - settings.epsilon) * soft / soft.sum()
    return mixed


def _pick(probabilities: Floats, u: float) -> int:
    """The index whose stretch of [0, 1) holds u; entries of probability 0 are never picked."""
    index = int(probabilities.cumsum().searchsorted(u, side="right"))
    if index >= len(probabilities) or probabilities[index] == 0.0:  # the cumulated sum may end an ulp below 1
        index = int(np.flatnonzero(probabilities)[-1])
    return index


def chance_of(salt: bytes, packet_id: str, policy: str) -> Callable[[str], float]:
    """A source of numbers in [0, 1): a keyed hash of packet, label and policy, so that a draw can be replayed."""

    def chance(label: str) -> float:
        message = f"{packet_id}\n{label}\n{policy}".encode()
        digest = hashlib.blake2b(message, key=salt[:64], digest_size=8).digest()
        return (int.from_bytes(digest, "big") >> 11) / (1 << 53)

    return chance


@dataclass(frozen=True, slots=True)
class Places:
    """Who stands where: `drawn` are the places (from 0) of the drawn, in their order; `probability` by place; `swapped`
    says that the first two changed places."""

    drawn: tuple[int, ...]
    probability: tuple[float, ...]
    swapped: bool = False


def place(n: int, k: int, chance: Callable[[str], float]) -> Places:
    """Gives the k drawn of n memories distinct places, uniformly among the last max(k, n - 2).

    `probability[p]` is q of whichever memory stands at place p: for a drawn one 1 / (number of open places); for the
    others the probability that their turn in the order comes to stand at p.
    """
    if k == 0:
        return Places((), (1.0,) * n)
    window = max(k, n - 2)
    first = n - window
    open_places = list(range(first, n))
    taken = tuple(open_places.pop(int(chance(f"place-{i}") * len(open_places))) for i in range(k))
    return Places(taken, (1.0,) * first + _chances(window, tuple(at - first for at in taken)))


@lru_cache(maxsize=4_096)
def _chances(window: int, taken: tuple[int, ...]) -> tuple[float, ...]:
    """By position in the window: for a drawn one 1 / window, for another how probable it is that, among all ways to
    choose as many positions, so many drawn ones stand before it."""
    k = len(taken)
    ways = math.comb(window, k)
    chances = []
    before = 0
    for position in range(window):
        if position in taken:
            chances.append(1.0 / window)
            before += 1
        else:
            chances.append(math.comb(position, before) * math.comb(window - position - 1, k - before) / ways)
    return tuple(chances)
