"""Which model does what, read off the history of roles; and whether the gates let a model take one. Pure.

The history is only added to. The latest event of a role says who has it, so a promotion or the way back is one row.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from sidecar.domain import Micros
from sidecar.weights.artifact import Provenance

SETTINGS = ""
"""The version that stands for the weights of the settings, which serve where no model does."""

_OVERRULE = "; gates.json says why. A reason overrules them (`promote --force REASON`)"


class Role(StrEnum):
    """What a model is used for."""

    ACTIVE = "active"
    SHADOW = "shadow"
    CANARY = "canary"
    RETIRED = "retired"


class Action(StrEnum):
    """How a role came to a model."""

    PROMOTED = "promoted"
    FORCED = "forced"
    ROLLED_BACK = "rolled_back"
    STOPPED = "stopped"


class Outcome(StrEnum):
    """How an attempt to change what a model is used for ended."""

    PROMOTED = "promoted"
    ROLLED_BACK = "rolled_back"
    STOPPED = "stopped"
    GATED = "gated"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class RoleEvent:
    """From `time` on, `version` has `role`; SETTINGS for none. `share` is a canary's, `reason` a person's words."""

    time: Micros
    role: Role
    version: str
    action: Action
    share: float = 0.0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Standing:
    """Who has which role. `line` are the versions that were active, so that each goes back to the one before it; the
    last serves. Never empty."""

    line: tuple[str, ...] = (SETTINGS,)
    canary: str = SETTINGS
    share: float = 0.0
    shadow: str = SETTINGS

    @property
    def active(self) -> str:
        """The version that serves."""
        return self.line[-1]

    def role_of(self, version: str) -> Role:
        """What a model is used for."""
        of = {self.shadow: Role.SHADOW, self.canary: Role.CANARY, self.active: Role.ACTIVE}
        return of.get(version, Role.RETIRED)


def standing(events: Iterable[RoleEvent]) -> Standing:
    """What a history, oldest first, comes to. A rollback leads along the line and not back and forth: who goes back
    from C to B and back again is at what served before B."""
    line = [SETTINGS]
    canary, share, shadow = SETTINGS, 0.0, SETTINGS
    for event in events:
        match event.role:
            case Role.CANARY:
                canary, share = event.version, event.share
            case Role.SHADOW:
                shadow = event.version
            case _ if event.action is Action.ROLLED_BACK and event.version in line:
                while line[-1] != event.version:
                    line.pop()
            case _ if event.version != line[-1]:
                line.append(event.version)
    return Standing(tuple(line), canary, share, shadow)


def base_warning(base: str, serving: str) -> str:
    """What to know of a model before it takes the place of `serving`, where its gates compared it with `base`; "" if
    these are the same weights."""
    if base == serving:
        return ""
    return (
        f"warning: {serving} serves, and the gates compared this model with {base}, which it started from: nothing "
        "says that it ranks better than what it replaces. Compare them with `memory-ranker evaluate MODEL --against "
        f"{serving}`, or train from what serves"
    )


def gate_fault(provenance: Provenance, role: Role, *, by_person: bool, is_forced: bool) -> str:
    """Why the gates keep a model from a role that serves; "" if they do not. A shadow changes no answer, so it may be
    anything. No reason is good enough to let a preview serve: it was fitted without any gate."""
    if role not in (Role.ACTIVE, Role.CANARY):
        return ""
    if provenance.preview:
        return "it is a preview, fitted without gates and caps: it can be a shadow, and never serve; train without it"
    if is_forced:
        return ""
    gates = provenance.gates
    if gates["train"] != "passed":
        return f"its training gates were {gates['train']}{_OVERRULE}"
    match gates["promote"]:
        case "automatic":
            return ""
        case "person" if by_person:
            return ""
        case "person":
            return "its gates leave it to a person: read its report, and say that you have decided (`promote --yes`)"
        case found:
            return f"its promotion gates were {found}{_OVERRULE}"
