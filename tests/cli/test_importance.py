"""`importance` against a real server: a text, a file, a stored memory, a whole namespace; table, Markdown and JSON."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from sidecar.cli.failures import ExitCode
from sidecar.cli.group import cli
from tests.cli.conftest import Run
from tests.cli.test_memories import LINES, document
from tests.serving import running

DECISION = "Decision: Use PostgreSQL with pgvector for semantic search"
GIVEN = (
    *("--kind", "semantic", "--rating", "0.85", "--use-sessions", "12", "--recency", "0.9", "--emotion", "0.6"),
    *("--contextual-relevance", "0.95", "--metadata", "decision_type=architecture"),
)
"""The note's example."""


def test_a_text_is_shown_with_all_that_its_score_is_made_of(run: Run) -> None:
    """A line for each signal and its parts, what is sure, what moved it, and what to make of it."""
    shown = run("importance", DECISION, *GIVEN)
    assert shown.exit_code == 0
    for factor in ("Content Analysis", "  semantic density", "User Signal", "Access Pattern", "Emotional Salience"):
        assert factor in shown.stdout
    assert re.search(r"^score +0\.850, high importance$", shown.stdout, re.MULTILINE)
    assert re.search(r"^confidence +0\.\d\d, high confidence: multiple strong signals$", shown.stdout, re.MULTILINE)
    assert re.search(r"^half-life +90 days; ", shown.stdout, re.MULTILINE)
    for words in ("high user rating (0.85)", "12 sessions", "architectural decision", "prioritized in retrieval"):
        assert words in shown.stdout


def test_the_markdown_report_is_the_note_s(run: Run) -> None:
    """Its title, its table of factor, score, weight and contribution, its sections; contributions sum to the score."""
    report = run("importance", DECISION, *GIVEN, "--markdown").stdout
    assert report.startswith("# Importance Scorer Report\n")
    assert f'**Memory:** "{DECISION}"' in report
    assert "**Type:** semantic" in report
    assert re.search(r"\*\*Timestamp:\*\* \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", report)
    assert "| Factor | Score | Weight | Contribution |" in report
    assert re.search(r"\| User Signal \| 0\.85 \| 25% \| \+0\.21[23] \|", report)
    assert "| Emotional Salience | 0.60 | 15% | +0.090 |" in report
    assert "| Contextual Relevance | 0.95 | 10% | +0.095 |" in report
    assert "**Final Score:** 0.850" in report
    assert re.search(r"## Key Factors\n\n1\. high user rating", report)
    assert "**HIGH IMPORTANCE**" in report
    lines = re.findall(r"\| ([+-]\d\.\d{3}) \|$", report, re.MULTILINE)
    assert sum(map(float, lines)) == pytest.approx(0.85, abs=0.005)


def test_markup_in_a_text_is_no_markup_of_the_report(run: Run) -> None:
    """Nor does it command a terminal."""
    report = run("importance", "# Title | **bold** \x1b[31m\nnext", "--markdown").stdout
    assert r"\# Title \| \*\*bold\*\* " in report
    assert "\x1b" not in report
    assert "\x1b" not in run("importance", "red \x1b[31m alert").stdout


def test_a_file_and_standard_input_are_texts(run: Run) -> None:
    """As are words that no path could be."""
    Path("note.md").write_text(DECISION)
    found = [
        document(run("importance", "note.md", "--json")),
        document(run("importance", "-", "--json", stdin=DECISION)),
        document(run("importance", DECISION, "--json")),
    ]
    assert found[0]["lines"] == found[1]["lines"] == found[2]["lines"]
    assert found[0]["importance"]["score"] > 0.1
    assert run("importance", "x" * 5_000).exit_code == 0
    assert run("importance", "使用PostgreSQL/pgvector进行语义搜索").exit_code == 0
    missing = run("importance", "notes/missing.md")
    assert missing.exit_code == ExitCode.NOT_FOUND
    assert "there is no file notes/missing.md" in missing.stderr


@pytest.mark.parametrize(
    "given", [["planner"], ["planner=.8x"], ["planner=nan"], ["a=true"], ["a=.5", "a=.9"], ["=.5"]]
)
def test_another_agent_s_score_is_a_number_under_a_name_of_its_own(run: Run, given: list[str]) -> None:
    """Anything else is refused by the flag's name."""
    found = run("importance", "Use tabs", *[part for each in given for part in ("--agent-score", each)])
    assert found.exit_code == ExitCode.USAGE
    assert "--agent-score" in found.stderr
    said = run("importance", "Use tabs", "--agent-score", "planner=.8").stdout
    assert "another agent says 0.80" in said


def test_recommendations_go_by_tier_and_kind(run: Run) -> None:
    """A high one keeps a lasting kind's tier, or moves from a passing one to the semantic tier; it is preferred, and
    linked where it points to little. A low one may go; and one that is a guess says what would make it surer."""

    def told(*arguments: str) -> str:
        return run("importance", *arguments).stdout.partition("recommendation\n")[2]

    lasting = told("Anna chose tabs", "--kind", "decision", "--rating", "0.9")
    assert "- stored as decision memory" in lasting
    assert "- given the long half-life of its kind (180 days)" in lasting
    assert "- considered for cross-referencing" in lasting
    passing = told("Anna chose tabs", "--kind", "working", "--rating", "0.9", "--use-sessions", "3")
    assert "- stored in the semantic memory tier" in passing
    assert "- given the short half-life of its kind (1 day)" in passing
    low = told("ok thanks", "--kind", "working")
    assert "- kept as working memory, or let go" in low
    assert "- rated by its user or used in a few sessions" in low
    assert "prioritized" not in low
    assert "cross-referencing" not in told("See OPS-12 and docs/a.md because of it", "--rating", "0.9")


def test_nothing_is_stored(run: Run) -> None:
    """A text that is scored is compared, and that is all."""
    run("importance", DECISION)
    assert document(run("list", "--json"))["memories"] == []


def test_other_agents_are_shown_with_their_consensus(run: Run) -> None:
    """Beside the score, which they do not move."""
    alone = document(run("importance", DECISION, "--json"))
    scores = ("--agent-score", "planner=0.8", "--agent-score", "critic=0.4")
    together = document(run("importance", DECISION, *scores, "--json"))
    assert together["importance"]["score"] == alone["importance"]["score"]
    assert together["consensus"]["score"] == pytest.approx(0.6)
    assert together["consensus"]["spread"] == pytest.approx(0.2)
    assert "2 agents, consensus 0.60, spread 0.20" in run("importance", DECISION, *scores).stdout


def test_a_domain_has_weights_of_its_own(run: Run) -> None:
    """An unknown one is refused in words."""
    found = document(run("importance", DECISION, *GIVEN, "--domain", "code", "--json"))
    weights = {line["factor"]: line["weight"] for line in found["lines"]}
    assert weights["content"] == pytest.approx(0.35)
    refused = run("importance", DECISION, "--domain", "poetry")
    assert refused.exit_code == ExitCode.REFUSED
    assert "poetry" in refused.stderr


def test_a_whole_namespace_is_scored_highest_first(run: Run) -> None:
    """With how many are of which tier; --limit bounds the table alone, --json has all."""
    run("put", "--jsonl", "-", stdin=LINES)
    namespace = os.environ["MEMORY_RANKER_NAMESPACE"]
    shown = run("importance", "--namespace", namespace, "--limit", "2").stdout
    assert "... and 1 more" in shown
    assert re.search(r"^3 memories: \d high, \d moderate, \d low\.$", shown, re.MULTILINE)
    found = document(run("importance", "--namespace", namespace, "--json"))
    scores = [each["importance"]["score"] for each in found["results"]]
    assert scores == sorted(scores, reverse=True)
    assert {each["memory_id"] for each in found["results"]} == {"m1", "m2", "m3"}
    assert found["refused"] == []
    stored = document(run("importance", "--id", "m1", "--json"))
    assert stored["importance"]["score"] == next(
        each["importance"]["score"] for each in found["results"] if each["memory_id"] == "m1"
    )


def test_a_whole_store_is_scored(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every memory of every namespace, and of which each is."""
    run("put", "--jsonl", "-", stdin=LINES)
    first = os.environ["MEMORY_RANKER_NAMESPACE"]
    monkeypatch.setenv("MEMORY_RANKER_NAMESPACE", f"{first}-beside")
    run("put", "Deploys are on Tuesdays", "--id", "t1")
    namespaces = document(run("namespaces", "--json"))["namespaces"]
    found = document(run("importance", "--all-namespaces", "--json"))["results"]
    assert len(found) == sum(each["memory_count"] for each in namespaces)
    assert {each["memory_id"] for each in found if each["namespace"] == first} == {"m1", "m2", "m3"}
    assert [each["memory_id"] for each in found if each["namespace"] == f"{first}-beside"] == ["t1"]
    assert f"{first}-beside" in run("importance", "--all-namespaces", "--limit", str(len(found))).stdout


def test_candidates_are_passing_memories_worth_keeping(run: Run) -> None:
    """A rated working memory is one; a lasting one, or one of little worth, is none."""
    text = "Restart the billing worker after every certificate renewal, then check port 8443 with openssl"
    lines = [
        {"id": "keep", "content": text, "kind": "working", "importance_override": 0.9},
        {"id": "lasting", "content": f"{text} twice", "kind": "decision", "importance_override": 0.9},
        {"id": "chat", "content": "ok thanks", "kind": "episodic"},
    ]
    run("put", "--jsonl", "-", stdin="\n".join(map(json.dumps, lines)))
    found = document(run("importance", "--candidates", "--json"))
    assert {each["memory_id"] for each in found["results"]} == {"keep"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("text", "--id", "m1"), "not both"),
        (("text", "--markdown", "--json"), "exclude each other"),
        (("--rating", "0.5"), "with a text or --id"),
        (("text", "--candidates"), "of whole namespaces"),
        (("text", "--all-namespaces"), "of whole namespaces"),
        (("text", "--agent-score", "planner"), "NAME=NUMBER"),
    ],
)
def test_what_does_not_go_together_is_refused(run: Run, arguments: tuple[str, ...], words: str) -> None:
    """Before a server is asked."""
    refused = run("importance", *arguments)
    assert refused.exit_code == ExitCode.USAGE
    assert words in refused.output


def test_without_anything_to_score_it_says_what_to_give(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A namespace is scored as a whole only where it is named."""
    monkeypatch.delenv("MEMORY_RANKER_NAMESPACE")
    refused = run("importance")
    assert refused.exit_code == ExitCode.USAGE
    assert "--namespace" in refused.output


def test_bad_values_are_refused(run: Run) -> None:
    """A rating out of range by the server, with its field; an id that nobody stored is not there."""
    refused = run("importance", "text", "--rating", "7")
    assert refused.exit_code == ExitCode.REFUSED
    assert "user_rating" in refused.stderr
    unknown = run("importance", "--id", "nobody")
    assert unknown.exit_code == ExitCode.NOT_FOUND
    assert "nobody" in unknown.stderr


def test_a_namespace_that_is_not_there_is_no_empty_one(run: Run) -> None:
    """The one is not found; the other has nothing to score, and is done."""
    missing = run("importance", "--namespace", "nobody-wrote-here")
    assert missing.exit_code == ExitCode.NOT_FOUND
    assert "nobody-wrote-here" in missing.stderr
    run("put", "Deploys are on Tuesdays", "--id", "m1")
    run("delete", "m1")
    empty = run("importance", "--namespace", os.environ["MEMORY_RANKER_NAMESPACE"])
    assert (empty.exit_code, empty.stdout) == (ExitCode.OK, "0 memories: there is none to score.\n")


def test_a_server_that_scores_nothing_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of a namespace without memories, and of a store without any."""
    with running(tmp_path, importance_scorer_enabled="false") as server:
        monkeypatch.setenv("MEMORY_RANKER_LISTEN", server.listen)
        found = [CliRunner().invoke(cli, ["importance", "--all-namespaces"])]
        server.client.upsert("n", [{"id": "m", "content": "Deploys are on Tuesdays"}])
        server.client.delete("n", ["m"])
        found.append(CliRunner().invoke(cli, ["importance", "--namespace", "n"]))
    for each in found:
        assert each.exit_code == ExitCode.ERROR
        assert "importance_scorer_enabled is false" in each.stderr
        assert each.stdout == ""


def test_a_folder_is_named_and_no_text_and_a_pipe_is_read(run: Run, tmp_path: Path) -> None:
    """As a shell gives one for <(...)."""
    folder = tmp_path / "notes"
    folder.mkdir()
    refused = run("importance", str(folder))
    assert refused.exit_code == ExitCode.USAGE
    assert f"{folder} is a folder" in refused.stderr
    for nothing in ("", " "):
        refused = run("importance", nothing)
        assert (refused.exit_code, "the text is empty" in refused.stderr) == (ExitCode.USAGE, True)
    end, other = os.pipe()
    os.write(other, DECISION.encode())
    os.close(other)
    piped = document(run("importance", f"/dev/fd/{end}", "--json"))
    os.close(end)
    assert piped["lines"] == document(run("importance", DECISION, "--json"))["lines"]
