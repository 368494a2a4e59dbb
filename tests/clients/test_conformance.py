"""The same agent and scenario in every language, over a socket and over loopback, with that language's own tools."""

from __future__ import annotations

import functools
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.languages import LANGUAGES, Language, environment, proxied
from tests.clients.server import controlled, converse

pytestmark = [
    pytest.mark.skipif("CLIENTS" not in os.environ, reason="builds clients in five languages: `make clients`"),
    pytest.mark.timeout(900),
]
HERE = Path(__file__).parent
EVERY_LANGUAGE = [pytest.param(each, id=each.name) for each in LANGUAGES]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a short path, for a socket's is limited."""
    with tempfile.TemporaryDirectory(prefix="mr-") as name:
        yield Path(name)


@functools.cache
def built(language: Language) -> str:
    """Builds a language once, as its section says, and returns what that and its agent print."""
    if missing := language.missing():
        reason = f"{language.name} needs {', '.join(missing)}, which is not on the path"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    language.lay_out()
    with tempfile.TemporaryDirectory(prefix="mr-") as name, controlled("unix", Path(name)) as server:
        ran = language.run_agent(server.listen)
    assert ran.returncode == 0, ran.stdout
    return ran.stdout


@pytest.mark.parametrize("language", EVERY_LANGUAGE)
def test_the_section_of_a_language_builds_and_runs(language: Language) -> None:
    """The commands that its section shows, with the program that it shows, print the memory that fits the task."""
    assert "canary" in built(language)


@pytest.mark.parametrize("transport", ["unix", "tcp"])
@pytest.mark.parametrize("language", EVERY_LANGUAGE)
def test_the_scenario_holds(language: Language, transport: str, folder: Path) -> None:
    """Every step ends as it should, in its order, while the server is frozen, killed and started under the client,
    and although a web proxy is set that does not answer."""
    built(language)
    scenario = HERE / "scenario.json"
    with controlled(transport, folder) as server:
        command = language.command(str(scenario), server.listen)
        lines = converse(command, language.place, proxied(server.listen), server)
    assert lines == [f"ok {step['name']}" for step in json.loads(scenario.read_text(encoding="utf-8"))["steps"]]


@pytest.mark.parametrize("language", EVERY_LANGUAGE)
def test_what_is_false_is_told(language: Language, folder: Path) -> None:
    """A client's checks can fail: of a scenario that is false from its second step on, it says so step by step."""
    built(language)
    scenario = HERE / "false.json"
    with controlled("unix", folder) as server:
        command = language.command(str(scenario), server.listen)
        lines = converse(command, language.place, environment(server.listen), server)
    first, *others = [step["name"] for step in json.loads(scenario.read_text(encoding="utf-8"))["steps"]]
    assert lines[0] == f"ok {first}"
    assert [line.split(":")[0] for line in lines[1:] if line.startswith("FAILED")] == [
        f"FAILED {each}" for each in others
    ]


@pytest.mark.parametrize("language", EVERY_LANGUAGE)
def test_an_agent_without_a_server_says_what_to_do(language: Language, folder: Path) -> None:
    """An agent that nobody answers ends with a readable error that names the command to start."""
    built(language)
    ran = language.run_agent(f"unix:{folder}/nobody.sock")
    assert ran.returncode != 0
    assert "memory-ranker serve" in ran.stdout


@pytest.mark.parametrize("language", EVERY_LANGUAGE)
def test_an_agent_without_an_address_says_so_in_a_line(language: Language) -> None:
    """An agent that is not told where its server is ends with what to set, or with where it looked for the server, and
    shows nothing of its own insides."""
    built(language)
    ran = language.run_agent("")
    assert ran.returncode != 0
    # Maven ends its colours, and `go run` says how the agent ended.
    lines = [line for line in ran.stdout.replace("\x1b[0m", "").splitlines() if line not in ("", "exit status 1")]
    assert len(lines) <= 2
    assert "memory-ranker serve" in lines[-1]
