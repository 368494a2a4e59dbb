"""The learning road with its real parts: a server that agents use, and `train` beside it."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from sidecar.cli.group import cli
from sidecar.config import Settings
from sidecar.domain import SECOND, Micros, Segment
from sidecar.features import FEATURE_NAMES
from sidecar.lifecycle import Sidecar
from sidecar.store.meta import SALT
from sidecar.store.store import Store
from sidecar.weights.artifact import read_artifact
from tests.promises.frozen import GIVEN_SALT, NOW, text
from tests.serving import Running, running, wait_until_scored
from training.dataset import SEGMENTS, build_dataset
from training.sources import read_source

BETWEEN: Micros = 600 * SECOND
KINDS = ("fact", "decision", "preference")
RELEVANCE = FEATURE_NAMES.index("relevance")
LOWER = ("--gate", "most_standard_error=0.1")
FITTABLE = 0.55
"""Of all weight what the features have together that differ in these packets; the rest stays where it is."""


def trained(*arguments: object) -> tuple[int, dict[str, Any]]:
    """The exit code and the answer of `train --json`."""
    found = CliRunner().invoke(cli, ["train", "--json", *map(str, arguments)])
    return found.exit_code, json.loads(found.stdout or found.stderr)


@contextlib.contextmanager
def moving(folder: Path) -> Iterator[tuple[Running, list[Micros]]]:
    """A whole server whose clock stands where the list says, and whose draws can be repeated."""
    now, numbers = [NOW], itertools.count()
    with Store.open(folder / "data") as store:
        store.set_meta({SALT: GIVEN_SALT})

    def make(settings: Settings) -> Sidecar:
        return Sidecar(settings, clock=lambda: now[0], new_packet_id=lambda: f"p{next(numbers)}")

    with running(folder, make, embedder="none") as server:
        yield server, now


def work(server: Running, now: list[Micros], sessions: int, namespace: str = "n") -> None:
    """Agents that use what the caller's own search thinks much of, whatever else a memory is, and report it."""
    dice = np.random.default_rng(5)
    relevance = {f"m{i:03}": float(value) for i, value in enumerate(dice.random(90))}
    server.client.upsert(
        namespace,
        [
            {"id": name, "content": text(i), "kind": KINDS[i % 3], "relevance": value}
            for i, (name, value) in enumerate(relevance.items())
        ],
    )
    wait_until_scored(server.client, namespace)
    for number in range(sessions):
        now[0] += BETWEEN
        chosen = [f"m{i:03}" for i in dice.permutation(90)[:25]]
        packet = server.client.rank(
            namespace,
            text(number % 90),
            filter={"ids": chosen},
            max_items=12,
            session_id=f"s{number}",
            agent_id=f"agent-{number % 3}",
        )
        served = [item.memory.id for item in packet.items]
        used = [each for each in served if dice.random() < 1 / (1 + np.exp(4 - 6 * relevance[each]))]
        if number % 5:
            server.client.report_use(packet.packet_id, used)


def test_a_server_in_use_is_learned_from(tmp_path: Path) -> None:
    """Rank and ReportUse through the API, then `train` beside the running server: every gate passes, the weight of what
    is used rises by as much as one run may, and the packets are in the data set as they were served."""
    with moving(tmp_path) as (server, now):
        work(server, now, 420)
        code, found = trained(tmp_path / "data", "--out", tmp_path / "model", *LOWER)
        assert code == 0, [gate for gate in found["gates"] if not gate["passed"]]
        assert [gate["gate"] for gate in found["gates"] if gate["stage"] == "train" and not gate["passed"]] == []
        artifact = read_artifact(tmp_path / "model")
        assert artifact.weights.values[RELEVANCE] == pytest.approx(0.01 + 0.05, abs=1e-6)
        # What a server was given is where the next run starts.
        loaded = server.client.load_model(str(tmp_path / "model"), force_reason="a test")
        assert loaded.model.version == artifact.version
        code, chained = trained(tmp_path / "data", "--dry-run", *LOWER)
        assert {each["feature"]: each["before"] for each in chained["weights"]}["relevance"] == pytest.approx(0.06)
        code, free = trained(tmp_path / "data", "--preview", "--dry-run", "--base", "default")
        assert code == 0
        assert next(each["after"] for each in free["weights"] if each["feature"] == "relevance") > 0.5 * FITTABLE

        dataset = build_dataset(read_source(tmp_path / "data"))
        assert len(dataset.packets) == 420
        assert set(dataset.kinds) == set(KINDS)
        assert (dataset.segment == SEGMENTS.index(Segment.RESERVED)).sum() > 100
        number = 7
        logged = server.client.get_packet("n", dataset.packets.packet_id[number])
        rows = np.flatnonzero(dataset.packet == number)
        assert [dataset.memory_id[key] for key in dataset.memory_key[rows]] == [
            each.memory.id for each in logged.packet.items
        ]
        assert dataset.score[rows].tolist() == [each.score for each in logged.packet.items]
