"""The image, built by its Dockerfile's own steps on a bare Debian, and used as its manifests say."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from memoryranker.client import Client

from sidecar.weights.artifact import read_artifact
from tests.clients.languages import environment
from tests.clients.server import converse
from tests.deploy import files, image
from tests.deploy.image import IDENTITY, Contained, Podman
from tests.deploy.tools import CHECKED
from tests.training.test_end_to_end import LOWER, moving, work

pytestmark = [CHECKED, pytest.mark.timeout(1200)]
CLIENT = files.ROOT / "tests" / "clients" / "python"
SCENARIO = files.ROOT / "tests" / "clients" / "scenario.json"
ASKED = """
import sys, urllib.request
for path in sys.argv[1:]:
    with urllib.request.urlopen("http://127.0.0.1:9464" + path) as answer:
        print(path, answer.status)
"""


@contextmanager
def serving(podman: Podman, data: Path | None = None, **environ: str) -> Iterator[Contained]:
    """A ready server in a container as confined as the compose file's, with its variables and `environ`, and a copy of
    the store in `data`."""
    with tempfile.TemporaryDirectory(prefix="mr-") as folder:
        if data:
            shutil.copytree(data, Path(folder) / "data")
        given = files.composed()["memory-ranker"]["environment"] | environ
        server = Contained(podman, Path(folder), given)
        server.control("start")
        try:
            with Client(server.listen, timeout=60, wait_for_ready=True) as client:
                client.status()
            yield server
        finally:
            podman.run("rm", "--force", "--time=0", server.name)


def test_the_scenario_holds_in_the_image(podman: Podman) -> None:
    """As a user without rights, with a root that is not written to and no network, the server holds the scenario while
    its container is paused, killed and started."""
    with serving(podman) as server:
        command = [sys.executable, "thin_calls.py", str(SCENARIO), server.listen]
        lines = converse(command, CLIENT, environment(server.listen), server)
        assert lines == [f"ok {step['name']}" for step in json.loads(SCENARIO.read_text(encoding="utf-8"))["steps"]]
        state = dict(line.split(":\t") for line in server.inside("cat", "/proc/1/status").splitlines())
        assert state["Uid"].split() == state["Gid"].split() == [str(IDENTITY)] * 4
        assert int(state["CapEff"], 16) == int(state["CapBnd"], 16) == 0
        assert state["NoNewPrivs"] == "1"
        words = server.inside("cat", "/proc/1/cmdline").split("\0")
        assert words[1:3] == ["/opt/memory-ranker/bin/memory-ranker", "serve"]
        mounted = [line.split() for line in server.inside("cat", "/proc/1/mounts").splitlines()]
        assert next(options for _, place, _, options, *_ in mounted if place == "/").split(",")[0] == "ro"


def test_probes_and_the_health_check_answer(podman: Podman) -> None:
    """The three paths of the HTTP port answer in the container, and so does the image's own health check."""
    with serving(podman) as server:
        paths = ("/livez", "/readyz", "/metrics")
        assert server.inside("python", "-c", ASKED, *paths).splitlines() == [f"{path} 200" for path in paths]
        podman.run("healthcheck", "run", server.name)


def test_a_stop_is_an_ordered_end(podman: Podman) -> None:
    """`stop` reaches the server itself, which ends with 0 well before it would be killed."""
    with serving(podman) as server:
        start = time.monotonic()
        podman.run("stop", "--time=60", server.name)
        assert time.monotonic() - start < 30
        assert podman.run("inspect", "--format={{.State.ExitCode}}", server.name).stdout.strip() == "0"


def test_only_the_socket_s_group_may_call(podman: Podman) -> None:
    """In a container of another user, one with the group is answered and one without it is not."""
    with serving(podman) as server:
        mount = server.mounts()[1]
        answers = {
            user: podman.once("server", f"--user={user}", mount, command=["memory-ranker", "status"], check=False)
            for user in (f"20001:{IDENTITY}", "20001:20001")
        }
        assert [answer.returncode for answer in answers.values()] == [0, 5], answers


def test_a_folder_that_cannot_be_written_to_is_named(podman: Podman) -> None:
    """Without a place for its data the server ends and says which path it needs."""
    with tempfile.TemporaryDirectory(prefix="mr-") as folder:
        os.chown(folder, IDENTITY, IDENTITY)
        options = [*image.confined(), f"--volume={folder}:/data:ro"]
        ran = podman.once("server", *options, command=["memory-ranker", "serve"], check=False)
        assert ran.returncode != 0
        assert "/data" in ran.stderr


def test_the_image_has_what_it_needs_and_no_more(podman: Podman) -> None:
    """No sources, wheels, installers or compilers; OpenMP is there, and only the trainer can train."""
    script = "ls -d /src /wheels /opt/build /opt/memory-ranker/bin/pip; command -v gcc"
    assert podman.once("server", command=["/bin/sh", "-c", script], check=False).stdout.split() == []
    podman.once("server", command=["python", "-c", "import faiss, wordllama"])
    assert podman.once("server", command=["python", "-c", "import lightgbm"], check=False).returncode == 1
    podman.once("trainer", command=["python", "-c", "import lightgbm, pyarrow, scipy"])


NIGHT = """
sleep() { mkdir /tmp/slept 2> /dev/null || kill -TERM $$; }
"""
"""The first night comes at once, and SIGTERM instead of the second."""


def test_the_nightly_container_learns_where_the_data_is(podman: Podman) -> None:
    """One night of the script that runs beside the server rescores and trains from the store in use, and asks for the
    promotion, which the gates grant here; it ends on SIGTERM. A person's word takes it back."""
    with tempfile.TemporaryDirectory(prefix="mr-") as made:
        with moving(Path(made)) as (used, now):
            work(used, now, 420)
        script = files.NIGHTLY.read_text(encoding="utf-8")
        assert 'memory-ranker train "' in script
        # So little a store is too little for a nightly run, and what a night may move too little to be surely better on
        # it; the gates of a promotion stay as they are.
        further = (*LOWER, "--max-step", "0.15", "--max-l1", "0.5")
        script = script.replace('memory-ranker train "', f'memory-ranker train {" ".join(further)} "')
        with serving(podman, Path(made) / "data", MEMORY_RANKER_EMBEDDER="none") as server:
            options = [*image.confined("nightly"), *server.mounts()]
            night = podman.once("trainer", *options, command=["/bin/sh", "-c", NIGHT + script])
            assert "used in 0 of" in night.stdout
            artifact = read_artifact(server.data / "trained")
            assert f"{artifact.version} is active now" in night.stdout
            with Client(server.listen, timeout=60) as client:
                assert client.status().model_version == artifact.version
                podman.once("trainer", *options, command=["memory-ranker", "rollback"])
                assert client.status().model_version == "default"
