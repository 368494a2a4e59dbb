"""Asks the HTTP port, as a probe or a scraper does."""

from __future__ import annotations

import http.client
import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    text: str
    headers: dict[str, str]


def ask(address: str, path: str, method: str = "GET") -> Answer:
    host, _, port = address.rpartition(":")
    connection = http.client.HTTPConnection(host.strip("[]"), int(port), timeout=10)
    try:
        connection.request(method, path)
        response = connection.getresponse()
        return Answer(response.status, response.read().decode(), {k.lower(): v for k, v in response.getheaders()})
    finally:
        connection.close()


def samples(text: str) -> dict[str, float]:
    """The value of every sample, by name and labels as they are written."""
    return {name: float(value) for name, value in re.findall(r"^(?!#)(\S+(?:\{.*?\})?) (\S+)$", text, re.MULTILINE)}
