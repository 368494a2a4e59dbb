"""`prune` against a real server."""

from __future__ import annotations

from tests.cli.conftest import Run
from tests.cli.test_memories import LINES, document


def test_prune_says_what_went_and_keeps_what_training_needs(run: Run) -> None:
    """Young packets stay, and asking for them is refused with the setting that keeps them."""
    run("put", "--jsonl", "-", stdin=LINES)
    run("rank", "canary")
    assert "0 packets and 0 reports would be removed" in run("prune", "--older-than", "90d", "--dry-run").stdout
    done = document(run("prune", "--max-bytes", "0", "--json"))
    assert (done["packet_count"], done["freed_bytes"]) == (0, 0)
    refused = run("prune", "--older-than", "7d")
    assert refused.exit_code == 4
    assert "prune_keep_days" in refused.stderr
    assert run("prune").exit_code == 2
    assert run("prune", "--max-bytes", "-1").exit_code == 4
    assert int(document(run("status", "--json"))["log_bytes_per_day"]) > 0
