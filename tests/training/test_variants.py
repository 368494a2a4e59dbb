"""Presets that measure in ways of their own, on the packets of a real store and its exports."""

from __future__ import annotations

import json
import shutil
import sqlite3
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from sidecar.cli.group import cli
from sidecar.weights import PRESETS, contributions
from tests.promises.frozen import text
from tests.serving import ended, wait_until_scored
from tests.training.test_end_to_end import KINDS, moving
from tests.training.test_evaluate import evaluated
from training.dataset import build_dataset
from training.evaluate import as_scored_by
from training.model import Model
from training.sources import read_source
from training.variants import ways_of

ASKS = 40
BY_ITSELF = ("smartctx", "importance", "default")
"""Whose scores are compared with the server's own."""
PRESET = pytest.mark.parametrize("preset", ["smartctx", "importance"])
SOURCES = ("data", "log.jsonl", "log.parquet")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store whose server ranked 40 tasks by the default, each reported on, while marks came, a user's
    word, and the most used memory went; then three more by either preset, and one from a caller's own list. And its
    exports, and `scored.json`: what each preset made of the same tasks at the same moment, by packet and memory. After
    all that every text was written anew, and half of the memories deleted."""
    folder = tmp_path_factory.mktemp("v")
    scored: dict[str, dict[str, dict[str, list[float]]]] = {}
    uses: Counter[str] = Counter()
    with moving(folder) as (server, now):
        client = server.client
        # In every text stands what tells it from the others, and words that tasks share.
        memories = [
            {"id": f"m{i:02}", "content": text(i), "kind": KINDS[i % 3], "relevance": (i % 7) / 7} for i in range(30)
        ]
        client.upsert("n", memories)
        wait_until_scored(client, "n")

        def asked(number: int, **options: Any) -> None:
            now[0] += 3_600_000_000
            ids = [f"m{i:02}" for i in range(30) if i != number % 30][:24]
            ask = partial(client.rank, "n", f"{text(number % 30)} {text(7)}", filter={"ids": ids}, **options)
            packet = ask(max_items=12, reserved_slots=2, session_id=f"s{number}")
            scored[packet.packet_id] = {
                preset: {
                    item.memory.id: [item.score, *item.contributions]
                    for item in ask(max_items=24, reserved_slots=0, weights=preset, dry_run=True).items
                }
                for preset in BY_ITSELF
            }
            used = {packet.items[k].memory.id for k in (number % 3, number % 5)}
            client.report_use(packet.packet_id, used)
            uses.update(used)

        for number in range(ASKS):
            if number % 4 == 0:
                client.rate("n", f"m{number % 29:02}", "helpful" if number % 8 else "unhelpful", agent_id=f"a{number}")
            if number == 10:
                client.upsert("n", [{"id": "m03", "importance_override": 0.9}])
            if number == 25:  # used by most sessions
                ((most, _),) = uses.most_common(1)
                client.delete("n", [most])
                client.upsert("n", [{"id": most, "content": text(50)}])
                wait_until_scored(client, "n")
            asked(number)
        for number in range(ASKS, ASKS + 6):
            asked(number, weights=BY_ITSELF[number % 2])
        now[0] += 3_600_000_000
        own = [{"id": "x", "content": text(1)}, {"id": "y", "content": text(2)}]
        client.report_use(client.rank("n", text(1), candidates=own).packet_id, ["x"])
        client.upsert("n", [{**memory, "content": text(90 + number)} for number, memory in enumerate(memories)])
        client.delete("n", [f"m{i:02}" for i in range(0, 30, 2)])
        exported = ["export", "-o", str(folder / "log.jsonl"), "--namespace", "n", "--address", server.listen]
        assert CliRunner().invoke(cli, exported).exit_code == 0
    parquet = ["export-log", str(folder / "data"), "--out", str(folder / "log.parquet")]
    assert CliRunner().invoke(cli, parquet).exit_code == 0
    (folder / "scored.json").write_text(json.dumps(scored), encoding="utf-8")
    return folder


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("preset", BY_ITSELF)
def test_it_scores_logged_memories_as_the_server_did(place: Path, preset: str, source: str) -> None:
    """Every served and every undrawn memory of every packet, score and contributions to the last bit, whichever weights
    served it, and whatever became of the memories since."""
    scored = json.loads((place / "scored.json").read_text("utf-8"))
    model = Model(PRESETS[preset])
    dataset, known = as_scored_by(build_dataset(read_source(place / source), ways=ways_of([model])), model)
    assert known.all()
    assert len(known) == ASKS + 7
    compared = 0
    for features, without_use, packet, keys in (
        (dataset.features, dataset.without_use, dataset.packet, dataset.memory_key),
        (dataset.pool_features, dataset.pool_without_use, dataset.pool_packet, dataset.pool_memory_key),
    ):
        own = {"recency": without_use[:, 0], "importance": without_use[:, 1]}
        found = contributions(features, own, model.common)
        for row, number in enumerate(packet.tolist()):
            if (packet_id := dataset.packets.packet_id[number]) in scored:
                theirs = scored[packet_id][preset][dataset.memory_id[keys[row]]]
                assert [found.score[row], *found.matrix[row]] == theirs
                compared += 1
    assert compared > (ASKS + 6) * 12


@PRESET
def test_a_store_and_its_exports_come_to_the_same(place: Path, preset: str) -> None:
    """By the command in a process of its own; as what scores and as what it is compared with."""
    found = []
    for source in SOURCES:
        command = [sys.executable, "-m", "sidecar.cli", "evaluate", preset, place / source, "--json"]
        done = ended([str(each) for each in command])
        assert done.returncode == 0, done.stderr
        found.append(json.loads(done.stdout))
    assert found[0] == found[1] == found[2]
    assert (found[0]["packets"], found[0]["packets_without_measures"]) == (ASKS + 7, 0)
    assert found[0]["packets_of_own_measures"] == 0
    assert found[0]["off_policy"]["draws"] > 0
    code, against = evaluated("engine", place / "log.parquet", "--against", preset)
    assert (code, against["ndcg"]["before"]) == (0, found[0]["ndcg"]["after"])
    other = "smartctx" if preset == "importance" else "importance"
    assert evaluated(other, place / "data", "--against", preset)[1]["ndcg"]["before"] == found[0]["ndcg"]["after"]


def test_an_export_has_the_measures_and_no_text(place: Path) -> None:
    """Of each packet the five numbers that others would have measured, and none of the words of tasks and memories."""
    ways = pq.read_table(place / "log.parquet", columns=["type", "other_ways"]).to_pylist()
    names = {tuple(each["way"] for each in row["other_ways"]) for row in ways if row["type"] == "packet"}
    assert {len(each) for each in names} == {5}
    held = (place / "log.parquet").read_bytes() + repr(pq.read_table(place / "log.parquet").to_pylist()).encode()
    assert not any(word.encode() in held for number in (1, 7) for word in text(number).split() if len(word) > 3)


@pytest.fixture(scope="module")
def older(place: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same as a version left it that logged no measures: its store, and its Parquet without the column."""
    folder = tmp_path_factory.mktemp("o")
    shutil.copytree(place / "data", folder / "data")
    with sqlite3.connect(folder / "data" / "memories.db") as database:
        database.execute("UPDATE packets SET other_way_names = '[]', other_ways = x''")
    database.close()
    table = pq.read_table(place / "log.parquet")
    pq.write_table(table.drop_columns(["other_ways"]), folder / "log.parquet")
    is_default = pc.fill_null(pc.equal(table["model_version"], "default"), True)
    late = pc.fill_null(pc.greater_equal(table["packet_id"], "p30"), False)
    kept = [
        row if new else {**row, "other_ways": None}
        for row, new in zip(table.to_pylist(), late.to_pylist(), strict=True)
    ]
    pq.write_table(type(table).from_pylist(kept, table.schema).filter(is_default), folder / "mixed.parquet")
    return folder


@PRESET
@pytest.mark.parametrize("source", ["data", "log.parquet"])
def test_an_older_log_is_refused_in_words(older: Path, preset: str, source: str) -> None:
    """How many packets, what they lack, and how to get it; other weights are evaluated on it as before."""
    code, found = evaluated(preset, older / source)
    assert code == 9
    assert f"none of the {ASKS + 1} packets of this window has what '{preset}' measures" in found["error"]["message"]
    assert "Export the log of a store anew" in found["error"]["message"]
    assert evaluated("engine", older / source, "--against", preset)[0] == 9
    code, found = evaluated("engine", older / source)
    # What a preset served is left out: the default's measures were not logged beside its own.
    assert (code, found["packets"], found["packets_of_own_measures"]) == (0, ASKS + 1, 6)
    shown = CliRunner().invoke(cli, ["evaluate", "engine", str(older / source)])
    assert "6 packets left out: importance and smartctx served" in shown.stdout


@PRESET
def test_older_packets_of_a_log_are_left_out_and_counted(older: Path, preset: str) -> None:
    """Those that have the measures are what it goes by."""
    code, found = evaluated(preset, older / "mixed.parquet")
    newer = found["packets"]
    assert code == (0 if found["ndcg"]["sessions"] >= 30 else 9)
    assert 0 < newer < ASKS
    assert newer + found["packets_without_measures"] == ASKS + 1
    shown = CliRunner().invoke(cli, ["evaluate", preset, str(older / "mixed.parquet")])
    assert f"{ASKS + 1 - newer} packets left out: a version served or exported them" in shown.stdout


def test_ways_of_packets_that_are_told_in_part_are_not_guessed(place: Path) -> None:
    """A packet that lacks two ways of a feature does not say which of them scored it."""
    rows = []
    for row in read_source(place / "log.parquet"):
        ways = getattr(row, "other_ways", None)
        if ways is not None:
            kept = [k for k, name in enumerate(ways.names) if name != "lexical:smartctx"]
            object.__setattr__(row, "other_ways", type(ways)(tuple(ways.names[k] for k in kept), ways.values[:, kept]))
        rows.append(row)
    dataset = build_dataset(rows, ways=("lexical:smartctx", "importance:importance"))
    by_smartctx = np.array([version == "smartctx" for version in dataset.packets.model_version])[dataset.packet]
    assert np.isnan(dataset.ways["lexical:smartctx"][0][~by_smartctx]).all()
    assert not np.isnan(dataset.ways["lexical:smartctx"][0][by_smartctx]).any()
    assert not np.isnan(dataset.ways["importance:importance"][0]).any()
