"""Every example in the help is run as it stands there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sidecar.cli.connection import Connection
from sidecar.cli.demo_server import running_server, temporary_folder
from sidecar.cli.failures import ExitCode
from sidecar.cli.group import cli
from sidecar.store.restore import restore
from tests.serving import TELLING, ended, finished
from tests.weights.making import make_artifact

EXAMPLES = [
    (name, line.strip())
    for name, command in cli.commands.items()
    for line in (command.epilog or "").splitlines()
    if "memory-ranker " in line
]
SERVE = [line for name, line in EXAMPLES if name == "serve"]
OTHERS = [line for name, line in EXAMPLES if name not in ("serve", "demo")]
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
FILES = {
    "memories.jsonl": "".join(
        f'{{"id": "m{number}", "content": "memory {number} of deploys", "metadata": {{"team": "billing"}}}}\n'
        for number in range(1, 6)
    ),
    "weights.toml": "[features]\nlexical = 0.6\nrecency = 0.4\n",
    "chat.jsonl": '{"message": {"text": "deploys are on Tuesdays"}, "ts": 1775000000, "from": "priya"}\n',
    "MEMORY.md": "# Memory\n\n- Deploys are on Tuesdays.\n",
    "CLAUDE.md": "- Be brief. See @notes/outage.md.\n",
    "memory/2026-04-01.md": "- Met Priya.\n",
    "notes/outage.md": "The outage of May began with a full disk.\n",
    "judged/ops.json": '{"id": "ops", "memories": [{"id": "a", "content": "Deploys are on Tuesdays"}, '
    '{"id": "b", "content": "Lunch is at noon"}], "queries": [{"query": "when do we deploy", "relevant": ["a"]}]}',
}


@pytest.fixture
def workplace(tmp_path: Path) -> Path:
    """A folder with the files that examples name."""
    for name, content in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
    return tmp_path


@pytest.fixture
def alone(server: Connection, workplace: Path, line: str) -> Iterator[Connection]:
    """The server; for commands about models one of its own, for a model that serves is all namespaces' matter."""
    if line.split()[1] not in ("promote", "rollback", "models"):
        yield server
        return
    with temporary_folder(keep=False) as folder, running_server(folder) as own, own.client() as client:
        client.load_model(archive=make_artifact(workplace / "model").archive)
        yield own


@pytest.fixture
def environ(alone: Connection, workplace: Path, line: str) -> dict[str, str]:
    """A shell's environment with a server, memories m1 to m5 in a namespace of its own, and a packet of them."""
    named = [name for name in ("--namespace default", "purge example-namespace") if name in line]
    namespace = named[0].split()[1] if named else f"example-{OTHERS.index(line)}"
    if "--role" in line:
        with alone.client() as client:
            client.rollback_model()
    with alone.client() as client:
        client.upsert(namespace, [{"id": f"m{n}", "content": f"memory {n} of deploys", "metadata": {"team": "billing"}}
                                  for n in range(1, 6)])  # fmt: skip
        packet = client.rank(namespace, "deploys").packet_id
        version = next((model.version for page in client.models() for model in page.models), "")
        if line.split()[1] in ("check", "restore"):
            client.backup(str(workplace / "backup-monday"), timeout=60)
            restore(workplace / "backup-monday", workplace / ".local" / "share" / "memory-ranker", 0)
    return {
        "PATH": PATH,
        "HOME": str(workplace),
        "PACKET": packet,
        "VERSION": version,
        "MEMORY_RANKER_LISTEN": alone.address,
        "MEMORY_RANKER_NAMESPACE": namespace,
    }


@pytest.mark.parametrize("line", OTHERS)
def test_an_example_does_what_it_shows(line: str, environ: dict[str, str], workplace: Path) -> None:
    """It ends with code 0 and says nothing on standard error."""
    found = ended(["sh", "-c", line], within=60, env=environ, cwd=workplace)
    assert (found.returncode, found.stderr) == (0, ""), found.stdout


@pytest.mark.parametrize("line", SERVE)
def test_an_example_of_serve_serves(line: str, folder: Path) -> None:
    """It gets ready and stops when told to."""
    home = folder / f"home{SERVE.index(line)}"
    home.mkdir()
    process = subprocess.Popen(
        ["sh", "-c", f"exec {line}"],
        env={"PATH": PATH, "HOME": str(home), **TELLING},
        cwd=home,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    said = process.stderr.readline()
    process.send_signal(signal.SIGTERM)
    finished(process)
    if process.returncode == ExitCode.TAKEN and "7070" in line:
        pytest.skip("something else on this machine has the example's port")
    assert "serving on" in said
    assert process.returncode == 0
