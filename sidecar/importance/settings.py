"""How importance is scored: the weights of the five signals, by domain, the clamp, and the switch. Data and checks.

Numbers are those of the note importance-scorer unless it says nothing of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Any

from sidecar.errors import Faults, SettingsError

SIGNALS = ("content", "user", "access", "emotion", "context")
"""The five signals, in the order in which they are shown."""

SUM_TOLERANCE = 1e-6
COMMON = "common"
"""The name of the weights that are of no domain."""


class AccessForm(StrEnum):
    """How the sessions that used a memory become a number: by logarithm, or by the note's table of tiers."""

    LOGARITHM = "logarithm"
    TIERS = "tiers"


@dataclass(frozen=True, slots=True)
class SignalWeights:
    """What each signal counts, in [0, 1]; together 1."""

    content: float = 0.30
    user: float = 0.25
    access: float = 0.20
    emotion: float = 0.15
    context: float = 0.10

    def by_name(self) -> dict[str, float]:
        """The same as a mapping, in the order of SIGNALS."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


DOMAINS: Mapping[str, SignalWeights] = {
    # What code depends on is true until it is changed, and feelings say little of it.
    "code": SignalWeights(content=0.35, user=0.25, access=0.25, emotion=0.05, context=0.10),
    # Of what people say to each other, what moved them is what they come back to.
    "conversation": SignalWeights(content=0.25, user=0.25, access=0.15, emotion=0.25, context=0.10),
    # A decision is worth most while what it decides is being worked on.
    "decisions": SignalWeights(content=0.35, user=0.25, access=0.15, emotion=0.05, context=0.20),
}
"""Shipped beside the common weights, which have the name "". Set by hand."""


@dataclass(frozen=True, slots=True)
class ImportanceSettings:
    """Everything that can be set. `domains` are by name, the shipped ones and the user's own; `domain` names the one
    that counts where neither a call nor `namespaces`, by namespace, names one ("" and COMMON for `weights`)."""

    enabled: bool = True
    weights: SignalWeights = SignalWeights()
    lowest: float = 0.1
    highest: float = 1.0
    access_form: AccessForm = AccessForm.LOGARITHM
    domain: str = ""
    domains: Mapping[str, SignalWeights] = field(default_factory=lambda: DOMAINS)
    namespaces: Mapping[str, str] = field(default_factory=dict)
    emotion_namespaces: frozenset[str] = frozenset()

    def of_domain(self, domain: str = "", namespace: str = "") -> SignalWeights:
        """The weights of a domain, else of the namespace's, else of the one that is set. SettingsError for an unknown
        one."""
        name = domain or self.namespaces.get(namespace, self.domain)
        if name in ("", COMMON):
            return self.weights
        if name not in self.domains:
            raise SettingsError(
                f"importance_domain: there is none named {name!r}; known are {COMMON}, "
                f"{', '.join(sorted(self.domains))}"
            )
        return self.domains[name]


def with_domains(
    settings: ImportanceSettings, own: Mapping[str, Any], namespaces: Mapping[str, Any]
) -> ImportanceSettings:
    """The settings with domains of the user's own, where one of a shipped name takes its place, and whose weights each
    namespace takes. Raises SettingsError, also where `settings` names a domain that is not there."""
    faults = Faults()
    made = {}
    for name, table in own.items():
        with faults.noted():
            made[name] = _domain(name, table)
    found = replace(settings, domains={**DOMAINS, **made}, namespaces=dict(namespaces))
    if settings.domain not in own:
        with faults.noted():
            found.of_domain()
    known = (COMMON, *sorted({*DOMAINS, *own}))
    for namespace, name in namespaces.items():
        if name not in known:
            faults.found.append(
                f"[importance_namespaces]: {namespace} names the domain {name!r}; known are {', '.join(known)}"
            )
    faults.raise_if_any()
    return found


def _domain(name: str, table: Any) -> SignalWeights:
    """The weights of a table of the settings file: each in [0, 1], and together 1."""
    where = f"[importance.{name}]"
    if name == COMMON:
        raise SettingsError(f"{where}: the common weights are set by content_weight and others; choose a name")
    if not isinstance(table, Mapping):
        raise SettingsError(f"importance.{name} is not a table: write {where}, and the signals' weights below it")
    faults = Faults()
    for signal, value in table.items():
        if signal not in SIGNALS:
            faults.found.append(f"{where}: {signal!r} is no signal; the signals are {', '.join(SIGNALS)}")
        elif isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value <= 1.0:
            faults.found.append(f"{where}: {signal} is {value!r}; it must be a number from 0 to 1")
    faults.raise_if_any()
    weights = SignalWeights(**{signal: float(table.get(signal, 0.0)) for signal in SIGNALS})
    total = sum(weights.by_name().values())
    if abs(total - 1.0) > SUM_TOLERANCE:
        shown = ", ".join(f"{signal} {value:g}" for signal, value in weights.by_name().items())
        raise SettingsError(
            f"{where}: the weights of importance sum to {total:.12g} ({shown}); they must sum to 1. Change the others "
            "with the one you set"
        )
    return weights
