"""What the notes say of a ranking, shown on a running server: what ranks high, how fast, and all of it here."""

from __future__ import annotations

import datetime
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest
from memoryranker.client import Client
from memoryranker.v1 import ranker_pb2

from tests.notes_store import LATER, SUBJECTS, TASK, part, scores, serve_only, write, write_alike
from tests.serving import Running, running, wait_until_scored
from tests.weights.test_presets import SMARTCTX_EXAMPLES, SMARTCTX_TASK

ROOT = Path(__file__).resolve().parent.parent


def test_smartctx_scores_a_store_as_its_note_does(client: Client, namespace: str) -> None:
    """The memories that were worked by hand have those scores from a running server, in that order."""
    expected = {}
    for number, (kind, relevance, sessions, content, score) in enumerate(SMARTCTX_EXAMPLES):
        name = f"m{number}"
        expected[name] = score
        client.upsert(namespace, [{"id": name, "kind": kind, "relevance": relevance, "content": content}])
        for session in range(min(sessions, 6)):  # the bonus has ended by then
            client.report_use(serve_only(client, namespace, name, f"{name} {session}").packet_id, [name])
    found = scores(client, namespace, SMARTCTX_TASK, "smartctx")
    assert found == pytest.approx(expected, abs=1e-12)
    assert list(found) == sorted(expected, key=lambda name: -expected[name])


def test_a_packet_holds_at_most_what_was_asked_for(client: Client, namespace: str) -> None:
    """Of eight memories the best three are in the packet, and the others are counted as outranked."""
    write_alike(client, namespace, 8)
    best = sorted(scores(client, namespace).items(), key=lambda pair: (-pair[1], pair[0]))[:3]
    packet = client.rank(namespace, TASK, max_items=3, as_of_time=LATER)
    assert [(item.memory.id, item.score) for item in packet.items] == best
    assert [(left.reason, left.count) for left in packet.left_out] == [(ranker_pb2.LEFT_OUT_REASON_OUTRANKED, 5)]


def test_scores_follow_the_time_that_is_ranked_for(client: Client, namespace: str) -> None:
    """The same memory and task score lower as time goes by: nothing is fixed when a memory is written."""
    write_alike(client, namespace, 1)
    found = [
        client.rank(namespace, TASK, as_of_time=LATER + datetime.timedelta(days=days), dry_run=True).items[0].score
        for days in (0, 1, 90, 900)
    ]
    assert found == sorted(set(found), reverse=True)


def test_a_memory_on_the_topic_ranks_higher_without_a_shared_word(client: Client, namespace: str) -> None:
    """For work on authentication, a memory about passwords stands above one about soup."""
    write(
        client,
        namespace,
        {
            "canteen": "The canteen serves soup on Fridays.",
            "login": "Users enter a password to sign in.",
            "garden": "Roses are cut back in March.",
        },
    )
    assert next(iter(scores(client, namespace, "authentication", "engine"))) == "login"


def test_case_does_not_matter(client: Client, namespace: str) -> None:
    """A task in capitals finds a memory in small letters, and the other way round."""
    write(client, namespace, {"small": "the invoice export", "capitals": "THE TIMEOUT REPORT"})
    for weights in ("smartctx", "default"):
        for name in ("small", "capitals"):
            asked = [part(client, namespace, name, "lexical", task, weights) for task in (TASK, TASK.upper())]
            assert asked[0] == asked[1] > 0


def test_a_tasks_words_stand_between_white_space(client: Client, namespace: str) -> None:
    """Spaces, tabs and line ends part the words of a task: here four, of which one is borne."""
    write(client, namespace, {"m": "an invoice"})
    assert part(client, namespace, "m", "lexical", " late\tinvoice\n\nexport  timeout ", "smartctx") == pytest.approx(
        0.25 / 4
    )


def test_log_does_not_find_dialog(client: Client, namespace: str) -> None:
    """A task word inside another word is no match, whatever the weights are."""
    write(client, namespace, {"dialog": "Close the dialog first.", "log": "Read the log first."})
    for weights in ("smartctx", "default"):
        assert part(client, namespace, "dialog", "lexical", "log", weights) == 0.0
        assert part(client, namespace, "log", "lexical", "log", weights) > 0.0


@pytest.mark.parametrize(
    "handle",
    ["OPS-4711", "src/billing/export.py", "rotateApiKey", "parse_invoice()", "2026-05-17", "#8123", '"net thirty"'],
)
def test_concrete_handles_of_a_memory_are_found(client: Client, namespace: str, handle: str) -> None:
    """Tickets, paths, function names, dates, order numbers and quoted values point at the memory that bears them."""
    write(client, namespace, {"bears": f"Kim settled {handle} last week.", "other": "Kim settled the rest last week."})
    task = f"what was decided about {handle}?"
    assert part(client, namespace, "bears", "handles", task) > part(client, namespace, "other", "handles", task) == 0.0


def test_a_name_in_the_task_is_whom_a_memory_is_about(client: Client, namespace: str) -> None:
    """A person or thing that the task names lifts the memories that are about it."""
    subjects = [("kim", "Kim", "Moved the export to Monday."), ("lee", "Lee", "Moved the import to Sunday.")]
    client.upsert(namespace, [{"id": name, "subject": who, "content": said} for name, who, said in subjects])
    task = "what did Kim move?"
    assert part(client, namespace, "kim", "subject", task) > part(client, namespace, "lee", "subject", task)


def test_ranking_needs_no_embedder(tmp_path: Path) -> None:
    """Without any embedding model the right memory still comes first, and the answer says what was missing."""
    with running(tmp_path, embedder="none") as server:
        write(
            server.client,
            "n",
            {"canteen": "The canteen serves soup on Fridays.", "export": "The invoice export has a timeout of 30 s."},
        )
        for weights in ("smartctx", "default"):
            packet = server.client.rank("n", TASK, weights=weights)
            assert packet.items[0].memory.id == "export", weights
            assert [each.reason for each in packet.degradations] == [ranker_pb2.DEGRADATION_REASON_NO_EMBEDDING]


def test_scores_are_said_to_be_no_probabilities() -> None:
    """The API tells whoever reads a score what it is for."""
    proto = (ROOT / "proto" / "memoryranker" / "v1" / "ranker.proto").read_text(encoding="utf-8")
    (said,) = re.findall(r"((?:  //.*\n)+)  double score = 3;\n  // What each feature added", proto)
    assert "not a probability" in said


def test_several_thousand_memories_rank_in_under_50_ms(running_server: Running) -> None:
    """Five thousand memories are ranked, over the socket and with the log, in under 50 ms at the median: of processor
    time, client and server together, for what else the machine does is no part of it."""
    client = running_server.client
    for batch in range(5):
        contents = {
            f"m{batch}-{row}": f"Note {row} of {SUBJECTS[row % 8]} {batch}: {TASK if row % 7 == 0 else 'all went well'}"
            for row in range(1000)
        }
        write(client, "n", contents)
    wait_until_scored(client, "n")
    seconds = []
    for number in range(21):
        start = time.process_time()
        packet = client.rank("n", TASK, session_id=f"s{number}", max_items=20)
        seconds.append(time.process_time() - start)
        assert len(packet.items) == 20
    assert statistics.median(seconds) < 0.050


WITHOUT_A_NETWORK = """
import pathlib, sys
from tests.serving import running

with running(pathlib.Path(sys.argv[1])) as server:
    server.client.upsert("n", [{"id": "login", "content": "Users enter a password to sign in."},
                               {"id": "soup", "content": "The canteen serves soup on Fridays."}])
    packet = server.client.rank("n", "authentication", weights="engine")
    server.client.report_use(packet.packet_id, ["login"])
    server.client.rate("n", "login", "helpful")
    assert not packet.degradations, packet.degradations
    print(packet.items[0].memory.id)
"""


def test_everything_works_without_a_network(tmp_path: Path) -> None:
    """In a process that has no network at all, memories are embedded, ranked, reported on and rated."""
    alone = [shutil.which("unshare") or "unshare", "--map-root-user", "--net"]
    try:
        subprocess.run([*alone, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this machine cannot take a process off the network")
    done = subprocess.run(
        [*alone, sys.executable, "-c", WITHOUT_A_NETWORK, tmp_path],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "login"), done.stderr
