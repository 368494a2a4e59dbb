"""The files in deploy/ agree with the program, and with each other."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import click
import pytest

from sidecar.cli.group import cli
from sidecar.config import Settings, resolve
from tests.deploy import files

COMMANDS = list(files.commands())
SERVICES = [path for path in files.UNITS if path.suffix == ".service"]
SERVERS = {
    "Dockerfile": files.image_environment(),
    "compose": files.image_environment() | files.composed()["memory-ranker"]["environment"],
    "kubernetes": files.container_environment("memory-ranker"),
    "systemd": files.unit_environment(files.DEPLOY / "systemd" / "memory-ranker.service"),
}
IDENTITY = "10001"


def parse(words: list[str]) -> None:
    """Reads a command line as the program does, up to where the command would run."""
    command = cli.get_command(click.Context(cli), words[0])
    if command is None:
        raise click.UsageError(f"there is no command {words[0]}")
    command.make_context(words[0], words[1:])


def settings(environ: dict[str, str]) -> Settings:
    """What a server is set to that finds these variables."""
    ours = {name: str(value) for name, value in environ.items() if name.startswith("MEMORY_RANKER_")}
    return resolve({}, {"HOME": "/nowhere", **ours}).settings


@pytest.mark.parametrize(("file", "words"), COMMANDS, ids=[f"{file}: {' '.join(words)}" for file, words in COMMANDS])
def test_every_command_line_is_one_of_ours(file: str, words: list[str]) -> None:
    """Each command line in these files is read by the command line itself without an objection."""
    parse(words)


def test_what_is_not_one_of_ours_is_told() -> None:
    """The test above can fail: on a command that is not there, and on an option that it does not have."""
    for words in (["learn"], ["rescore", "--apple"], ["promote"]):
        with pytest.raises(click.UsageError):
            parse(words)


def test_every_file_has_its_commands() -> None:
    """None of the files was read past: each names the commands that are its purpose."""
    named = {(file, words[0]) for file, words in COMMANDS}
    for file in ("Dockerfile", "memory-ranker.service"):
        assert (file, "serve") in named
    for command in ("rescore", "train", "promote"):
        assert ("nightly.sh", command) in named
        assert (f"memory-ranker-{command.replace('promote', 'train')}.service", command) in named


@pytest.mark.parametrize("name", SERVERS)
def test_every_variable_is_a_setting(name: str) -> None:
    """The server takes all variables of each way to run it, and its data and socket have a place of their own."""
    found = settings(SERVERS[name])
    assert found.listen == "unix:/run/memory-ranker/memory-ranker.sock"
    assert str(found.data) == ("/var/lib/memory-ranker" if name == "systemd" else "/data")


@pytest.mark.parametrize("path", SERVICES, ids=lambda path: path.name)
def test_the_timers_commands_find_the_server(path: Path) -> None:
    """All units agree on the store and the socket."""
    ours = files.unit_environment(path)
    server = SERVERS["systemd"]
    assert {name: ours[name] for name in ("MEMORY_RANKER_DATA", "MEMORY_RANKER_LISTEN")} == {
        name: server[name] for name in ("MEMORY_RANKER_DATA", "MEMORY_RANKER_LISTEN")
    }
    assert files.unit(path)["User"] == files.unit(path)["Group"] == ["memory-ranker"]


def test_every_timer_has_its_service() -> None:
    """Each timer starts the service of its name, is started by timers.target, and catches up on what it missed."""
    timers = [path for path in files.UNITS if path.suffix == ".timer"]
    assert timers
    for path in timers:
        assert path.with_suffix(".service") in SERVICES
        assert files.unit(path)["WantedBy"] == ["timers.target"]
        assert files.unit(path)["Persistent"] == ["true"]


def test_a_stop_leaves_time_to_drain() -> None:
    """Each way to run it gives a stopping server more time than drain_seconds."""
    grace = {
        "compose": int(files.composed()["memory-ranker"]["stop_grace_period"].removesuffix("s")),
        "kubernetes": files.stateful_set()["template"]["spec"]["terminationGracePeriodSeconds"],
        "systemd": int(files.unit(files.DEPLOY / "systemd" / "memory-ranker.service")["TimeoutStopSec"][0]),
    }
    for name, seconds in grace.items():
        assert seconds > settings(SERVERS[name]).drain_seconds


def test_a_pod_keeps_its_data_and_shares_its_socket() -> None:
    """The data is on a claim of the StatefulSet, never in a volume that goes with the pod; the socket is in an emptyDir
    that belongs to the group of all containers."""
    spec = files.stateful_set()
    pod = spec["template"]["spec"]
    claims = {each["metadata"]["name"] for each in spec["volumeClaimTemplates"]}
    volumes = {each["name"]: each for each in pod["volumes"]}
    for name in ("memory-ranker", "nightly"):
        mounts = {each["mountPath"]: each["name"] for each in files.containers()[name]["volumeMounts"]}
        assert mounts["/data"] in claims - set(volumes)
        assert "emptyDir" in volumes[mounts["/run/memory-ranker"]]
    agent = {each["mountPath"] for each in files.containers()["agent"]["volumeMounts"]}
    assert agent == {"/run/memory-ranker"}
    assert str(pod["securityContext"]["fsGroup"]) == IDENTITY
    assert settings(SERVERS["kubernetes"]).socket_access == "group"


def test_the_nightly_script_is_what_runs_beside_the_server() -> None:
    """Compose and the pod start, beside the server, the script that the trainer's image has on its path; nothing else
    of theirs takes the place of the image's own command."""
    (copied,) = [rest.split() for word, rest in files.instructions() if word == "COPY" and "nightly" in rest]
    assert copied == ["deploy/nightly.sh", "/usr/local/bin/nightly"]
    assert files.NIGHTLY.stat().st_mode & 0o111
    assert files.composed()["nightly"]["build"]["target"] == "trainer"
    places = {"entrypoint": files.composed(), "command": files.containers()}
    for word, services in places.items():
        found = {name: each[word] for name, each in services.items() if word in each}
        assert found == {"nightly": ["nightly"]}
    assert not any("command" in each for each in files.composed().values())
    assert not any("args" in each for each in files.containers().values())


def test_a_pod_s_sidecars_are_native() -> None:
    """Server and nightly job start before the agent, the server first, and are stopped after it."""
    pod = files.stateful_set()["template"]["spec"]
    assert [each["name"] for each in pod["initContainers"]] == ["memory-ranker", "nightly"]
    assert {each["restartPolicy"] for each in pod["initContainers"]} == {"Always"}
    assert "startupProbe" in files.containers()["memory-ranker"]


def test_probes_ask_the_http_port() -> None:
    """Each probe asks a path of the HTTP port, at the port that the server is told to open."""
    container = files.containers()["memory-ranker"]
    ports = {each["name"]: each["containerPort"] for each in container["ports"]}
    http = settings(SERVERS["kubernetes"]).http
    asked = {}
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        get = container[probe]["httpGet"]
        asked[probe] = get["path"]
        assert http.endswith(f":{ports[get['port']]}")
    assert asked == {"startupProbe": "/readyz", "readinessProbe": "/readyz", "livenessProbe": "/livez"}


def locked(container: dict[str, Any]) -> bool:
    """Whether a pod's container has no right that it does not need."""
    context = container["securityContext"]
    return bool(
        context["readOnlyRootFilesystem"]
        and not context["allowPrivilegeEscalation"]
        and context["capabilities"] == {"drop": ["ALL"]}
    )


def test_nobody_is_root_and_every_root_is_read_only() -> None:
    """In the image, in compose and in the pod: one user, no rights, a root that is not written to, and limits."""
    assert files.last("USER") == f"{IDENTITY}:{IDENTITY}"
    pod = files.stateful_set()["template"]["spec"]["securityContext"]
    assert pod["runAsNonRoot"]
    assert str(pod["runAsUser"]) == str(pod["runAsGroup"]) == IDENTITY
    for container in files.containers().values():
        assert locked(container)
        assert "memory" in container["resources"]["limits"]
    for service in files.composed().values():
        assert service["user"] == f"{IDENTITY}:{IDENTITY}"
        assert service["read_only"]
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service["mem_limit"]


def test_the_image_starts_the_program_itself() -> None:
    """The entry point is a list, so that signals reach the server and no shell; what it needs is named, and the last
    stage, which is built by default, is the server's."""
    assert json.loads(files.last("ENTRYPOINT")) == ["memory-ranker"]
    assert json.loads(files.last("CMD")) == ["serve"]
    stages = [shlex.split(rest) for word, rest in files.instructions() if word == "FROM"]
    assert stages[-1][-1] == "server"
    assert len(stages) > 2
    assert any("libgomp1" in rest for word, rest in files.instructions() if word == "RUN")


def test_only_the_named_folders_go_into_the_build() -> None:
    """What the Dockerfile copies from the repository is let in by .dockerignore, and nothing else is."""
    ignored = (files.ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    assert ignored[0] == "*"
    copied = {
        source if source.startswith("deploy/") else source.split("/")[0]
        for word, rest in files.instructions()
        if word == "COPY" and not rest.startswith("--from")
        for source in rest.split()[:-1]
    }
    assert copied == {each.removeprefix("!") for each in ignored if each.startswith("!")}
