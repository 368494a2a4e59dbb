"""Servers on which nothing moves but what a test moves: the clock, the packet ids and the salt of draws are given."""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import itertools
from collections.abc import Iterator
from pathlib import Path

from memoryranker.client import Client
from memoryranker.v1 import ranker_pb2

from sidecar.domain import Micros
from sidecar.lifecycle import Sidecar
from sidecar.store.meta import SALT
from sidecar.store.store import Store
from tests.serving import Running, settings_for, wait_until_scored

NOW: Micros = 1_760_000_000_000_000
NOW_TIME = datetime.datetime.fromtimestamp(NOW / 1e6, datetime.UTC)
GIVEN_SALT = bytes(range(32))
BY_RELEVANCE = {"relevance": 1.0}
"""Weights by which a test says itself what scores how much."""


@contextlib.contextmanager
def frozen(folder: Path, prefix: str = "p", **flags: object) -> Iterator[Running]:
    """A server with a store of its own whose clock stands at NOW and whose packets are called p0, p1, ...
    by `prefix`."""
    with Store.open(folder / "data") as store:
        store.set_meta({SALT: GIVEN_SALT})
    numbers = itertools.count()
    settings = settings_for(f"unix:{folder}/socket", **{"data": folder / "data", "embedder": "none", **flags})
    with (
        Sidecar(settings, clock=lambda: NOW, new_packet_id=lambda: f"{prefix}{next(numbers)}") as sidecar,
        Client(sidecar.listen, timeout=30) as client,
    ):
        yield Running(sidecar, client, sidecar.listen, folder)


def days_ago(days: float) -> datetime.datetime:
    """A time before NOW."""
    return NOW_TIME - datetime.timedelta(days=days)


def ids(packet: ranker_pb2.RankResponse, segment: int | None = None) -> list[str]:
    """Ids of the memories in a packet, or in one of its segments, in their order."""
    return [item.memory.id for item in packet.items if segment in (None, item.segment)]


def left_out(packet: ranker_pb2.RankResponse) -> dict[int, int]:
    """How many memories were left out, by reason."""
    return {each.reason: each.count for each in packet.left_out}


def text(number: int) -> str:
    """Contents that say different things, whatever the number, in letters alone."""
    digits = hashlib.blake2b(str(number).encode(), digest_size=18).hexdigest()
    letters = digits.translate(str.maketrans("0123456789", "ghijklmnop"))
    return " ".join(letters[at : at + 6] for at in range(0, 36, 6))


def write(client: Client, namespace: str, relevance: dict[str, float], **fields: object) -> None:
    """Writes memories of those ids, with the relevance that scores them under BY_RELEVANCE, and waits until they are
    scored: they stand as still as the rest."""
    answer = client.upsert(
        namespace,
        [
            {"id": name, "content": text(hash_of(name)), "relevance": value, "token_count": 10, **fields}
            for name, value in relevance.items()
        ],
    )
    assert {result.status.code for result in answer.results} == {0}
    wait_until_scored(client, namespace)


def hash_of(name: str) -> int:
    """A number of its own for each name."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=6).digest())
