"""`evaluate` on the log of a real server, and held against others' implementations."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import pytest
from click.testing import CliRunner
from ir_measures import nDCG

from sidecar.cli.failures import ExitCode
from sidecar.cli.group import cli
from sidecar.features import RAW_NAMES
from sidecar.weights import PRESETS, make_weights
from tests.promises.frozen import text
from tests.training.logs import features_of, log_of, make_packet, write_log
from tests.training.made import Truth, make_dataset
from tests.training.test_end_to_end import moving
from tests.training.test_off_policy import plainly
from tests.weights.making import make_artifact
from training.dataset import Dataset, build_dataset
from training.held_out import ndcg_by_session
from training.model import Model
from training.off_policy import SWITCH_TAU, Draws
from training.reserved_draws import reserved_draws
from training.sources import read_source

FAVOURITES = {"features": {"relevance": 0.8, "recency": 0.1, "lexical": 0.1}, "half_life_days": {"fact": 3.0}}
TRUTH = Truth({"semantic": 0.6, "lexical": 0.4}, pool=2)


def evaluated(*arguments: object) -> tuple[int, dict[str, Any]]:
    """The exit code and the answer of `evaluate --json`."""
    found = CliRunner().invoke(cli, ["evaluate", "--json", *map(str, arguments)])
    return found.exit_code, json.loads(found.stdout or found.stderr)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the store of a server that has served 150 packets with two reserved slots while a model was its
    shadow, what agents used having to do with relevance alone; its export; its Parquet."""
    folder = tmp_path_factory.mktemp("e")
    dice = np.random.default_rng(3)
    worth = {f"m{i:03}": float(value) for i, value in enumerate(dice.random(80))}
    with moving(folder) as (server, now):
        client = server.client
        client.upsert(
            "n",
            [
                {"id": name, "content": text(i), "kind": "fact", "relevance": value}
                for i, (name, value) in enumerate(worth.items())
            ],
        )
        client.load_model(archive=make_artifact(folder / "model", FAVOURITES).archive, role="shadow")
        for number in range(150):
            now[0] += 3_600_000_000
            ids = [f"m{i:03}" for i in dice.permutation(80)[:24]]
            packet = client.rank(
                "n",
                text(number % 80),
                filter={"ids": ids},
                max_items=12,
                reserved_slots=2,
                session_id=f"s{number // 2}",
            )
            served = [item.memory.id for item in packet.items]
            if number % 6:
                client.report_use(packet.packet_id, [m for m in served if dice.random() < worth[m] ** 2])
        exported = ["export", "-o", str(folder / "log.jsonl"), "--namespace", "n", "--address", server.listen]
        assert CliRunner().invoke(cli, exported).exit_code == 0
    parquet = ["export-log", str(folder / "data"), "--out", str(folder / "log.parquet")]
    assert CliRunner().invoke(cli, parquet).exit_code == 0
    return folder


@pytest.fixture(scope="module")
def dataset(place: Path) -> Dataset:
    return build_dataset(read_source(place / "data"))


def test_a_shadow_is_evaluated_by_what_it_logged(place: Path) -> None:
    """From the store, the export and Parquet alike; the model itself comes to the same, its half-lives being applied to
    the logged ages; weights of what was used are better."""
    found = [evaluated("shadow", place / name) for name in ("data", "log.jsonl", "log.parquet")]
    assert [code for code, _ in found] == [0, 0, 0]
    answers = [answer for _, answer in found]
    assert answers[0]["verdict"] == "better"
    assert answers[0]["against"] == "logged"
    assert answers[0]["ndcg"]["low"] > 0.0
    assert answers[0]["ndcg"] == answers[1]["ndcg"] == answers[2]["ndcg"]
    # Only the store has the model that the shadow was, and so its task fits.
    assert "evaluate the model itself" in answers[1]["off_policy"]["words"]
    code, of_model = evaluated(place / "model", place / "data")
    assert code == 0
    assert of_model["ndcg"] == answers[0]["ndcg"]
    assert of_model["off_policy"] == answers[0]["off_policy"]
    assert evaluated(place / "model", place / "log.parquet")[1]["off_policy"] == answers[0]["off_policy"]
    by_version = evaluated(answers[0]["model"], place / "data")[1]
    assert by_version["ndcg"] == of_model["ndcg"]


def test_a_preset_against_itself_is_no_different(place: Path) -> None:
    """The weights that served: no difference at all, every estimate what was logged."""
    code, found = evaluated("default", place / "log.parquet")
    assert code == 0
    assert found["verdict"] == "undecided"
    assert found["ndcg"]["difference"] == 0.0
    assert found["off_policy"]["estimates"]["SNIPS"]["difference"] == pytest.approx(0.0, abs=1e-12)
    assert evaluated("engine", place / "data", "--against", "engine")[1]["ndcg"]["difference"] == 0.0


def test_ndcg_is_that_of_the_reference(dataset: Dataset) -> None:
    """Of every session, to 1e-12 with ir-measures, over the memories of each packet that something is known of."""
    scores = Model(PRESETS["engine"]).served_scores(dataset)
    ours = ndcg_by_session(dataset, scores, np.ones(len(dataset.packets), bool), 10)
    theirs = defaultdict(list)
    for number in range(len(dataset.packets)):
        rows = np.flatnonzero((dataset.packet == number) & (dataset.used + dataset.unused > 0))
        used = dataset.used[rows] >= 0.5
        if used.any() and not used.all():
            # A reference breaks ties in its own way: give it scores without any, in our order.
            order = np.lexsort((dataset.memory_key[rows], -scores[rows]))
            run = [ir_measures.ScoredDoc("q", str(rows[i]), -float(place)) for place, i in enumerate(order)]
            qrels = [ir_measures.Qrel("q", str(row), int(hit)) for row, hit in zip(rows, used, strict=True)]
            value = ir_measures.calc_aggregate([nDCG @ 10], qrels, run)[nDCG @ 10]
            theirs[int(dataset.packets.session[number])].append(value)
    assert ours.session.tolist() == sorted(theirs)
    assert ours.value == pytest.approx([np.mean(theirs[each]) for each in ours.session.tolist()], abs=1e-12)


def test_the_estimates_are_those_of_others(place: Path, dataset: Dataset) -> None:
    """On this log: IPS and SNIPS of Vowpal Wabbit, DM, DR and Switch-DR of a plain second implementation, to 1e-12."""
    bandits: Any = pytest.importorskip("estimators.bandits", reason="make test installs vw-estimators")
    _, found = evaluated("engine", place / "data")
    estimates = found["off_policy"]["estimates"]
    draws = reserved_draws(dataset, Model(PRESETS["engine"]))
    assert draws is not None
    assert found["off_policy"]["draws"] == len(draws.reward) > 100
    for name in ("ips", "snips"):
        theirs = __import__(f"{bandits.__name__}.{name}", fromlist=["Estimator"]).Estimator()
        for reward, pi, target in zip(draws.reward, draws.propensity, draws.target, strict=True):
            theirs.add_example(pi, reward, target)
        assert estimates[name.upper()]["value"] == pytest.approx(theirs.get(), abs=1e-12)
    for name, value in plainly(draws, SWITCH_TAU).items():
        assert estimates[name]["value"] == pytest.approx(value, abs=1e-12), name


def test_own_weights_of_a_namespace_count_where_they_serve(dataset: Dataset) -> None:
    """Draws go by a namespace's own weights in its packets, and by the common ones in all others."""
    own = make_weights("own", {"relevance": 1.0})
    common = Model(PRESETS["default"])

    def draws(model: Model) -> Draws:
        found = reserved_draws(dataset, model)
        assert found is not None
        return found

    assert (draws(Model(PRESETS["default"], {"n": own})).target == draws(Model(own)).target).all()
    assert (draws(Model(PRESETS["default"], {"m": own})).target == draws(common).target).all()
    assert not np.allclose(draws(Model(own)).target, draws(common).target)


def test_too_little_is_insufficient(tmp_path: Path) -> None:
    """With words of what is missing and a code of its own; a log without reserved slots says so beside."""
    dataset = make_dataset(TRUTH, sessions=20, seed=1)
    write_log(tmp_path / "log.jsonl", log_of(dataset))
    code, found = evaluated("engine", tmp_path / "log.jsonl")
    assert (code, found["verdict"]) == (ExitCode.GATED, "INSUFFICIENT")
    assert "30 are needed" in found["words"]
    assert "keep a slot" in found["off_policy"]["words"]
    empty = tmp_path / "empty.jsonl"
    empty.write_bytes(b"")
    code, found = evaluated("engine", empty)
    assert (code, found["verdict"], found["packets"]) == (ExitCode.GATED, "INSUFFICIENT", 0)
    shown = CliRunner().invoke(cli, ["evaluate", "engine", str(empty)])
    assert (shown.exit_code, "INSUFFICIENT: 0 sessions" in shown.stdout) == (ExitCode.GATED, True)


def test_worse_is_said_to_be_worse(tmp_path: Path) -> None:
    """Weights of what does not matter against those of what does, and the other way round; the seed moves the interval
    and nothing else; packets before a model's data ended are pointed at."""
    dataset = make_dataset(replace(TRUTH, weights={**TRUTH.weights, "context": 0.0}), sessions=300, seed=2)
    write_log(tmp_path / "log.jsonl", log_of(dataset))
    for name, features in (("good", {"semantic": 0.6, "lexical": 0.4}), ("bad", {"context": 1.0})):
        window = {"from_time": "2023-01-01T00:00:00Z", "event_cutoff_time": "2030-01-01T00:00:00Z"}
        make_artifact(tmp_path / name, {"features": features}, window=window)
    code, found = evaluated(tmp_path / "bad", tmp_path / "log.jsonl", "--against", tmp_path / "good")
    assert (code, found["verdict"]) == (0, "worse")
    assert found["sessions_before_the_model"] == 300
    other = evaluated(tmp_path / "bad", tmp_path / "log.jsonl", "--against", tmp_path / "good", "--seed", 5)[1]
    assert other["ndcg"]["difference"] == found["ndcg"]["difference"]
    assert other["ndcg"]["low"] != found["ndcg"]["low"]
    better = CliRunner().invoke(
        cli, ["evaluate", str(tmp_path / "good"), str(tmp_path / "log.jsonl"), "--against", str(tmp_path / "bad")]
    )
    assert better.exit_code == 0
    assert "the interval lies above 0" in better.stdout
    assert "--from leaves them out" in better.stdout


def test_what_cannot_be_evaluated_is_said(tmp_path: Path) -> None:
    """Unknown names with the nearest; presets whose measures this log does not have; no shadow; no log."""
    packets = [make_packet("empty", []), *log_of(make_dataset(TRUTH, sessions=3, seed=3))]
    write_log(tmp_path / "log.jsonl", packets)
    code, found = evaluated("engin", tmp_path / "log.jsonl")
    assert (code, "MODEL: weights: there are none named 'engin'" in found["error"]["message"]) == (
        ExitCode.NOT_FOUND,
        True,
    )
    assert "Did you mean 'engine'" in found["error"]["message"]
    code, found = evaluated("engine", tmp_path / "log.jsonl", "--against", "nosuch")
    assert (code, found["error"]["message"].startswith("--against: ")) == (ExitCode.NOT_FOUND, True)
    for preset in ("smartctx", "importance"):
        code, found = evaluated(preset, tmp_path / "log.jsonl")
        assert (code, f"what '{preset}' measures" in found["error"]["message"]) == (ExitCode.GATED, True)
    code, found = evaluated("shadow", tmp_path / "log.jsonl")
    assert (code, "promote MODEL --role shadow" in found["error"]["message"]) == (ExitCode.NOT_FOUND, True)
    code, found = evaluated("engine", tmp_path / "nowhere.jsonl")
    assert (code, "there is no log" in found["error"]["message"]) == (ExitCode.NOT_FOUND, True)


@pytest.mark.parametrize(
    ("damaged", "says"),
    [
        ({"features": features_of({"semantic": 2.0})}, "feature semantic of memory 'p-m0' in packet 'p' is 2"),
        ({"features": features_of({"lexical": -0.1})}, "feature lexical of memory 'p-m0' in packet 'p' is -0.1"),
        ({"features": features_of({"semantic": np.nan})}, "feature semantic of memory 'p-m0' in packet 'p' is nan"),
        ({"raw": np.full(len(RAW_NAMES), np.nan)}, "raw age_days of memory 'p-m0' in packet 'p' is nan"),
    ],
)
@pytest.mark.parametrize("part", ["items", "undrawn"])
def test_numbers_that_are_none_are_refused_as_a_fit_refuses_them(
    tmp_path: Path, part: str, damaged: dict[str, Any], says: str
) -> None:
    """Of what was served and of the undrawn, by packet, memory, field and value: no verdict on such a log."""
    rows = log_of(make_dataset(TRUTH, sessions=40, seed=1))
    packet = make_packet("p", [features_of({})], pool=[features_of({})])
    changed: dict[str, Any] = {part: (replace(getattr(packet, part)[0], **damaged),)}
    rows.append(replace(packet, **changed))
    write_log(tmp_path / "log.jsonl", rows)
    says = says if part == "items" else says.replace("p-m0", "p-u0")
    code, found = evaluated("default", tmp_path / "log.jsonl")
    assert code == ExitCode.USAGE
    assert found["error"]["reason"] == "UNREADABLE_LOG"
    assert says in found["error"]["message"]
    refused = CliRunner().invoke(cli, ["train", str(tmp_path / "log.jsonl"), "--dry-run", "--base", "engine"])
    assert (refused.exit_code, says in refused.output) == (ExitCode.GATED, True)


def test_a_log_of_other_features_is_said_to_be(tmp_path: Path) -> None:
    """Alone they cannot be compared; beside packets of this version they are left out and counted."""
    own = log_of(make_dataset(TRUTH, sessions=40, seed=1))
    others = [replace(make_packet(f"o{i}", [features_of({})]), feature_schema_hash="old") for i in range(3)]
    write_log(tmp_path / "log.jsonl", others)
    code, found = evaluated("default", tmp_path / "log.jsonl")
    assert code == ExitCode.GATED
    assert "3 were scored by other features (3 of old)" in found["error"]["message"]
    write_log(tmp_path / "both.jsonl", [*own, *others])
    code, found = evaluated("default", tmp_path / "both.jsonl")
    assert (code, found["packets_of_other_schemas"]) == (0, 3)
    done = CliRunner().invoke(cli, ["evaluate", "default", str(tmp_path / "both.jsonl")])
    assert "3 packets left out: scored by other features (old)." in done.output
