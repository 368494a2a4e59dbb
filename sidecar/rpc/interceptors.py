"""What every call goes through: the right threads, a refusal when they are all taken, and errors made into statuses.

grpcio asks for a handler when a call comes in, and runs it on the thread pool that the handler's function names in
`experimental_thread_pool`; both happen here and nowhere else.
"""

from __future__ import annotations

import logging
import secrets
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import grpc
from google.protobuf.message import DecodeError
from google.rpc import status_pb2

from sidecar import __version__
from sidecar.errors import DeadlineExceededError, NotReadyError, OverloadedError, RankerError, Violations
from sidecar.observe.observer import Observer
from sidecar.rpc.pools import Pool
from sidecar.rpc.status import abort, code_name, make_status, reason_of, status_of

logger = logging.getLogger(__name__)

OUR_METHODS = "/memoryranker.v1."
EMBEDDING = frozenset(
    {"Rank", "ExplainMiss", "UpsertMemories", "UpdateMemory", "ScoreImportance", "ListPromotionCandidates"}
)
"""Calls that may wait for an embedder. All others have threads of their own, so that it never holds up a report."""
LONG = frozenset({"Backup"})
"""Calls that take as long as the store is large: they run where streams do, and hold up none of the others."""
READING = frozenset({"ReportOutput"})
"""Calls that read up to a megabyte of text: seconds of work, for which no other report waits."""
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"


def deadline_check(context: grpc.ServicerContext) -> Callable[[], None]:
    """A function for between two stages: raises DeadlineExceededError once nobody waits for the answer any more."""

    def check() -> None:
        if not context.is_active() or context.time_remaining() == 0:
            raise DeadlineExceededError("the deadline passed, or the caller hung up; nothing more was done")

    return check


class Calls(grpc.ServerInterceptor):
    """Chooses a call's threads, turns its errors into statuses, and tells an observer what became of it."""

    def __init__(
        self, calls: Pool, short: Pool, reading: Pool, streams: Pool, watches: Pool, moments: Pool, observer: Observer
    ) -> None:
        self._observer = observer
        self._calls = calls
        self._reading = reading
        self._short = short
        self._streams = streams
        self._watches = watches
        self._moments = moments
        self._ready = False
        self._handlers: dict[str, Handler] = {}
        self._idle: set[grpc.ServicerContext] = set()
        self._is_over = False

    def set_ready(self) -> None:
        """From now on a method that is not found does not exist; before, its service is not there yet."""
        self._ready = True

    def end_idle(self) -> None:
        """Cuts off the streams of health and reflection, now and from now on: none of them would end by itself, and
        the server would wait for them as long as it waits at all."""
        self._is_over = True
        for context in tuple(self._idle):
            context.cancel()

    def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Handler | None],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        """The handler of one call; grpcio calls this on its one serving thread."""
        method = handler_call_details.method
        handler = self._handlers.get(method)
        if handler is None:
            inner = continuation(handler_call_details)
            if inner is None:
                if self._ready or not method.startswith(OUR_METHODS):
                    return None
                # Before its service is there, a name may be anything at all.
                return self._refusal(NotReadyError("the server is loading; ask again in a moment"), "other")
            handler = self._handlers[method] = self._wrapped(inner, method)
        pool = self._pool_of(handler)
        if pool.is_full:
            refused = OverloadedError(f"too many {pool.what} at a time; try again in a second")
            return self._refusal(refused, _name(method) if method.startswith(OUR_METHODS) else "other")
        return handler

    def _pool_of(self, handler: Handler) -> Pool:
        behaviour = handler.unary_unary or handler.unary_stream or handler.stream_stream or handler.stream_unary
        pool: Pool = getattr(behaviour, "experimental_thread_pool", self._calls)
        return pool

    def _wrapped(self, inner: Handler, method: str) -> Handler:
        """`inner` with errors mapped, on the threads of its sort."""
        ours = method.startswith(OUR_METHODS)
        read = inner.request_deserializer
        codec = (_reading(read) if ours else read, inner.response_serializer)
        answering, streaming = (self._answering, self._streaming) if ours else (_passing, self._idling)
        if inner.unary_unary is not None:
            answer = answering(inner.unary_unary, method)
            if not ours:  # a check of health must be answered whatever calls there are
                answer.experimental_thread_pool = self._moments
            elif _name(method) in LONG:
                answer.experimental_thread_pool = self._streams
            elif _name(method) in READING:
                answer.experimental_thread_pool = self._reading
            elif _name(method) not in EMBEDDING:
                answer.experimental_thread_pool = self._short
            return grpc.unary_unary_rpc_method_handler(answer, *codec)
        if inner.stream_unary is not None:
            answer = answering(lambda requests, context: inner.stream_unary(_readable(requests), context), method)
            answer.experimental_thread_pool = self._streams
            return grpc.stream_unary_rpc_method_handler(answer, *codec)
        if inner.unary_stream is not None:
            stream = streaming(inner.unary_stream, method)
            # Of the others' only a watch of health is one.
            stream.experimental_thread_pool = self._streams if ours else self._watches
            return grpc.unary_stream_rpc_method_handler(stream, *codec)
        stream = streaming(inner.stream_stream, method)
        stream.experimental_thread_pool = self._streams
        return grpc.stream_stream_rpc_method_handler(stream, *codec)

    def _idling(self, inner: Any, _: str) -> Any:
        def idling(request: Any, context: grpc.ServicerContext, *more: Any) -> Any:
            self._idle.add(context)
            if not context.add_callback(lambda: self._idle.discard(context)):
                self._idle.discard(context)
            if self._is_over:
                context.cancel()
            return inner(request, context, *more)

        return idling

    def _answering(self, inner: Any, method: str) -> Any:
        observer, name = self._observer, _name(method)

        def answer(request: Any, context: grpc.ServicerContext) -> Any:
            started = time.perf_counter()
            try:
                response = inner(_read(request), context)
            except Exception as error:  # noqa: BLE001 - nothing but a status may leave; what is unexpected is logged
                status = _status(error, method)
            else:
                observer.called(name, "OK", time.perf_counter() - started)
                return response
            self._failed(name, status, started)
            abort(context, status)

        return answer

    def _streaming(self, inner: Any, method: str) -> Any:
        observer, name = self._observer, _name(method)

        def stream(request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
            started = time.perf_counter()
            try:
                yield from inner(_readable(request), context)
            except GeneratorExit:
                observer.called(name, "CANCELLED", time.perf_counter() - started)
                raise
            except Exception as error:  # noqa: BLE001 - as above
                status = _status(error, method)
            else:
                observer.called(name, "OK", time.perf_counter() - started)
                return
            self._failed(name, status, started)
            abort(context, status)

        return stream

    def _failed(self, name: str, status: status_pb2.Status, started: float) -> None:
        self._observer.called(name, code_name(status), time.perf_counter() - started)
        self._observer.refused(reason_of(status))

    def _refusal(self, error: RankerError, name: str) -> Handler:
        """A handler that refuses the call, on a thread that is never long taken."""
        status = status_of(error)
        self._failed(name, status, time.perf_counter())

        def refuse(_: Any, context: grpc.ServicerContext) -> Any:
            abort(context, status)

        refuse.experimental_thread_pool = self._moments  # type: ignore[attr-defined]
        return grpc.stream_unary_rpc_method_handler(refuse)


def _name(method: str) -> str:
    return method.rpartition("/")[2]


class _Unreadable:
    """Stands for a request that is no message of its kind."""


def _reading(inner: Any) -> Callable[[bytes], Any]:
    """Reads a request; grpcio itself would answer INTERNAL to one that it cannot read, and blame the server. In a
    stream it would besides leave the handler waiting for ever for the next one."""

    def read(data: bytes) -> Any:
        try:
            return inner(data)
        except DecodeError:
            return _Unreadable()

    return read


def _readable(request: Any) -> Any:
    """The request, or the stream of them. Raises as `_read`."""
    return map(_read, request) if isinstance(request, Iterator) else _read(request)


def _read(request: Any) -> Any:
    """The request. Raises InvalidRequestError if it is no message of its kind."""
    if isinstance(request, _Unreadable):
        bad = Violations()
        bad.add("request", "cannot be read: a text in it is not UTF-8, it nests too deep, or it is another message")
        bad.raise_if_any()
    return request


def _passing(inner: Any, _: str) -> Any:
    """A function of our own around another's, so that attributes set on it stay with this server."""

    def passing(*args: Any) -> Any:
        return inner(*args)

    return passing


def _status(error: Exception, method: str) -> status_pb2.Status:
    if isinstance(error, RankerError):
        return status_of(error)
    if isinstance(error, NotImplementedError):
        message = f"{method[1:]} is not built yet in version {__version__}"
        return make_status(grpc.StatusCode.UNIMPLEMENTED, message, "NOT_BUILT")
    error_id = secrets.token_hex(8)
    # An exception's own words may quote a memory, so they are kept for those who asked for everything.
    frames = "".join(traceback.format_tb(error.__traceback__))
    logger.error("error %s in %s: %s\n%s", error_id, method, type(error).__qualname__, frames)
    logger.debug("error %s says: %s", error_id, error)
    message = f"the server failed at this call; its log says more under the error id {error_id}"
    return make_status(grpc.StatusCode.INTERNAL, message, "INTERNAL", {"error_id": error_id})
