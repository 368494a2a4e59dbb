"""What an operator does about models: load, list, get, and go back."""

from __future__ import annotations

from pathlib import Path

import grpc
from memoryranker.v1 import admin_pb2, admin_pb2_grpc

from sidecar.errors import Violations
from sidecar.models import ModelInfo, Models, Promotion
from sidecar.rpc.outgoing import set_time
from sidecar.rpc.paging import make_token, read_token
from sidecar.rpc.validation import check_text
from sidecar.weights.archive import files_of, read_files
from sidecar.weights.roles import Action, Role, RoleEvent

PATH_BYTES = 4_096
VERSION_BYTES = 256
REASON_BYTES = 1_024
PAGE, MOST_IN_PAGE = 100, 1_000
EVENTS = 100
_LIST = b"models"
_ROLES = {each: getattr(admin_pb2, f"MODEL_ROLE_{each.name}") for each in Role}
_WANTED = {number: role for role, number in _ROLES.items()} | {admin_pb2.MODEL_ROLE_UNSPECIFIED: Role.ACTIVE}
_ACTIONS = {each: getattr(admin_pb2, f"MODEL_ACTION_{each.name}") for each in Action}


class ModelAdmin(admin_pb2_grpc.AdminServiceServicer):
    """The part of AdminService that is about models."""

    _models: Models

    def ListModels(
        self, request: admin_pb2.ListModelsRequest, context: grpc.ServicerContext
    ) -> admin_pb2.ListModelsResponse:
        """Newest first, with the history on the first page."""
        bad = Violations()
        limit = request.page_size if request.HasField("page_size") else PAGE
        if not 1 <= limit <= MOST_IN_PAGE:
            bad.add("page_size", f"is {limit}; must be 1 to {MOST_IN_PAGE:,}")
        last = read_token(bad, _LIST, request.page_token)
        bad.raise_if_any()
        found = self._models.page(int(last) if last else None, limit + 1)
        response = admin_pb2.ListModelsResponse(models=[write_model(each) for each in found[:limit]])
        if len(found) > limit:
            response.next_page_token = make_token(_LIST, str(found[limit - 1].row.number))
        if not request.page_token:
            response.events.extend(_event(each) for each in reversed(self._models.events()[-EVENTS:]))
        return response

    def GetModel(self, request: admin_pb2.GetModelRequest, context: grpc.ServicerContext) -> admin_pb2.GetModelResponse:
        """Its files as they were loaded."""
        bad = Violations()
        check_text(bad, "version", request.version, 1, VERSION_BYTES)
        bad.raise_if_any()
        archive = self._models.archive(request.version)
        return admin_pb2.GetModelResponse(model=write_model(self._models.info(request.version)), archive=archive)

    def LoadModel(
        self, request: admin_pb2.LoadModelRequest, context: grpc.ServicerContext
    ) -> admin_pb2.LoadModelResponse:
        """All of it or nothing."""
        return load(self._models, request)

    def RollbackModel(
        self, request: admin_pb2.RollbackModelRequest, context: grpc.ServicerContext
    ) -> admin_pb2.RollbackModelResponse:
        """One event in the history."""
        return roll_back(self._models, request)


def load(models: Models, request: admin_pb2.LoadModelRequest) -> admin_pb2.LoadModelResponse:
    """What LoadModel does, also where no server runs."""
    wanted = read_promotion(request)
    if request.version:
        model, checks = models.give_role(request.version, wanted)
    else:
        model, checks = models.load(lambda: _files(request), wanted)
    return admin_pb2.LoadModelResponse(model=write_model(model), checks=checks)


def roll_back(models: Models, request: admin_pb2.RollbackModelRequest) -> admin_pb2.RollbackModelResponse:
    """What RollbackModel does, also where no server runs."""
    bad = Violations()
    check_text(bad, "version", request.version, 0, VERSION_BYTES)
    check_text(bad, "reason", request.reason, 0, REASON_BYTES)
    bad.raise_if_any()
    return admin_pb2.RollbackModelResponse(model=write_model(models.rollback(request.version, request.reason)))


def read_promotion(request: admin_pb2.LoadModelRequest) -> Promotion:
    """What a model is wanted for. Raises InvalidRequestError with every violation."""
    bad = Violations()
    given = [name for name in ("path", "archive", "version") if getattr(request, name)]
    if len(given) != 1:
        bad.add("path", f"and archive and version: {len(given)} of them are set; set exactly one")
    check_text(bad, "path", request.path, 0, PATH_BYTES)
    check_text(bad, "version", request.version, 0, VERSION_BYTES)
    check_text(bad, "force_reason", request.force_reason, 0, REASON_BYTES)
    if request.path and not Path(request.path).is_absolute():
        bad.add("path", f"is {request.path!r}; must be absolute, for it is the server that reads there")
    role = _WANTED.get(request.role)
    if role is None:
        bad.add("role", f"is {request.role}; must be active, shadow, canary or retired")
    if role is Role.RETIRED and not request.version:
        bad.add("role", "is retired, which stops a model of the registry: name it by version")
    if role is Role.CANARY and not 0.0 < request.canary_share < 1.0:
        bad.add("canary_share", f"is {request.canary_share!r}; must be above 0 and below 1 for a canary")
    elif role is not Role.CANARY and request.canary_share:
        bad.add("canary_share", f"is {request.canary_share!r}; only a canary has a share")
    bad.raise_if_any()
    return Promotion(
        role=role or Role.ACTIVE,
        share=request.canary_share,
        force_reason=request.force_reason,
        by_person=request.by_person,
        validate_only=request.validate_only,
    )


def write_model(model: ModelInfo) -> admin_pb2.Model:
    """A model as the API shows it."""
    row, event = model.row, model.event
    message = admin_pb2.Model(
        version=row.version,
        role=_ROLES[model.role],
        canary_share=model.share,
        form=row.form,
        base_version=row.base_version,
        preview=row.preview,
        promote_gate=row.gate,
        problem=model.problem,
    )
    if row.create_time:
        set_time(message.create_time, row.create_time)
    if row.load_time:
        set_time(message.load_time, row.load_time)
    if event is not None:
        set_time(message.role_time, event.time)
        if event.action is Action.FORCED:
            message.force_reason = event.reason
    return message


def _event(event: RoleEvent) -> admin_pb2.ModelEvent:
    message = admin_pb2.ModelEvent(
        role=_ROLES[event.role],
        version=event.version,
        action=_ACTIONS[event.action],
        canary_share=event.share,
        reason=event.reason,
    )
    set_time(message.time, event.time)
    return message


def _files(request: admin_pb2.LoadModelRequest) -> dict[str, bytes]:
    return read_files(Path(request.path)) if request.path else files_of(request.archive)
