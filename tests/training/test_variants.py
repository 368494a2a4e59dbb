"""A preset that measures in ways of its own, on the packets of a real store."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from sidecar.cli.group import cli
from sidecar.domain import Packet
from sidecar.rpc.kept import task_of
from sidecar.store.log_reading import read_texts
from sidecar.weights import PRESETS
from tests.promises.frozen import text
from tests.training.test_end_to_end import KINDS, moving
from tests.training.test_evaluate import evaluated
from training.dataset import build_dataset
from training.model import Model
from training.sources import read_source
from training.variants import Asked

SMARTCTX = PRESETS["smartctx"]
ASKS = 40


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store whose server ranked 40 tasks by the default, each reported on, and `scores.json`: what
    smartctx made of the same tasks at the same moment, by packet and memory. Then one memory was written again, one
    deleted, and two packets had come from a caller's own list and one from smartctx itself."""
    folder = tmp_path_factory.mktemp("v")
    scores: dict[str, dict[str, float]] = {}
    with moving(folder) as (server, now):
        client = server.client
        # In every text stands what tells it from the others, and words that tasks share.
        memories = [
            {"id": f"m{i:02}", "content": text(i), "kind": KINDS[i % 3], "relevance": (i % 7) / 7} for i in range(30)
        ]
        client.upsert("n", memories)
        for number in range(ASKS):
            now[0] += 3_600_000_000
            ids = [f"m{i:02}" for i in range(30) if i != number % 30][:24]
            ask = partial(client.rank, "n", text(number % 30), filter={"ids": ids})
            packet = ask(max_items=12, reserved_slots=2, session_id=f"s{number}")
            every = ask(max_items=24, reserved_slots=0, weights="smartctx", dry_run=True)
            scores[packet.packet_id] = {item.memory.id: item.score for item in every.items}
            client.report_use(packet.packet_id, [packet.items[number % 3].memory.id])
        client.rank("n", text(3), weights="smartctx")
        own = [{"id": "x", "content": text(1)}, {"id": "y", "content": text(2)}]
        now[0] += 3_600_000_000
        for _ in range(2):
            client.rank("n", text(1), candidates=own)
    (folder / "scores.json").write_text(json.dumps(scores), encoding="utf-8")
    return folder


def test_it_scores_logged_memories_as_a_server_does(place: Path) -> None:
    """Every served and every undrawn memory of every packet, to the last bit; packets of a caller's own list are not
    known."""
    scores = json.loads((place / "scores.json").read_text("utf-8"))
    asked = Asked(task_of)
    dataset = build_dataset(asked.passing(read_source(place / "data")))
    texts = read_texts(place / "data" / "memories.db", asked.keys)
    measured, known = asked.measured(dataset, SMARTCTX.variants, texts)
    packets = dataset.packets
    assert [each for each, is_known in zip(packets.packet_id, known, strict=True) if is_known] == list(scores)
    assert known.tolist() == [True] * ASKS + [False] * 2
    model = Model(SMARTCTX)
    compared = 0
    for prefix in ("", "pool_"):
        features, without_use = getattr(measured, f"{prefix}features"), getattr(measured, f"{prefix}without_use")
        packet, keys = getattr(measured, f"{prefix}packet"), getattr(measured, f"{prefix}memory_key")
        found = model.scores(features, without_use, packet, packets.namespace)
        for row in np.flatnonzero(known[packet]).tolist():
            theirs = scores[packets.packet_id[packet[row]]][dataset.memory_id[keys[row]]]
            assert found[row] == theirs
            compared += 1
    assert compared > ASKS * 12


def test_what_was_written_since_stays_out(place: Path, tmp_path: Path) -> None:
    """A memory that is written again or deleted takes the packets that scored it out of the comparison, and only those;
    what is left out is said."""
    code, before = evaluated("smartctx", place / "data")
    assert (code, before["packets"], before["packets_without_texts"]) == (0, ASKS, 2)
    assert before["packets_of_own_measures"] == 1
    assert before["ndcg"]["sessions"] == ASKS
    assert before["off_policy"]["draws"] > 0
    assert evaluated("engine", place / "data")[1]["packets_without_texts"] == 0
    against = evaluated("engine", place / "data", "--against", "smartctx")[1]
    assert (against["packets"], against["ndcg"]["before"]) == (ASKS, before["ndcg"]["after"])
    rows = [row for row in read_source(place / "data") if isinstance(row, Packet) and row.model_version == "default"]
    rewritten, deleted = rows[0].items[-1].memory_id, rows[1].undrawn[0].memory_id
    with moving(place) as (server, now):
        now[0] += 10_000 * 3_600_000_000
        server.client.upsert("n", [{"id": rewritten, "content": "another text"}])
        server.client.delete("n", [deleted])
    scored = [{*(each.memory_id for each in row.items), *(each.memory_id for each in row.undrawn)} for row in rows]
    touched = sum(bool(each & {rewritten, deleted, "x"}) for each in scored)
    assert 2 < touched < len(rows)
    _, after = evaluated("smartctx", place / "data")
    assert (after["packets"], after["packets_without_texts"]) == (len(rows) - touched, touched)
    shown = CliRunner().invoke(cli, ["evaluate", "smartctx", str(place / "data")])
    assert f"{touched} packets left out" in shown.stdout
    assert "1 packet left out: smartctx served" in shown.stdout
