"""The HTTP port: /livez, /readyz and /metrics for probes and scrapers, and nothing else.

One thread serves all of it, so that a caller who sends slowly or never hangs up costs a socket for a few seconds and no
thread. An answer ends its connection.
"""

from __future__ import annotations

import asyncio
import logging
import re
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus

from sidecar.errors import ListenError

logger = logging.getLogger(__name__)

PATHS = ("/livez", "/readyz", "/metrics")
REQUEST_BYTES = 8_192
SECONDS = 5.0
"""How long a request may take to come in, and an answer to go out."""
CONNECTIONS = 64
"""For one more, the one that has been silent longest is hung up on, so that silence holds up no probe."""
ANY_HOST = re.compile("https?://[^/?]*", re.IGNORECASE)
"""What stands before the path in a request to a proxy, which is a request to us all the same (RFC 9112, 3.2.2)."""
PLAIN = "text/plain; charset=utf-8"


class HttpPort:
    """Serves from when it is made. It is alive as long as it answers, and ready when told so."""

    def __init__(self, address: str, metrics: Callable[[], bytes], metrics_type: str) -> None:
        """Binds HOST:PORT. Raises ListenError if it cannot be had."""
        self._metrics = metrics
        self._metrics_type = metrics_type
        self._state = "loading"
        self._socket = _bound(address)
        host, port = self._socket.getsockname()[:2]
        self.listen = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self._loop = asyncio.new_event_loop()
        self._over = asyncio.Event()
        self._scraping = asyncio.Lock()
        self._open: set[asyncio.StreamWriter] = set()
        self._silent: dict[asyncio.StreamWriter, None] = {}
        """Those whose request has not come in yet, in the order in which they came."""
        self._thread = threading.Thread(target=self._run, name="http", daemon=True)
        self._thread.start()

    def set_ready(self) -> None:
        """Everything is loaded; /readyz says so until the server drains."""
        self._state = "ready"

    def set_draining(self) -> None:
        """Send no more; it is final."""
        self._state = "draining"

    def close(self) -> None:
        """Hangs up and lets the port go."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._over.set)
            self._thread.join()

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
            self._loop.close()

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._connected, sock=self._socket, limit=REQUEST_BYTES)
        await self._over.wait()
        server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for writer in tuple(self._open):
            writer.transport.abort()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._open) >= CONNECTIONS:
            gone = next(iter(self._silent), writer)
            gone.transport.abort()
            if gone is writer:
                return
            self._let_go(gone)
        self._open.add(writer)
        self._silent[writer] = None
        try:
            async with asyncio.timeout(SECONDS):
                request = await _request(reader)
            self._silent.pop(writer, None)
            if request is not None:
                answer = await self._answer(request)
                async with asyncio.timeout(SECONDS):
                    writer.write(answer)
                    await writer.drain()
                    writer.close()
                    await writer.wait_closed()
        except (TimeoutError, OSError):
            pass  # whoever asked is gone or too slow, and nobody else is concerned
        finally:
            self._let_go(writer)
            writer.transport.abort()

    def _let_go(self, writer: asyncio.StreamWriter) -> None:
        self._open.discard(writer)
        self._silent.pop(writer, None)

    async def _answer(self, request: bytes) -> bytes:
        if not request:
            return _response(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        words = request.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            return _response(HTTPStatus.BAD_REQUEST)
        method, path = words[0], ANY_HOST.sub("", words[1], count=1).partition("?")[0]
        if path not in PATHS:
            return _response(HTTPStatus.NOT_FOUND)
        if method not in ("GET", "HEAD"):
            return _response(HTTPStatus.METHOD_NOT_ALLOWED, more="Allow: GET, HEAD\r\n")
        return await self._found(path, is_head=method == "HEAD")

    async def _found(self, path: str, *, is_head: bool) -> bytes:
        if path == "/livez":
            return _response(HTTPStatus.OK, b"alive\n", is_head=is_head)
        if path == "/readyz":
            state = self._state
            status = HTTPStatus.OK if state == "ready" else HTTPStatus.SERVICE_UNAVAILABLE
            return _response(status, f"{state}\n".encode(), is_head=is_head)
        async with self._scraping:  # one reading at a time, beside this thread, so that probes go on
            try:
                text = await self._loop.run_in_executor(None, self._metrics)
            except Exception:
                logger.exception("the metrics could not be read")
                return _response(HTTPStatus.INTERNAL_SERVER_ERROR)
        return _response(HTTPStatus.OK, text, self._metrics_type, is_head=is_head)


def _bound(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, int(port)))
        made.listen(CONNECTIONS)
    except OSError as error:
        made.close()
        raise ListenError(
            f"http is {address}: it cannot be bound ({error.strerror}); free it, choose another with --http, or turn "
            "the port off with --http off"
        ) from error
    return made


async def _request(reader: asyncio.StreamReader) -> bytes | None:
    """The head of a request; nothing in it if it is too long, None if the caller hung up."""
    with suppress(asyncio.IncompleteReadError):
        try:
            return await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            return b""
    return None


def _response(
    status: HTTPStatus, body: bytes = b"", kind: str = PLAIN, *, more: str = "", is_head: bool = False
) -> bytes:
    body = body or f"{status.phrase.lower()}\n".encode()
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
        f"Cache-Control: no-store\r\n{more}Connection: close\r\n\r\n"
    )
    return head.encode() + (b"" if is_head else body)
