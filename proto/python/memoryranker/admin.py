"""The calls of AdminService as methods: the store, its models, and how they are fed."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Unpack

import grpc

from memoryranker.connection import Connection
from memoryranker.errors import from_rpc_error
from memoryranker.messages import LoadOptions, load_model_request, rollback_model_request
from memoryranker.v1 import admin_pb2


class AdminCalls(Connection):
    """What an operator asks of a server."""

    def export_log(self, namespace: str, *, timeout: float | None = None) -> Iterator[bytes]:
        """What is known of a namespace besides its memories: packets, reports, ratings and importances, as JSON Lines
        in pieces of whole lines. `timeout` is for all of it."""
        request = admin_pb2.ExportLogRequest(namespace=namespace)
        try:
            for piece in self._admin.ExportLog(request, timeout=timeout, wait_for_ready=self._wait_for_ready or None):
                yield piece.chunk
        except grpc.RpcError as error:
            raise from_rpc_error(error, self.address) from error

    def import_log(self, namespace: str, chunk: bytes, *, timeout: float | None = None) -> admin_pb2.ImportLogResponse:
        """Takes one piece of whole lines in that `export_log` gave, into any namespace. Rows that are there already
        change nothing, so it is safe to do again."""
        request = admin_pb2.ImportLogRequest(namespace=namespace, chunk=chunk)
        return self._call(self._admin.ImportLog, iter([request]), timeout)

    def status(self, namespace: str = "", *, timeout: float | None = None) -> admin_pb2.GetStatusResponse:
        """How the server stands, and one namespace."""
        return self._call(self._admin.GetStatus, admin_pb2.GetStatusRequest(namespace=namespace), timeout)

    def backup(self, path: str, *, timeout: float | None = None) -> admin_pb2.BackupResponse:
        """Has the server copy its store to the folder `path`, absolute, which must not exist or be empty. A copy that
        is not made by the deadline is given up."""
        return self._call(self._admin.Backup, admin_pb2.BackupRequest(path=path), timeout)

    def reindex(
        self, embedder: str = "", namespace: str = "", *, timeout: float | None = None
    ) -> Iterator[admin_pb2.ReindexResponse]:
        """Has every memory embedded again, and tells how far it is. Without `embedder` by the server's own, in place;
        vectors of another serve once the server is started with it. `timeout` is for all of it."""
        request = admin_pb2.ReindexRequest(namespace=namespace, embedder=embedder)
        try:
            yield from self._admin.Reindex(request, timeout=timeout, wait_for_ready=self._wait_for_ready or None)
        except grpc.RpcError as error:
            raise from_rpc_error(error, self.address) from error

    def audit(
        self,
        namespace: str = "",
        *,
        window: datetime.timedelta | None = None,
        importance: bool = False,
        timeout: float | None = None,
    ) -> admin_pb2.AuditResponse:
        """What is wrong with the feeding of a namespace, or of the whole store, and what to do; with `importance` also
        how importances moved, and whether some memories get lower ones for equal use."""
        request = admin_pb2.AuditRequest(namespace=namespace, importance=importance)
        if window is not None:
            request.window.FromTimedelta(window)
        return self._call(self._admin.Audit, request, timeout)

    def rescore(
        self, namespace: str = "", *, apply: bool = False, timeout: float | None = None
    ) -> admin_pb2.RescoreResponse:
        """How importances move by what was used; written only with `apply`."""
        return self._call(self._admin.Rescore, admin_pb2.RescoreRequest(namespace=namespace, apply=apply), timeout)

    def restore_scores(self, run_id: str, *, timeout: float | None = None) -> admin_pb2.RestoreScoresResponse:
        """Brings back the scores from before a rescore."""
        return self._call(self._admin.RestoreScores, admin_pb2.RestoreScoresRequest(run_id=run_id), timeout)

    def prune(
        self,
        namespace: str = "",
        *,
        older_than: datetime.timedelta | None = None,
        max_bytes: int | None = None,
        dry_run: bool = False,
        timeout: float | None = None,
    ) -> admin_pb2.PruneResponse:
        """Removes old packets and their reports."""
        request = admin_pb2.PruneRequest(namespace=namespace, max_bytes=max_bytes, dry_run=dry_run)
        if older_than is not None:
            request.older_than.FromTimedelta(older_than)
        return self._call(self._admin.Prune, request, timeout)

    def purge_namespace(self, namespace: str, *, timeout: float | None = None) -> admin_pb2.PurgeNamespaceResponse:
        """Removes a namespace with everything in it."""
        request = admin_pb2.PurgeNamespaceRequest(namespace=namespace, confirm_namespace=namespace)
        return self._call(self._admin.PurgeNamespace, request, timeout)

    def models(self, *, timeout: float | None = None) -> Iterator[admin_pb2.ListModelsResponse]:
        """The models in the registry, newest first, page by page; the first page has the history of roles too."""
        request = admin_pb2.ListModelsRequest()
        while True:
            page = self._call(self._admin.ListModels, request, timeout)
            yield page
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    def model(self, version: str, *, timeout: float | None = None) -> admin_pb2.GetModelResponse:
        """One model with its files as a tar archive."""
        return self._call(self._admin.GetModel, admin_pb2.GetModelRequest(version=version), timeout)

    def load_model(
        self, path: str = "", *, timeout: float | None = None, **options: Unpack[LoadOptions]
    ) -> admin_pb2.LoadModelResponse:
        """Has a model verified and gives it a role: one of `path` (as the server sees it), `archive` (the bytes of a
        tar archive) and `version` (of the registry)."""
        return self._call(self._admin.LoadModel, load_model_request(path, **options), timeout)

    def rollback_model(
        self, version: str = "", *, reason: str = "", timeout: float | None = None
    ) -> admin_pb2.RollbackModelResponse:
        """Goes back to a version that has served, by default the one before."""
        return self._call(self._admin.RollbackModel, rollback_model_request(version, reason), timeout)
