"""Ranking, reporting and explaining over the command line, against a real server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.cli.test_memories import LINES, document

TASK = "roll out with the canary"


@pytest.fixture
def packet(run: Run) -> Any:
    """A packet of the three memories."""
    run("put", "--jsonl", "-", stdin=LINES)
    return document(run("rank", TASK, "--session", "s1", "--json"))


def test_contributions_in_json_add_up_to_the_score(packet: Any) -> None:
    """A script that adds up what it reads gets the score to the last bit, highest first."""
    assert packet["packet_id"]
    assert [item["place"] for item in packet["items"]] == [1, 2, 3]
    for item in packet["items"]:
        total = 0.0
        for value in item["contributions"].values():
            total += value
        assert total == item["score"]
    assert packet["items"][0]["memory"]["id"] in ("m1", "m2")


def test_rank_shows_a_table_with_the_reasons(run: Run, packet: Any) -> None:
    """Place, score, segment, the largest contributions, and contents whole in a pipe; --explain none has no reasons."""
    shown = run("rank", TASK).stdout
    strongest = list(packet["items"][0]["contributions"])
    strongest.sort(key=lambda name: -packet["items"][0]["contributions"][name])
    assert f"{strongest[0]} ." in shown
    assert "Deploys need a green canary for 30 minutes" in shown
    assert "packet " in shown
    assert f"{strongest[0]} ." not in run("rank", TASK, "--explain", "none").stdout
    full = run("rank", TASK, "--explain", "full").stdout
    assert "contribution" in full
    assert "weight" in full
    assert "weight" in run("rank", TASK, "--explain").stdout


def test_every_option_of_rank_reaches_the_server(run: Run, tmp_path: Path) -> None:
    """Limits, filters, weights by name, file and value, time and dry run have their effect."""
    run("put", "--jsonl", "-", stdin=LINES)
    (tmp_path / "weights.toml").write_text(
        "use_family_cap = 0.2\n[features]\nrecency = 1\n[half_life_days]\nfact = 5\n"
    )

    def rank(*flags: str) -> Any:
        return document(run("rank", TASK, "--dry-run", "--explain", "full", "--json", *flags))

    assert len(rank("--max-items", "1")["items"]) == 1
    assert rank("--token-budget", "0")["items"] == []
    assert rank("--min-score", "0.99")["empty_reason"] == "below_min_score"
    assert [item["memory"]["id"] for item in rank("--kind", "debugging")["items"]] == ["m3"]
    assert rank("--weights", "engine")["model_version"] == "engine"
    by_value = rank("--weights", "weights.toml")
    assert by_value["model_version"] == "request"
    assert by_value["weights"]["features"]["recency"] == 1.0
    assert by_value["weights"]["use_family_cap"] == 0.2
    assert by_value["weights"]["half_life_days"]["fact"] == 5.0
    assert rank("--weights", '{"lexical": 0.5}')["weights"]["features"]["lexical"] == 0.5
    assert rank("--as-of", "2027-05-01")["as_of_time"] == "2027-05-01T00:00:00Z"
    assert rank()["packet_id"] == ""
    assert rank("--context-file", "deploy/lighthouse.yml", "--context-goal", "ship", "--context-project", "infra")[
        "items"
    ]


def test_unknown_weights_and_bad_bounds_name_the_field(run: Run) -> None:
    """Unknown weights are not found; values out of bounds are refused with every violation."""
    unknown = run("rank", TASK, "--weights", "no-such-preset")
    assert unknown.exit_code == 3
    assert "no-such-preset" in unknown.stderr
    result = run("rank", TASK, "--max-items", "0", "--min-score", "7", "--json")
    assert (result.exit_code, result.stdout) == (4, "")
    error = json.loads(result.stderr)["error"]
    assert {each["field"] for each in error["violations"]} == {"max_items", "min_score"}
    assert error["violations_total"] == 2
    shown = run("rank", TASK, "--max-items", "0", "--min-score", "7").stderr
    assert "max_items: " in shown
    assert "min_score: " in shown


def test_a_list_of_ones_own_is_ranked(run: Run, tmp_path: Path) -> None:
    """--candidates ranks what the file holds and stores nothing of it."""
    (tmp_path / "c.jsonl").write_text(LINES, encoding="utf-8")
    found = document(run("rank", TASK, "--candidates", "c.jsonl", "--json"))
    assert {item["memory"]["id"] for item in found["items"]} == {"m1", "m2", "m3"}
    assert document(run("list", "--json"))["memories"] == []
    (tmp_path / "bad.jsonl").write_text('{"id": "a", "content": "x"}\n{"content": "y"}\n')
    bad = run("rank", TASK, "--candidates", "bad.jsonl")
    assert bad.exit_code == 2
    assert "line 2: a candidate needs an id" in bad.stderr


def test_the_task_comes_from_standard_input_too(run: Run, packet: Any) -> None:
    """A long task need not fit on a command line."""
    piped = document(run("rank", "-", "--dry-run", "--json", stdin=TASK))
    typed = document(run("rank", TASK, "--dry-run", "--json"))
    assert [item["memory"]["id"] for item in piped["items"]] == [item["memory"]["id"] for item in typed["items"]]


def test_an_empty_packet_says_why_and_is_no_error(run: Run) -> None:
    """Nothing stored: code 0 and the reason in words."""
    result = run("rank", TASK)
    assert result.exit_code == 0
    assert "No memories: the namespace holds none." in result.stdout


def test_a_retry_with_the_same_request_id_is_the_same_packet(run: Run, packet: Any) -> None:
    """The second answer names the first packet."""
    first = document(run("rank", TASK, "--request-id", "r1", "--json"))
    second = document(run("rank", TASK, "--request-id", "r1", "--json"))
    assert second["packet_id"] == first["packet_id"]
    assert (first["replayed"], second["replayed"]) == (False, True)


def test_a_report_is_heard_and_shown_with_its_packet(run: Run, packet: Any) -> None:
    """Used ids count, the rest of the packet counts as not used, and `packet` shows both."""
    report = document(run("report-use", packet["packet_id"], "m1", "--json"))
    assert (report["used_count"], report["unused_count"], report["report_state"]) == (1, 2, "reported")
    shown = document(run("packet", packet["packet_id"], "--json"))
    assert shown["packet"]["items"][0]["contributions"] == packet["items"][0]["contributions"]
    assert {use["memory_id"]: use["used"] for use in shown["uses"]} == {"m1": True, "m2": False, "m3": False}
    text = run("packet", packet["packet_id"]).stdout
    assert "reported" in text
    assert "not used" in text


def test_the_smallest_payload_is_a_report(run: Run, packet: Any) -> None:
    """The JSON that an agent's tool sends is taken as an argument and on standard input, and flags go over it."""
    payload = json.dumps({"packet_id": packet["packet_id"], "kind": "explicit", "used_memory_ids": ["m2"]})
    assert document(run("report-use", "--json-payload", payload, "--json"))["used_count"] == 1
    assert document(run("report-use", "-", "--incomplete", "--json", stdin=payload))["unused_count"] == 0


def test_reports_of_unknown_things_are_told_apart(run: Run, packet: Any) -> None:
    """An unknown packet: code 3. One id that was not in the packet beside one that was: code 6, and it is named."""
    assert run("report-use", "no-such-packet", "m1").exit_code == 3
    partly = run("report-use", packet["packet_id"], "m1", "typo")
    assert partly.exit_code == 6
    assert "typo" in partly.stderr


def test_a_rating_stands_until_it_is_withdrawn(run: Run, packet: Any) -> None:
    """An unhelpful memory is left out of packets, and is back afterwards."""

    def served() -> set[str]:
        return {item["memory"]["id"] for item in document(run("rank", TASK, "--dry-run", "--json"))["items"]}

    assert document(run("rate", "m1", "unhelpful", "--reason", "old", "--json"))["left_out"] is True
    assert served() == {"m2", "m3"}
    assert "0 unhelpful" in run("rate", "m1", "withdrawn").stdout
    assert served() == {"m1", "m2", "m3"}


def test_why_tells_the_gate_and_the_way_in(run: Run, packet: Any) -> None:
    """For a packet that was served, and for a task that is ranked now."""
    served = run("why", packet["packet_id"], "m1")
    assert served.exit_code == 0
    assert "is in the packet, at place" in served.stdout
    run("update", "m1", "--suppressed")
    asked = document(run("why", "m1", "--task", TASK, "--json"))
    assert (asked["served"], asked["reason"]) == (False, "suppressed")
    assert "suppressed" in run("why", "m1", "--task", TASK).stdout
    outranked = document(run("why", "m3", "--task", TASK, "--max-items", "1", "--json"))
    assert outranked["reason"] == "outranked"
    assert outranked["smallest_change"]["field"]
    assert run("why", packet["packet_id"], "no-such-memory").exit_code == 3


def test_a_file_without_candidates_is_refused(run: Run, packet: Any) -> None:
    """A search that found nothing does not turn into one of all that is stored."""
    refused = run("rank", TASK, "--candidates", "-", stdin="\n")
    assert refused.exit_code == 2
    assert "holds no candidates; leave --candidates away" in refused.stderr
