"""Measuring from the command line: no server, figures that a script can read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from sidecar.cli.group import cli

STORE = str(Path(__file__).resolve().parents[2] / "sidecar" / "demo" / "store.json")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["eval", *arguments], prog_name="memory-ranker")


@pytest.fixture(scope="module")
def systems() -> Any:
    """The shipped weights, a note's, and one feature, without vectors."""
    done = run(
        STORE, "--weights", "default", "--weights", "engine", "--feature", "lexical", "--embedder", "none", "--json"
    )
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert list(found) == ["systems"]
    return found["systems"]


def test_json_has_each_system_with_its_measures(systems: Any) -> None:
    """Names in the order given, the tasks counted, every measure in [0, 1]."""
    assert [system["name"] for system in systems] == ["default", "engine", "lexical"]
    for system in systems:
        assert system["queries"] == 100
        for measure in ("recall@5", "recall@10", "recall@25", "ndcg@10", "mrr"):
            assert 0.0 <= system[measure] <= 1.0
        assert sum(category["queries"] for category in system["categories"]) == 100


def test_differences_are_paired_with_intervals(systems: Any) -> None:
    """Each system is compared with each other one; both ways say the same with the sign turned."""
    default, engine, _ = systems
    there, back = default["differences"][0]["ndcg@10"], engine["differences"][0]["ndcg@10"]
    assert (default["differences"][0]["to"], engine["differences"][0]["to"]) == ("engine", "default")
    assert there["mean"] == pytest.approx(default["ndcg@10"] - engine["ndcg@10"])
    assert there["low"] < there["mean"] < there["high"]
    assert (there["low"], there["high"]) == pytest.approx((-back["high"], -back["low"]))


def test_without_vectors_words_carry_the_ranking(systems: Any) -> None:
    """With no embedder the default is about as good as words are, and far above a formula that has none."""
    default, engine, lexical = systems
    assert default["ndcg@10"] > lexical["ndcg@10"] - 0.01
    assert default["ndcg@10"] > engine["ndcg@10"] + 0.3


def test_people_read_tables(tmp_path: Path) -> None:
    """The measures, the categories and the differences, with weights of one's own from a file."""
    mine = tmp_path / "mine.toml"
    mine.write_text("lexical = 0.5\nhandles = 0.5\n", encoding="utf-8")
    done = run(STORE, "--weights", str(mine), "--weights", "default", "--embedder", "none")
    assert done.exit_code == 0, done.output
    for part in ("ndcg@10", "paraphrase", f"{mine} - default", "95 %"):
        assert part in done.output


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ([STORE, STORE], 2, "two data sets have the id"),
        ([STORE, "--weights", "defalt"], 3, "Did you mean 'default'?"),
        ([STORE, "--feature", "lexicl"], 2, "lexicl"),
        ([STORE, "--embedder", "gpt"], 2, "'gpt' is not known"),
        ([STORE, "--weights", "default", "--weights", "default"], 2, "named twice"),
        ([], 2, "DATASET"),
    ],
)
def test_what_cannot_be_measured_is_refused(arguments: list[str], code: int, words: str) -> None:
    """Each fault is named, and the exit code says that the call was wrong, or that weights are not there."""
    done = run(*arguments)
    assert done.exit_code == code
    assert words in done.output
