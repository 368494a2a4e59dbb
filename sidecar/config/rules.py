"""What a value of a setting may be: in words, and as a function that reads it. Pure."""

from __future__ import annotations

import ipaddress
import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SOCKET_PATH_BYTES = 107
"""The longest path that a Unix socket can be bound to."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What a setting may be: in words, and as a function that takes a TOML value and returns the value or raises
    ValueError; `of_text` makes the TOML value of a flag's or a variable's text, where that is no text."""

    limit: str
    parse: Callable[[Any], Any]
    of_text: Callable[[str], Any] | None = None


class SaidBetterError(ValueError):
    """Says what this value must be better than the rule's limit does."""


def choice(*allowed: str) -> Rule:
    """One of these texts; a TOML file may say true and false without quotes."""

    def parse(given: Any) -> str:
        if isinstance(given, bool):
            given = str(given).lower()
        if given not in allowed:
            raise ValueError
        return str(given)

    return Rule(f"one of {', '.join(allowed)}", parse)


def whole(low: int, high: int) -> Rule:
    """A whole number from `low` to `high`."""

    def parse(given: Any) -> int:
        if not isinstance(given, int) or isinstance(given, bool) or not low <= given <= high:
            raise ValueError
        return given

    return Rule(f"a whole number from {low} to {high}", parse, int)


def number(low: float, high: float) -> Rule:
    """A number from `low` to `high`."""

    def parse(given: Any) -> float:
        if isinstance(given, bool) or not isinstance(given, int | float) or not low <= given <= high:
            raise ValueError
        return float(given)

    return Rule(f"a number from {low:g} to {high:g}", parse, float)


def _parse_text(given: Any) -> str:
    if not isinstance(given, str) or not given.strip():
        raise ValueError
    return given


def _parse_folder(given: Any) -> Path:
    path = given if isinstance(given, Path) else Path(_parse_text(given))
    return Path(os.path.abspath(path.expanduser()))


def _parse_names(given: Any) -> tuple[str, ...]:
    if isinstance(given, str):
        raise SaidBetterError(f"a list of texts, as [{json.dumps(given)}]")
    if not isinstance(given, list | tuple) or not all(isinstance(part, str) for part in given):
        raise ValueError
    return tuple(part.strip() for part in given if part.strip())


def parse_address(given: Any) -> tuple[str, str]:
    """An address as it is always written, unix:PATH with the whole path or HOST:PORT, and its host; "" of a socket.
    ValueError if it is none."""
    text = _parse_text(given)
    if text.startswith("unix-abstract:"):
        raise SaidBetterError("unix:PATH or HOST:PORT; an abstract socket has no file mode that guards it")
    if text.startswith("unix:"):
        given_path = text.removeprefix("unix:").removeprefix("//")
        if not given_path:
            raise ValueError
        path = os.path.abspath(Path(given_path).expanduser())
        size = len(os.fsencode(path))
        if size > SOCKET_PATH_BYTES:
            raise SaidBetterError(f"a socket path of at most {SOCKET_PATH_BYTES} bytes; {path} has {size}")
        return f"unix:{path}", ""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not (port.isascii() and port.isdigit()) or int(port) > 65_535:
        raise ValueError
    # A resolver may send "localhost" anywhere; the address cannot move.
    host = "127.0.0.1" if host == "localhost" else host
    return (f"[{host}]:{int(port)}" if ":" in host else f"{host}:{int(port)}"), host


def _parse_listen(given: Any) -> str:
    address, host = parse_address(given)
    if host and not _is_loopback(host):
        raise SaidBetterError(
            "an address of this machine alone (127.0.0.1, [::1], localhost or a Unix socket), because callers are not "
            "asked who they are"
        )
    return address


def _parse_http(given: Any) -> str:
    text = str(given) if isinstance(given, int) and not isinstance(given, bool) else _parse_text(given)
    if text == "off":
        return text
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") if colon else "127.0.0.1"
    host = "127.0.0.1" if host == "localhost" else host
    if not (port.isascii() and port.isdigit()) or int(port) > 65_535:
        raise ValueError
    address = ipaddress.ip_address(host)
    return f"[{address}]:{int(port)}" if address.version == 6 else f"{address}:{int(port)}"


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _parse_embedder(given: Any) -> str:
    if not isinstance(given, str) or not re.fullmatch(r"wordllama|none|(?:onnx|model2vec):\S.*|client:\d+", given):
        raise ValueError
    return given


TEXT = Rule("a text that is not empty", _parse_text)
FOLDER = Rule("the path of a folder", _parse_folder)
NAMES = Rule(
    "a list of texts (in a flag or a variable: separated by commas)", _parse_names, lambda text: text.split(",")
)
EMBEDDER = Rule("wordllama, none, onnx:FOLDER, model2vec:FOLDER or client:DIMENSION", _parse_embedder)
HTTP = Rule("off, PORT (of this machine alone), or ADDRESS:PORT (0.0.0.0:PORT for all who reach it)", _parse_http)
LISTEN = Rule("unix:PATH, or HOST:PORT of this machine alone", _parse_listen)
