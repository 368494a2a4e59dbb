"""Faults of ranking and time that were seen elsewhere, tried here."""

from __future__ import annotations

import datetime
import itertools
import json
import math
import os
import random
import sys
from pathlib import Path

import pytest
from memoryranker.client import Client
from memoryranker.v1 import types_pb2

from sidecar.domain import KNOWN_KINDS
from sidecar.features import FEATURE_NAMES
from sidecar.lifecycle import Sidecar
from tests.promises.frozen import NOW, NOW_TIME, days_ago, ids, text
from tests.serving import ended, process, settings_for

RECENCY = FEATURE_NAMES.index("recency")


def test_rk_02_a_clock_that_steps_back_lifts_nothing_above_its_range(tmp_path: Path) -> None:
    """A use reported for the day after tomorrow, and a clock set back by an hour: ages stop at 0. They count to
    the next whole minute."""
    clock = [NOW]
    settings = settings_for(f"unix:{tmp_path}/s", data=tmp_path / "data", embedder="none")
    with Sidecar(settings, clock=lambda: clock[0]) as sidecar, Client(sidecar.listen) as client:
        client.upsert(
            "n", [{"id": "used", "content": text(1)}, {"id": "ahead", "content": text(2), "create_time": days_ago(-9)}]
        )
        packet = client.rank("n")
        client.report_use(packet.packet_id, ["used"], report_time=days_ago(-2))
        for time in (NOW, NOW - 3_600_000_000, NOW - 86_400_000_000 * 30):
            clock[0] = time
            for item in client.rank("n", explain="full").items:
                assert all(0 <= value <= 1 for value in item.features)
                assert item.features[RECENCY] == pytest.approx(1, abs=1e-5)
                assert 0 <= item.score <= 1


def test_rk_04_the_host_s_time_zone_enters_no_age(tmp_path: Path) -> None:
    """Written in the same second with a time of its own and without, over the API and by import, under TZ=Asia/Tokyo
    and under UTC: the same ages, and every time filter parts the same memories."""
    seen = {}
    for zone in ("Asia/Tokyo", "UTC"):
        folder = tmp_path / zone[:4]
        folder.mkdir()
        with process(folder, TZ=zone, MEMORY_RANKER_EMBEDDER="none") as (_, client):
            now = datetime.datetime.now(datetime.UTC)
            client.upsert(
                "n", [{"id": "given", "content": text(1), "create_time": now}, {"id": "unset", "content": text(2)}]
            )
            lines = [
                {"id": "imported", "content": text(3)},
                {"id": "naive", "content": text(4), "create_time": now.replace(tzinfo=None).isoformat()},
            ]
            file = folder / "m.jsonl"
            file.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
            command = [sys.executable, "-m", "sidecar.cli", "import", str(file)]
            flags = ["--namespace", "n", "--address", f"unix:{folder}/socket"]
            imported = ended([*command, *flags], within=30, env={**os.environ, "TZ": zone})
            assert imported.returncode == 0, imported.stderr
            later = now + datetime.timedelta(days=90)
            packet = client.rank("n", explain="full", as_of_time=later)
            ages = {item.memory.id: -90 * math.log2(item.features[RECENCY]) for item in packet.items}
            assert ages == dict.fromkeys(("given", "unset", "imported", "naive"), pytest.approx(90, abs=1e-3))
            minute = datetime.timedelta(minutes=1)
            recent = client.rank("n", filter={"create_time_from": now - minute, "create_time_until": now + minute})
            assert set(ids(recent)) == ages.keys()
            seen[zone] = {name: round(age, 2) for name, age in ages.items()}
    assert seen["Asia/Tokyo"] == seen["UTC"]


def test_rk_06_an_old_exact_match_beats_fresh_chatter(client: Client, namespace: str) -> None:
    """Forty memories of 900 days ago, one of which answers word for word, stand before three fresh off-topic ones; and
    the old ones keep scores of their own."""
    question = "which port does the billing gateway listen on"
    old = [
        {"id": f"old{i:02}", "content": f"billing note {text(i)}", "create_time": days_ago(900 + i)} for i in range(39)
    ]
    answer = {"id": "answer", "content": "The billing gateway does listen on port 8443", "create_time": days_ago(900)}
    fresh = [{"id": f"fresh{i}", "content": text(100 + i), "create_time": NOW_TIME} for i in range(3)]
    client.upsert(namespace, [*old, answer, *fresh])
    for preset in ("default", "smartctx", "engine", "importance"):
        packet = client.rank(namespace, question, weights=preset, max_items=43, reserved_slots=0, explain="full")
        if preset not in ("engine", "importance"):  # their notes say that nothing of the score is wording
            assert ids(packet)[0] == "answer"
        recencies = [item.features[RECENCY] for item in packet.items if item.memory.id.startswith("old")]
        assert len(set(recencies)) == 39
        assert min(recencies) > 0
    packet = client.rank(namespace, question, max_items=43, reserved_slots=0)
    scores = {item.score for item in packet.items if item.memory.id.startswith("old")}
    assert len(scores) == 39


@pytest.mark.parametrize("importance", [3.0, -1.0, math.nan, math.inf, -math.inf])
def test_rk_08_an_importance_out_of_range_is_refused(client: Client, namespace: str, importance: float) -> None:
    """Refused on its own, by name; the perfect match beside it is written and stands first."""
    match = {"id": "match", "content": "the ferry leaves at noon", "importance_override": 0.5}
    other = {"id": "other", "content": text(1), "importance_override": 1.0}
    bad = {"id": "bad", "content": text(2), "importance_override": importance}
    results = client.upsert(namespace, [other, bad, match]).results
    assert [bool(result.status.code) for result in results] == [False, True, False]
    assert "importance_override" in results[1].status.message
    assert ids(client.rank(namespace, "when the ferry leaves")) == ["match", "other"]


def test_rk_10_an_opposite_vector_is_last_and_no_score_leaves_its_range(client: Client, namespace: str) -> None:
    """Vectors opposite, at right angles and at half of one to the task's: scores in [0, 1], the opposite one last."""

    def vector(x: float, y: float) -> list[float]:
        return [x, y, *[0.0] * 254]

    memories = [
        {"id": "a opposite", "content": text(1), "embedding": vector(-1, 0)},
        {"id": "b across", "content": text(2), "embedding": vector(0, 1)},
        {"id": "c near", "content": text(3), "embedding": vector(1, 1)},
    ]
    client.upsert(namespace, memories)
    packet = client.rank(namespace, task_embedding=vector(1, 0), weights={"semantic": 1.0})
    assert ids(packet) == ["c near", "b across", "a opposite"]
    assert all(0 <= item.score <= 1 for item in packet.items)


@pytest.mark.parametrize("preset", ["default", "smartctx", "engine", "importance"])
def test_rk_12_the_score_shown_is_the_one_sorted_by(client: Client, namespace: str, preset: str) -> None:
    """Thirty mixed memories stand in descending order of the score that is returned. (Learned weights come later.)"""
    dice = random.Random(7)
    client.upsert(
        namespace,
        [
            {
                "id": f"m{i:02}",
                "content": f"{text(i)} {' '.join(dice.sample(['ferry', 'timeout', 'invoice'], dice.randint(0, 3)))}",
                "kind": dice.choice(KNOWN_KINDS),
                "create_time": days_ago(dice.random() * 300),
                "relevance": dice.random(),
            }
            for i in range(30)
        ],
    )
    packet = client.rank(namespace, "ferry invoice timeout", weights=preset, max_items=30, reserved_slots=0)
    scores = [item.score for item in packet.items]
    assert len(scores) == 30
    assert scores == sorted(scores, reverse=True)


def test_rk_14_recency_alone_is_strictly_newest_first(client: Client, namespace: str) -> None:
    """With recency the only weight, memories of one hour to six days stand newest first, call after call."""
    ages = {"1h": 1 / 24, "6h": 0.25, "1d": 1, "2d": 2, "4d": 4, "6d": 6}
    shuffled = random.Random(3).sample(sorted(ages), len(ages))
    client.upsert(
        namespace,
        [{"id": name, "content": text(i), "create_time": days_ago(ages[name])} for i, name in enumerate(shuffled)],
    )
    weights = types_pb2.Weights(features={"recency": 1.0})
    for _ in range(20):
        packet = client.rank(namespace, "anything", weights=weights, reserved_slots=0)
        assert ids(packet) == list(ages)
        scores = [item.score for item in packet.items]
        assert all(one > other for one, other in itertools.pairwise(scores))
