"""Reads what the files in deploy/ tell a machine to do."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
DOCKERFILE = DEPLOY / "Dockerfile"
COMPOSE = DEPLOY / "compose.yaml"
KUBERNETES = DEPLOY / "kubernetes" / "statefulset.yaml"
NIGHTLY = DEPLOY / "nightly.sh"
UNITS = sorted((DEPLOY / "systemd").iterdir())
PAGE = ROOT / "docs" / "deploy.md"


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile's instructions in order, each with its arguments as one line."""
    text = re.sub(r"(?m)^\s*#.*\n", "", DOCKERFILE.read_text(encoding="utf-8"))
    lines = re.sub(r"\\\n\s*", " ", text).splitlines()
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines if line)]


def last(instruction: str) -> str:
    """The arguments of this instruction where it stands last."""
    return [rest for word, rest in instructions() if word == instruction][-1]


def all_of(instruction: str) -> str:
    """The arguments of every such instruction, a line each."""
    return "\n".join(rest for word, rest in instructions() if word == instruction)


def image_environment() -> dict[str, str]:
    """The variables of the image that is built by default."""
    return dict(part.split("=", 1) for part in shlex.split(last("ENV")))


def composed() -> dict[str, Any]:
    """The services of the compose file, by name."""
    services: dict[str, Any] = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))["services"]
    return services


def stateful_set() -> dict[str, Any]:
    """The StatefulSet's spec."""
    documents = yaml.safe_load_all(KUBERNETES.read_text(encoding="utf-8"))
    (found,) = [each["spec"] for each in documents if each["kind"] == "StatefulSet"]
    assert isinstance(found, dict)
    return found


def containers() -> dict[str, Any]:
    """The pod's containers by name, those that start first among them."""
    pod = stateful_set()["template"]["spec"]
    return {each["name"]: each for each in [*pod["initContainers"], *pod["containers"]]}


def container_environment(name: str) -> dict[str, str]:
    """The variables that the pod gives to a container."""
    return {each["name"]: each["value"] for each in containers()[name]["env"]}


def unit(path: Path) -> dict[str, list[str]]:
    """A unit's settings; one may be there more than once."""
    found: dict[str, list[str]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            found.setdefault(name, []).append(value)
    return found


def unit_environment(path: Path) -> dict[str, str]:
    """The variables that a unit sets."""
    return dict(each.split("=", 1) for each in unit(path).get("Environment", []))


def unit_command(path: Path) -> list[str]:
    """The words of a unit's command, as systemd reads them."""
    (command,) = unit(path)["ExecStart"]
    return [word.replace("%%", "%").replace("$$", "$") for word in shlex.split(command)]


def commands() -> Iterator[tuple[str, list[str]]]:
    """Every command line of ours, with the name of the file that it stands in, as words after `memory-ranker`."""
    image = json.loads(last("ENTRYPOINT"))
    yield "Dockerfile", [*image, *json.loads(last("CMD"))][1:]
    yield "Dockerfile", json.loads(last("HEALTHCHECK").partition("CMD ")[2])[1:]
    for words in of_script(NIGHTLY.read_text(encoding="utf-8")):
        yield NIGHTLY.name, words
    for path in UNITS:
        if path.suffix == ".service":
            command = unit_command(path)
            for words in of_script(command[2]) if command[0] == "/bin/sh" else [command[1:]]:
                yield path.name, words
    for block in re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        for words in of_script(block):
            yield PAGE.name, words


def of_script(script: str) -> Iterator[list[str]]:
    """The command lines of ours in a shell script, alone or after the `--` of another command."""
    for line in re.split(r"\n|&&|\|\||;|\bdo\b", script.replace("\\\n", " ")):
        words = shlex.split(line, comments=True)
        for before, word, place in zip(["--", *words], words, range(len(words)), strict=False):
            if before == "--" and word.rpartition("/")[2] == "memory-ranker":
                yield words[place + 1 :]
