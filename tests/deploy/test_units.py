"""The units under a real systemd, with everything that they forbid."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from memoryranker.client import Client

from tests.deploy import files, machine
from tests.deploy.image import Podman
from tests.deploy.machine import Machine
from tests.deploy.tools import CHECKED, need

pytestmark = [CHECKED, pytest.mark.timeout(1200)]
UNIT = "memory-ranker.service"


@pytest.fixture(scope="module")
def booted(podman: Podman) -> Iterator[Machine]:
    """A machine that has started, with all units enabled."""
    need(machine.IN_DEBIAN, *machine.TOOLS)
    with machine.booted(podman) as found:
        yield found


def test_the_unit_serves_with_all_that_it_forbids(booted: Machine) -> None:
    """Without rights and under its system call filter the server ranks what it is given; killed, it is started again by
    systemd, with what it had acknowledged."""
    with Client(booted.listen, timeout=60, wait_for_ready=True) as client:
        client.upsert("n", [{"id": "m", "content": "Deploys need a green canary"}])
        assert [each.memory.id for each in client.rank("n", "how to deploy").items] == ["m"]
        (process,) = booted.shows(UNIT, "MainPID")
        state = dict(line.split(":\t") for line in booted.run("cat", f"/proc/{process}/status").splitlines())
        user = booted.run("id", "--user", "memory-ranker")
        assert state["Uid"].split() == [user] * 4
        assert int(state["CapEff"], 16) == 0
        assert (state["NoNewPrivs"], state["Seccomp"]) == ("1", "2")
        booted.run("systemctl", "kill", "--signal=KILL", UNIT)
        assert client.get("n", "m").content == "Deploys need a green canary"
        booted.run("systemctl", "start", UNIT)  # returns when the server has told that it is ready
        assert booted.shows(UNIT, "NRestarts", "ActiveState") == ["1", "active"]


def test_the_timers_wait_and_their_services_run(booted: Machine) -> None:
    """Each timer has a next time, and its service ends well beside the server; gates that refuse are no failure."""
    for path in files.UNITS:
        if path.suffix == ".timer":
            service = path.with_suffix(".service").name
            (state, following) = booted.shows(path.name, "ActiveState", "NextElapseUSecRealtime")
            assert state == "active"
            assert following
            booted.run("systemctl", "start", service)
            assert booted.shows(service, "Result", "ActiveState") == ["success", "inactive"]


def test_a_timer_that_elapses_at_boot_waits_for_the_server(booted: Machine) -> None:
    """A service of a timer, started in the same moment as the server, runs once the server is ready."""
    booted.run("systemctl", "stop", UNIT)
    booted.run("systemctl", "start", "--no-block", UNIT)
    booted.run("systemctl", "start", "memory-ranker-rescore.service")
    assert booted.shows("memory-ranker-rescore.service", "Result", "ExecMainStatus") == ["success", "0"]
    assert booted.shows(UNIT, "ActiveState") == ["active"]


def test_a_stop_by_systemd_is_an_ordered_end(booted: Machine) -> None:
    """`systemctl stop` ends the server with 0, and `start` brings it back."""
    booted.run("systemctl", "stop", UNIT)
    assert booted.shows(UNIT, "Result", "ExecMainStatus", "ActiveState") == ["success", "0", "inactive"]
    booted.run("systemctl", "start", UNIT)
    with Client(booted.listen, timeout=60, wait_for_ready=True) as client:
        assert client.status().listen == "unix:/run/memory-ranker/memory-ranker.sock"
