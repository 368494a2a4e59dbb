"""Memories that fit one task alike, for what the notes say of serving: how they score, and what use changes."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping

from memoryranker.client import Client
from memoryranker.v1 import ranker_pb2

from sidecar.features import FEATURE_NAMES

Weights = str | Mapping[str, float] | None

LATER = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=1)
"""One time to rank for, after everything that a test does, so that only what was done makes a difference."""

TASK = "invoice export timeout"
WORDS_AND_USE = {"lexical": 0.5, "use_rate": 0.3, "frequency": 0.1, "rating": 0.1}
"""Weights under which memories that bear the task's words alike differ by use alone."""
SUBJECTS = (
    "harbour pilots board ships",
    "kitchen knives need whetstones",
    "physics lectures cover optics",
    "opera tickets sell early",
    "garden roses like sunshine",
    "tunnel workers wear helmets",
    "winter coats hang upstairs",
    "museum guides speak Polish",
)


def write(client: Client, namespace: str, contents: dict[str, str]) -> None:
    """Writes memories by id."""
    answer = client.upsert(namespace, [{"id": name, "content": content} for name, content in contents.items()])
    assert [result.status.code for result in answer.results] == [0] * len(contents)


def write_alike(client: Client, namespace: str, count: int) -> list[str]:
    """Writes memories that fit TASK alike and yet say different things."""
    contents = {f"m{number}": f"{TASK} while {SUBJECTS[number]}" for number in range(count)}
    write(client, namespace, contents)
    return list(contents)


def scores(client: Client, namespace: str, task: str = TASK, weights: Weights = None) -> dict[str, float]:
    """Every memory's score at LATER, by id. Logs nothing."""
    return {item.memory.id: item.score for item in ranked(client, namespace, task, weights)}


def ranked(
    client: Client, namespace: str, task: str = TASK, weights: Weights = None
) -> Iterable[ranker_pb2.RankedItem]:
    """Every memory at LATER, best first. Logs nothing."""
    return client.rank(namespace, task, weights=weights, max_items=50, as_of_time=LATER, dry_run=True).items


def part(
    client: Client, namespace: str, memory_id: str, feature: str, task: str = TASK, weights: Weights = None
) -> float:
    """What one feature adds to one memory at LATER."""
    (item,) = (item for item in ranked(client, namespace, task, weights) if item.memory.id == memory_id)
    return item.contributions[FEATURE_NAMES.index(feature)]


def serve_only(client: Client, namespace: str, memory_id: str, session_id: str) -> ranker_pb2.RankResponse:
    """Serves one memory, and logs it."""
    packet = client.rank(namespace, TASK, session_id=session_id, filter={"ids": [memory_id]})
    assert [item.memory.id for item in packet.items] == [memory_id]
    return packet
