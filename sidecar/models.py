"""Models on their way to work and back: verified, let through by the gates, placed in the registry, swapped in.

A promotion is one transaction, and what serves changes after its commit and before anyone hears of the new score
versions: a process that is killed has the old model or the new one, and no call sees half of either. Whatever does not
verify never serves; what served before goes on, and `problems` says why.
"""

from __future__ import annotations

import datetime
import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from sidecar.domain import Micros
from sidecar.errors import ModelGatedError, ModelNotFoundError, ModelRefusedError, Violations
from sidecar.store.models import ModelRow
from sidecar.store.store import Store
from sidecar.weights import WeightsHolder
from sidecar.weights.archive import files_of
from sidecar.weights.artifact import Artifact, verify
from sidecar.weights.holder import AtWork
from sidecar.weights.roles import (
    SETTINGS,
    Action,
    Outcome,
    Role,
    RoleEvent,
    Standing,
    base_warning,
    gate_fault,
    standing,
)

logger = logging.getLogger(__name__)

MOST_KEPT = 16
"""Models that were asked for by version and are kept ready."""


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A model in the registry as it stands. `event` is the latest of its own, None if it never had a role; `problem`
    says why it cannot serve."""

    row: ModelRow
    role: Role
    share: float
    event: RoleEvent | None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Promotion:
    """What a model is wanted for. `by_person`: someone has read the report and decides; `force_reason`: overrules the
    gates, which is kept in the history."""

    role: Role = Role.ACTIVE
    share: float = 0.0
    force_reason: str = ""
    by_person: bool = False
    validate_only: bool = False


class Models:
    """The registry at work. Safe for any thread; what changes roles comes one after the other."""

    def __init__(
        self,
        store: Store,
        weights: WeightsHolder,
        clock: Callable[[], Micros],
        identity: Callable[[str], str] | None = None,
        on_outcome: Callable[[Outcome], None] = lambda _: None,
    ) -> None:
        """`identity` names what ranks, given `WeightsHolder.identity_of`; `on_outcome` hears how each attempt ended,
        and REFUSED for a model of the registry that cannot serve at the start."""
        self._store = store
        self._weights = weights
        self._clock = clock
        self._identity = identity
        self._on_outcome = on_outcome
        self._changing = threading.Lock()
        self._kept: dict[str, Artifact] = {}
        self._unfit: dict[str, str] = {}
        self._refusal = ""

    def start(self) -> None:
        """Puts the registry's models to work. One that does not verify any more does not serve: the one before it, or
        the settings' weights, do. The registry stays as it is."""
        stands = self._standing()
        active = None
        for version in reversed(stands.line):
            if version == SETTINGS or (active := self._verified(version)) is not None:
                break
        canary, shadow = (self._verified(each) if each else None for each in (stands.canary, stands.shadow))
        self._weights.swap(AtWork(active, canary, stands.share if canary else 0.0, shadow))
        self._weights.consult(self.find)

    def problems(self) -> list[str]:
        """What keeps models from serving, in words with what to do."""
        serving = self._weights.active.version
        found = [
            f"the model {version} is in the registry and cannot serve: {why}. {serving} serves; load it again with"
            " `memory-ranker promote PATH`, or go back for good with `memory-ranker rollback`"
            for version, why in self._unfit.items()
        ]
        return [*found, *([self._refusal] if self._refusal else [])]

    def find(self, version: str) -> Artifact | None:
        """A registered model, verified. None if there is none. Raises ModelRefusedError."""
        kept = self._kept.get(version)
        if kept is None:
            found = self._store.find_model(version)
            if found is None:
                return None
            kept = verify(files_of(found[1]))
            if kept.version != version:
                raise ModelRefusedError([f"the registry holds {kept.version} under this version"])
            self._keep(kept)
        return kept

    def archive(self, version: str) -> bytes:
        """The files of a registered model, as a tar archive, whatever state they are in. Raises ModelNotFoundError."""
        found = self._store.find_model(version)
        if found is None:
            raise _unknown(version)
        return found[1]

    def load(self, read: Callable[[], Mapping[str, bytes]], wanted: Promotion) -> tuple[ModelInfo, tuple[str, ...]]:
        """Verifies a model, whose files `read` gives by name, asks its gates and gives it a role, all or nothing.
        Returns it as it is now, and what was checked, in words.

        Raises ModelRefusedError, ModelGatedError or InvalidRequestError, after which what served before still serves.
        A model that is refused is a problem until another takes a role, unless it was only to be validated.
        """
        try:
            artifact = verify(read())
        except ModelRefusedError as error:
            if not wanted.validate_only:
                self._refused(error)
            raise
        return self._place(artifact, wanted, is_new=True)

    def give_role(self, version: str, wanted: Promotion) -> tuple[ModelInfo, tuple[str, ...]]:
        """The same for a model of the registry; role RETIRED stops it as canary or shadow. Raises ModelNotFoundError
        too."""
        try:
            artifact = self.find(version)
        except ModelRefusedError as error:
            if wanted.role is Role.RETIRED:
                return self._stop(version, wanted), ()
            if not wanted.validate_only:
                self._refused(error)
            raise
        if artifact is None:
            raise _unknown(version)
        if wanted.role is Role.RETIRED:
            return self._stop(version, wanted), artifact.checks
        return self._place(artifact, wanted, is_new=False)

    def rollback(self, version: str, reason: str) -> ModelInfo:
        """Goes back to a version that has served, or for "" to the one before the one that serves; where that is none,
        to the settings' weights. One event, and nothing else, is written.

        Raises ModelNotFoundError, and ModelRefusedError if what would serve does not verify.
        """
        with self._changing:
            stands = self._standing()
            if version == self._weights.base.version:
                target = SETTINGS
            elif version:
                target = version
            elif len(stands.line) < 2:
                raise ModelNotFoundError(
                    f"version: there is no model before {self._weights.active.version}; nothing was promoted since"
                )
            else:
                target = stands.line[-2]
            served = {event.version for event in self._store.model_events() if event.role is Role.ACTIVE}
            if target and target not in served:
                if target in self._weights.names:
                    raise ModelNotFoundError(
                        f"version: {target!r} are no model's weights; the setting weights = {target!r} puts them to"
                        " work from the server's next start on, where no model serves"
                    )
                if self._store.find_model(target) is None:
                    raise _unknown(target)
                raise _unknown(target, "that has served; put it to work with `memory-ranker promote`")
            artifact = None
            if target:
                try:
                    artifact = self.find(target)
                except ModelRefusedError as error:
                    self._refused(error)
                    raise
                if artifact is None:
                    raise _unknown(target)
            event = RoleEvent(self._clock(), Role.ACTIVE, target, Action.ROLLED_BACK, reason=reason)
            self._change(None, [event], replace(self._weights.at_work, active=artifact))
            logger.warning("rolled back to %s: %s", self._weights.active.version, reason or "no reason given")
            self._on_outcome(Outcome.ROLLED_BACK)
            return self.info(target)

    def page(self, before: int | None, limit: int) -> list[ModelInfo]:
        """At most `limit` models that came in before number `before`, newest first."""
        stands, events = self._standing(), self._store.model_events()
        return [self._info(row, stands, events) for row in self._store.list_models(before, limit)]

    def events(self) -> list[RoleEvent]:
        """The whole history of roles, oldest first."""
        return self._store.model_events()

    def info(self, version: str) -> ModelInfo:
        """A model as it stands; SETTINGS is the settings' weights, as if a model. Raises ModelNotFoundError."""
        found = self._store.find_model(version)
        stands, events = self._standing(), self._store.model_events()
        if found is not None:
            return self._info(found[0], stands, events)
        base = self._weights.base
        if version != SETTINGS:
            raise _unknown(version)
        role = Role.ACTIVE if stands.active == SETTINGS else Role.RETIRED
        return ModelInfo(
            ModelRow(base.version, base.form, 0, 0, "", preview=False, gate=""), role, 0.0, _last(events, SETTINGS)
        )

    def _place(self, artifact: Artifact, wanted: Promotion, *, is_new: bool) -> tuple[ModelInfo, tuple[str, ...]]:
        version, provenance = artifact.version, artifact.provenance
        fault = gate_fault(provenance, wanted.role, by_person=wanted.by_person, is_forced=bool(wanted.force_reason))
        gates = f"gates: training {provenance.gates['train']}, promotion {provenance.gates['promote']}"
        checks = (*artifact.checks, gates + (f"; {fault}" if fault else ""))
        with self._changing:
            serving = self._weights.active.version
            if wanted.role in (Role.ACTIVE, Role.CANARY) and version != serving:
                warning = base_warning(provenance.base_version, serving)
                checks = (*checks, warning) if warning else checks
            stands = self._standing()
            known = self._store.find_model(version)
            row = (
                known[0]
                if known is not None
                else ModelRow(version, artifact.form, _micros(provenance.create_time), 0, "", preview=False, gate="")
            )
            row = replace(
                row,
                load_time=row.load_time or self._clock(),
                base_version=provenance.base_version,
                preview=provenance.preview,
                gate=provenance.gates["promote"],
            )
            if wanted.validate_only:
                return ModelInfo(row, stands.role_of(version), 0.0, None, fault), checks
            if fault:
                self._on_outcome(Outcome.GATED)
                raise ModelGatedError(f"{version}: {fault}", version=version)
            if wanted.role is not Role.ACTIVE and version == stands.active:
                bad = Violations()
                bad.add("role", f"is {wanted.role}; {version} serves, and a model has one role: roll back first")
                bad.raise_if_any()
            action = Action.FORCED if wanted.force_reason else Action.PROMOTED
            share = wanted.share if wanted.role is Role.CANARY else 0.0
            event = RoleEvent(self._clock(), wanted.role, version, action, share, wanted.force_reason)
            work = self._weights.at_work
            events = [event]
            # A model has one role: what it was beside it ends.
            if version == stands.canary and wanted.role is not Role.CANARY:
                events.append(RoleEvent(event.time, Role.CANARY, SETTINGS, Action.STOPPED))
                work = replace(work, canary=None, share=0.0)
            if version == stands.shadow and wanted.role is not Role.SHADOW:
                events.append(RoleEvent(event.time, Role.SHADOW, SETTINGS, Action.STOPPED))
                work = replace(work, shadow=None)
            match wanted.role:
                case Role.CANARY:
                    work = replace(work, canary=artifact, share=share)
                case Role.SHADOW:
                    work = replace(work, shadow=artifact)
                case _:
                    work = replace(work, active=artifact)
            self._keep(artifact)
            self._unfit.pop(version, None)
            self._change((row, artifact.archive) if is_new else None, events, work)
            self._refusal = ""
            if wanted.force_reason:
                logger.warning("%s is %s now, by force: %s", version, wanted.role, wanted.force_reason)
            else:
                logger.info("%s is %s now", version, wanted.role)
            self._on_outcome(Outcome.PROMOTED)
            return self.info(version), checks

    def _stop(self, version: str, wanted: Promotion) -> ModelInfo:
        with self._changing:
            stands = self._standing()
            role = stands.role_of(version)
            if role not in (Role.CANARY, Role.SHADOW):
                bad = Violations()
                way = "rollback ends it" if role is Role.ACTIVE else "there is nothing to stop"
                bad.add("role", f"is retired, which stops a canary or a shadow; {version} is {role}: {way}")
                bad.raise_if_any()
            if not wanted.validate_only:
                event = RoleEvent(self._clock(), role, SETTINGS, Action.STOPPED, reason=wanted.force_reason)
                work = self._weights.at_work
                is_canary = role is Role.CANARY
                after = replace(work, canary=None, share=0.0) if is_canary else replace(work, shadow=None)
                self._unfit.pop(version, None)
                self._change(None, [event], after)
                logger.info("%s is no %s any more", version, role)
                self._on_outcome(Outcome.STOPPED)
            return self.info(version)

    def _change(self, model: tuple[ModelRow, bytes] | None, events: list[RoleEvent], after: AtWork) -> None:
        before = self._weights.at_work
        is_other = after.identity != before.identity
        identity = None
        if is_other:
            # Without an identity of its own the next start finds that what ranks is another, and moves all on again.
            identity = self._identity(self._weights.identity_of(after)).encode() if self._identity else b""
        try:
            self._store.place_model(model, events, identity, lambda: self._weights.swap(after))
        except BaseException:
            self._weights.swap(before)
            raise

    def _standing(self) -> Standing:
        return standing(self._store.model_events())

    def _info(self, row: ModelRow, stands: Standing, events: list[RoleEvent]) -> ModelInfo:
        role = stands.role_of(row.version)
        share = stands.share if role is Role.CANARY else 0.0
        return ModelInfo(row, role, share, _last(events, row.version), self._unfit.get(row.version, ""))

    def _verified(self, version: str) -> Artifact | None:
        try:
            artifact = self.find(version)
        except ModelRefusedError as error:
            why = "; ".join(error.faults)
        else:
            if artifact is not None:
                return artifact
            why = "its files are gone"
        self._unfit[version] = why
        self._on_outcome(Outcome.REFUSED)
        logger.error("the model %s cannot serve: %s", version, why)
        return None

    def _refused(self, error: ModelRefusedError) -> None:
        serving = self._weights.active.version
        self._refusal = f"the last model that was offered was refused: {'; '.join(error.faults)}. {serving} serves on"
        self._on_outcome(Outcome.REFUSED)
        logger.error("%s", self._refusal)

    def _keep(self, artifact: Artifact) -> None:
        kept = {**self._kept, artifact.version: artifact}
        while len(kept) > MOST_KEPT:
            kept.pop(next(iter(kept)))
        self._kept = kept


def _unknown(version: str, which: str = "in the registry; `memory-ranker models` lists them") -> ModelNotFoundError:
    return ModelNotFoundError(f"version: there is no model {version!r} {which}", version=version)


def _last(events: list[RoleEvent], version: str) -> RoleEvent | None:
    return next((each for each in reversed(events) if each.version == version and each.action), None)


def _micros(time: str) -> Micros:
    return round(datetime.datetime.fromisoformat(time).timestamp() * 1e6)
