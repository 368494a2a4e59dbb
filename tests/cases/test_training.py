from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from sidecar.cli.failures import ExitCode
from sidecar.cli.group import cli
from sidecar.features import FEATURE_NAMES
from tests.promises.frozen import text
from tests.training.logs import features_of, log_of, make_packet, make_report, write_log
from tests.training.made import Truth, make_dataset
from tests.training.test_end_to_end import moving, trained, work
from training.dataset import build_dataset

TRUTH = Truth({"semantic": 0.6, "lexical": 0.4}, packets_a_session=1)


def test_tr_02_a_group_of_12_000_rows_trains(tmp_path: Path) -> None:
    """One packet of 12,000 memories among ordinary ones: it counts as one, and all others are used."""
    dice = np.random.default_rng(1)
    names = [f"m{i}" for i in range(12_000)]
    wide = make_packet(
        "wide", [features_of({"semantic": a, "lexical": b}) for a, b in dice.random((12_000, 2))], ids=names
    )
    rows = [*log_of(make_dataset(TRUTH, sessions=300, seed=1)), wide, make_report("wide", names[:40])]
    dataset = build_dataset(rows)
    assert len(dataset) == 12_000 + 300 * 12
    from sidecar.weights import make_weights
    from training.model import Model
    from training.run import TrainSettings, train

    run = train(dataset, Model(make_weights("w", {"semantic": 0.5, "lexical": 0.5})), TrainSettings())
    assert run.trained is not None
    assert run.trained.fit.pairs < 20_000
    assert run.trained.fit.weights[FEATURE_NAMES.index("semantic")] == pytest.approx(0.6, abs=0.08)


@pytest.mark.parametrize("sessions", [6, 1])
def test_tr_04_tr_06_too_little_data_is_said_to_be(tmp_path: Path, sessions: int) -> None:
    """Six packets of four, and one alone: refused in words with a code of its own; no file is written over."""
    write_log(tmp_path / "log.jsonl", log_of(make_dataset(replace(TRUTH, items=4), sessions=sessions, seed=1)))
    (tmp_path / "model").mkdir()
    code, found = trained(tmp_path / "log.jsonl", "--out", tmp_path / "model")
    assert code == ExitCode.GATED
    words = next(gate["words"] for gate in found["gates"] if gate["gate"] == "sessions")
    assert words.startswith("Not enough data.")
    assert list((tmp_path / "model").iterdir()) == []
    code, found = trained(tmp_path / "log.jsonl", "--preview", "--dry-run", "--base", "engine")
    assert code in (0, ExitCode.GATED)  # a preview has no gates, and no number in it is NaN
    assert "NaN" not in json.dumps(found)


def test_tr_08_fractional_labels_are_checked(tmp_path: Path) -> None:
    """Grades between 0 and 1 weigh pairs by what they are; a NaN feature is refused by packet, memory and name."""
    dataset = make_dataset(TRUTH, sessions=300, seed=1)
    graded = replace(dataset, used=dataset.used * 0.7, unused=dataset.unused * 0.3)
    from training.pairs import make_pairs

    assert make_pairs(graded).weight == pytest.approx(make_pairs(dataset).weight)
    rows = log_of(dataset)
    rows[0] = make_packet("p0", [features_of({"semantic": np.nan}), features_of({"semantic": 0.5})], ids=["a", "b"])
    write_log(tmp_path / "log.jsonl", rows)
    for flags in ((), ("--preview",)):
        code, found = trained(tmp_path / "log.jsonl", "--out", tmp_path / "model", *flags)
        assert code == ExitCode.GATED
        words = next(gate["words"] for gate in found["gates"] if gate["gate"] == "sound_numbers")
        assert "feature semantic of memory 'a' in packet 'p0'" in words
    assert not (tmp_path / "model").exists()


def test_tr_10_an_empty_log_is_said_to_be(tmp_path: Path) -> None:
    """A store without a packet, and one with packets and no use: said so, another code than 0, nothing written."""
    with moving(tmp_path) as (server, _):
        code, found = trained(tmp_path / "data", "--out", tmp_path / "model")
        assert code == ExitCode.GATED
        assert any("no packet in this window" in gate["words"] for gate in found["gates"])
        server.client.upsert("n", [{"id": f"m{i}", "content": text(i)} for i in range(9)])
        for _ in range(3):
            server.client.rank("n", "anything")
        code, found = trained(tmp_path / "data", "--out", tmp_path / "model")
        assert code == ExitCode.GATED
        assert any("3 packets in this window and no report" in gate["words"] for gate in found["gates"])
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("form", ["linear", "curves"])
def test_tr_11_two_openmp_runtimes_meet_in_no_process(tmp_path: Path, form: str) -> None:
    """A whole training run loads neither FAISS nor LightGBM into its process: LightGBM works in one of its own."""
    write_log(tmp_path / "log.jsonl", log_of(make_dataset(TRUTH, sessions=80, seed=1)))
    program = (
        "import sys; from sidecar.cli.group import cli\n"
        "cli(sys.argv[1:], standalone_mode=False)\n"
        "print(sorted({'faiss', 'lightgbm'} & sys.modules.keys()))"
    )
    flags = ["train", "log.jsonl", "--form", form, "--preview", "--dry-run", "--base", "engine"]
    done = subprocess.run(
        [sys.executable, "-c", program, *flags], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_im_02_an_export_and_its_import_train_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store with packets, reports and ratings, exported and imported into an empty one: the same weights from both,
    and from the exported file itself."""
    monkeypatch.chdir(tmp_path)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    with moving(tmp_path / "one") as (source, now), moving(tmp_path / "two") as (target, later):
        work(source, now, 70)
        later[0] = now[0]
        run = CliRunner()
        at = ["--namespace", "n", "--address"]
        assert run.invoke(cli, ["export", "-o", "all.jsonl", *at, source.listen]).exit_code == 0
        assert run.invoke(cli, ["import", "all.jsonl", *at, target.listen]).exit_code == 0
        found = [
            trained(place, "--preview", "--base", "engine", "--out", out)
            for place, out in (("one/data", "m1"), ("two/data", "m2"), ("all.jsonl", "m3"))
        ]
    assert [code for code, _ in found] == [0, 0, 0]
    weights = [{name: (tmp_path / out / name).read_bytes() for name in ("weights.json", "manifest.json", "golden.json")}
               for out in ("m1", "m2", "m3")]  # fmt: skip
    assert weights[0] == weights[1] == weights[2]
