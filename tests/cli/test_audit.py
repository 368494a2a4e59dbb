"""`audit` against a real server: words, figures, SQL and exit codes."""

from __future__ import annotations

import json
import os
import sqlite3

import pytest

from sidecar.cli.failures import ExitCode
from tests.cli.conftest import Run
from tests.cli.test_memories import LINES, document


@pytest.fixture
def served(run: Run) -> list[str]:
    """Thirty packets in as many sessions."""
    run("put", "--jsonl", "-", stdin=LINES)
    return [
        document(run("rank", "canary", "--session", f"s{n}", "--surface", "ide", "--json"))["packet_id"]
        for n in range(30)
    ]


def test_the_exit_code_says_what_is_wrong(run: Run, served: list[str]) -> None:
    """Starving has a code of its own; fed, the ranker is healthy, and --strict tells of a warning."""
    starving = run("audit")
    assert starving.exit_code == ExitCode.STARVING.value
    assert starving.stdout.startswith("starving\n- starving: 30 packets")
    for packet in served[:3]:
        run("report-use", packet, "m1")
    thin = run("audit")
    assert thin.exit_code == 0
    assert "- thin: 10 %" in thin.stdout
    assert run("audit", "--strict").exit_code == 24


def test_figures_are_shown_and_sent_as_json(run: Run, served: list[str]) -> None:
    """Whole store, memories by serves, and shares by namespace, agent and surface."""
    shown = run("audit").stdout
    for words in ("packets_with_feedback", "exposure_gini", "use_rate", "surface", "(none)"):
        assert words in shown
    asked = run("audit", "--window", "7d", "--json")
    assert asked.exit_code == 20
    found = json.loads(asked.stdout)
    assert found["verdict"] == "starving"
    assert {figure["name"]: figure["value"] for figure in found["figures"]}["packets"] == 30
    assert run("audit", "--window", "soon").exit_code == 2


def test_a_namespace_that_is_not_there_is_not_healthy(run: Run, served: list[str]) -> None:
    """A misspelt name is told as such, in words and in the JSON, and not taken for a log without faults."""
    asked = run("audit", "--namespace", "nosuch")
    assert (asked.exit_code, "there is no namespace nosuch" in asked.stderr) == (ExitCode.NOT_FOUND, True)
    assert json.loads(run("audit", "--namespace", "nosuch", "--json").stderr)["error"]["exit_code"] == 3


def test_the_sql_is_printed_for_any_client(run: Run) -> None:
    """Statements end in a semicolon and are SQL, each with its question as a comment; no server is asked."""
    printed = run("audit", "--sql", "--address", "unix:/nonexistent/socket", "--window", "7d")
    assert printed.exit_code == 0
    assert printed.stdout.count("-- ") == 4
    statements = [each for each in printed.stdout.split(";\n") if each.strip()]
    assert len(statements) == 4
    assert all(sqlite3.complete_statement(each + ";") for each in statements)
    assert "DOUBLE PRECISION" in run("audit", "--sql", "--postgresql").stdout
    assert run("audit", "--postgresql").exit_code == 2


def test_importances_are_audited_on_request(run: Run, served: list[str]) -> None:
    """How rescores moved them, by run; what cannot be told says INSUFFICIENT, in words and in the JSON."""
    before = run("audit", "--importance").stdout
    assert "trend of importances: INSUFFICIENT: no rescore" in before
    assert "fairness of importances: INSUFFICIENT" in before
    assert "importance" not in run("audit").stdout.split("packets_with_feedback")[0]
    moving = 0
    for number, packet in enumerate(served):
        run("report-use", packet, "m1")
        if number % 10 == 9:
            moving += document(run("rescore", "--apply", "--json"))["moved_count"] > 0
    assert moving
    namespace = os.environ["MEMORY_RANKER_NAMESPACE"]
    after = run("audit", "--importance", "--namespace", namespace).stdout
    assert f"trend of importances in {namespace}: INSUFFICIENT" in after
    assert f"over {moving} rescores of" in after
    found = json.loads(run("audit", "--importance", "--namespace", namespace, "--json").stdout)
    (trend,) = found["importance_trends"]
    assert trend["namespace"] == namespace
    assert trend["evidence"] == "insufficient"
    assert len(trend["runs"]) == moving
    assert {gap["evidence"] for gap in found["importance_gaps"]} <= {"insufficient"}
    assert all("low" not in gap for gap in found["importance_gaps"])
