"""Which weights serve whom, and by which names others may be asked for."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sidecar.errors import UnknownWeightsError
from sidecar.weights.artifact import Artifact
from sidecar.weights.linear import Weights
from sidecar.weights.presets import PRESETS


@dataclass(frozen=True, slots=True)
class AtWork:
    """The models at work, all verified. None: no model has that role; without an active one the settings' serve."""

    active: Artifact | None = None
    canary: Artifact | None = None
    share: float = 0.0
    shadow: Artifact | None = None

    @property
    def identity(self) -> str:
        """Changes with anything that changes a score; "" without a model."""
        parts = []
        for model, share in ((self.active, 1.0), (self.canary, self.share)):
            if model is not None:
                own = [(name, each.identity) for name, each in sorted(model.namespaces.items())]
                parts.append((share, model.weights.identity, own))
        return repr(parts) if parts else ""


class WeightsHolder:
    """The weights by name, and those at work. A swap is one assignment, so a Rank sees either the old or the new."""

    def __init__(self, active: str = "default", own: Mapping[str, Weights] | None = None) -> None:
        self._by_name = {**PRESETS, **(own or {})}
        self._at_work = AtWork()
        self._find: Callable[[str], Artifact | None] | None = None
        self._base = self.named(active)

    def consult(self, find: Callable[[str], Artifact | None]) -> None:
        """Looks models that are asked for by version up with `find`, which may raise ModelRefusedError."""
        self._find = find

    @property
    def base(self) -> Weights:
        """The settings' weights, which serve where no model does."""
        return self._base

    @property
    def at_work(self) -> AtWork:
        """The models at work."""
        return self._at_work

    @property
    def active(self) -> Weights:
        """The weights that serve when a request names none, in namespaces without their own."""
        model = self._at_work.active
        return self._base if model is None else model.weights

    def active_for(self, namespace: str) -> Weights:
        """The weights that serve a namespace when a request names none."""
        model = self._at_work.active
        return self._base if model is None else model.for_namespace(namespace)

    def serving(self, namespace: str, session: str, salt: bytes) -> tuple[Weights, Weights | None]:
        """The weights that serve a session, which is the canary's for its share of all sessions, and the shadow's.

        `session` tells the sessions of a namespace apart; "" for none, which no canary serves. A session is served by
        the same weights as long as the canary stays, and a larger share keeps those who were in it.
        """
        work = self._at_work
        shadow = None if work.shadow is None else work.shadow.for_namespace(namespace)
        canary = work.canary
        if canary is not None and session and chance(salt, canary.version, namespace, session) < work.share:
            return canary.for_namespace(namespace), shadow
        return (self._base if work.active is None else work.active.for_namespace(namespace)), shadow

    @property
    def names(self) -> tuple[str, ...]:
        """The names that a request may ask for, sorted; models come on top, by version."""
        return tuple(sorted(self._by_name))

    def named(self, name: str, namespace: str = "") -> Weights:
        """The weights of that name, or of the model of that version, as they score in a namespace.

        Raises UnknownWeightsError with the nearest name and the list, ModelRefusedError if the model is damaged.
        """
        found = self.find(name, namespace)
        if found is None:
            near = difflib.get_close_matches(name, self._by_name, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            models = ", and the versions that `memory-ranker models` lists" if self._find else ""
            raise UnknownWeightsError(
                f"weights: there are none named {name!r}.{hint} Known: {', '.join(self.names)}{models}.", weights=name
            )
        return found

    def find(self, name: str, namespace: str = "") -> Weights | None:
        """The same, or None. Raises ModelRefusedError if the model is damaged."""
        if (found := self._by_name.get(name)) is not None:
            return found
        work = self._at_work
        for model in (work.active, work.canary):
            if model is not None and model.version == name:
                return model.for_namespace(namespace)
        model = self._find(name) if self._find else None
        return None if model is None else model.for_namespace(namespace)

    def identity_of(self, at_work: AtWork) -> str:
        """Changes with anything that changes a score while these models are at work."""
        return f"{self._base.identity}{at_work.identity}" if at_work.identity else self._base.identity

    def swap(self, at_work: AtWork) -> None:
        """Puts verified models to work."""
        self._at_work = at_work


def chance(salt: bytes, version: str, namespace: str, session: str) -> float:
    """A number in [0, 1) for a session, by a keyed hash: even over sessions, and another with each canary."""
    parts = (text.encode() for text in ("canary", version, namespace, session))
    message = b"".join(len(part).to_bytes(4, "big") + part for part in parts)
    digest = hashlib.blake2b(message, key=salt[:64], digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 11) / (1 << 53)
