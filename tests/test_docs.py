"""The pages in docs/: made from code and current, complete, and what they tell you to type works."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import re
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import grpc
import pytest
from memoryranker.client import RankerRpcError

from sidecar import errors
from sidecar.cli.demo_server import running_server, temporary_folder
from sidecar.cli.failures import ExitCode, failure_of
from sidecar.cli.serve import exit_code
from sidecar.config import FIELDS
from sidecar.rpc.status import status_of
from sidecar.store.check import Fault
from tests.serving import ended
from tests.weights.making import make_artifact

DOCS = Path(__file__).parent.parent / "docs"
PAGES = {path.name: path.read_text(encoding="utf-8") for path in sorted(DOCS.glob("*.md"))}
SHELL, PYTHON = (
    {
        name: "".join(re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
        for name, text in PAGES.items()
    }
    for language in ("sh", "python")
)
RUN = [name for name in PAGES if (SHELL[name] or PYTHON[name]) and name not in ("cli.md", "clients.md", "deploy.md")]
"""Pages whose commands and Python run here; those of cli.md run in tests/cli, those of clients.md in tests/clients, and
those of deploy.md are for other machines: tests/deploy has the files run that they name."""
SENTENCES = [f"Service number {n} deploys on port {8000 + n} behind gate {n * n}." for n in range(1, 13)]
FILES = {
    "answer.md": "Deployed to port 8001.",
    "calls.jsonl": json.dumps({"name": "open", "arguments": {"port": 8001}}),
    "memories.jsonl": json.dumps({"id": "f1", "content": "The release train leaves on Tuesdays."}),
    "MEMORY.md": "- Prefers short answers.\n",
    "CLAUDE.md": "- Run the tests before a commit.\n",
    "memory/2026-03-02.md": "- Rolled back the release.\n",
    "notes.md": "- The staging database is read-only.\n",
    "chat.jsonl": json.dumps({"id": "c1", "message": {"text": "Hello"}, "ts": "2026-03-02T09:05:00Z", "from": "Ann"}),
    "judged/ops.json": json.dumps(
        {
            "id": "ops",
            "memories": [
                {"id": f"m{n}", "content": text, "created_at": f"2026-03-{n + 1:02}T09:05:00Z", "session": n % 3}
                for n, text in enumerate(SENTENCES)
            ],
            "queries": [
                {"qid": f"q{n}", "query": f"Which port has service number {n + 1}?", "relevant": [f"m{n}"]}
                for n in range(len(SENTENCES))
            ],
        }
    ),
}
"""What the pages' commands read, by the name that they have there."""
OF_SERVE = (errors.SettingsError, errors.ListenError)
"""What only a server that starts can say; it has no caller then."""
AT_START = (errors.StoreLockedError, errors.SchemaTooNewError, errors.EmbedderMismatchError, errors.StoreDamagedError)
"""What a server that starts says far more often than one that runs."""


def script(name: str) -> ModuleType:
    """A script of docs/."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("page", "maker"), [("api.md", "make_api"), ("settings.md", "make_settings")])
def test_a_page_that_is_made_from_code_is_current(page: str, maker: str) -> None:
    """`make docs` makes it again."""
    assert PAGES[page] == script(maker).page()


def test_pictures_are_current() -> None:
    """`make docs` makes them again; each is whole, and has its colours for light and for dark."""
    made: dict[str, str] = script("pictures").pictures()
    kept = {path.name: path.read_text(encoding="utf-8") for path in (DOCS / "pictures").iterdir()}
    assert kept == made
    for name, picture in made.items():
        root = ET.fromstring(picture)
        width, height = float(root.attrib["width"]), float(root.attrib["height"])
        assert "prefers-color-scheme:dark" in picture
        assert any(f"pictures/{name}" in page for page in PAGES.values())
        for box in root.iter("{http://www.w3.org/2000/svg}rect"):
            place = [float(box.attrib.get(side, 0)) for side in ("x", "y", "width", "height")]
            assert 0 <= place[0] <= place[0] + place[2] <= width
            assert 0 <= place[1] <= place[1] + place[3] <= height


def test_colours_can_be_read() -> None:
    """Every ink has a contrast of at least 4.5 to paper and panel, on light and on dark (WCAG 2, level AA)."""
    colours: dict[str, tuple[str, str]] = script("pictures").COLOURS

    def brightness(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for mode in (0, 1):
        for ground in ("paper", "panel"):
            for ink in set(colours) - {"paper", "panel"}:
                one, other = sorted((brightness(colours[ground][mode]), brightness(colours[ink][mode])))
                assert (other + 0.05) / (one + 0.05) >= 4.5, (ink, ground, mode)


def test_the_api_page_names_every_field_once() -> None:
    """Every rpc, message and field of proto/ is on the page, and every heading can be linked to."""
    headings = re.findall(r"^#+ (.*)$", PAGES["api.md"], re.MULTILINE)
    assert [name for name, count in Counter(headings).items() if count > 1] == []
    for path in (DOCS.parent / "proto" / "memoryranker" / "v1").glob("*.proto"):
        text = path.read_text(encoding="utf-8")
        for name in re.findall(r"^\s*(?:rpc|message|enum|service) (\w+)", text, re.MULTILINE):
            assert name in headings
        for name, number in re.findall(r"(\w+) = (\d+);", text):
            assert f"| `{name}` = {number} |" in PAGES["api.md"]


def test_the_settings_page_has_every_setting() -> None:
    """Each setting has a row."""
    assert re.findall(r"^\| `(\w+)` \|", PAGES["settings.md"], re.MULTILINE) == list(FIELDS)


def kinds(kind: type[errors.RankerError] = errors.RankerError) -> Iterator[type[errors.RankerError]]:
    """Every error that a caller may see."""
    yield kind
    for each in kind.__subclasses__():
        if each.__module__.startswith("sidecar."):
            yield from kinds(each)


def example(kind: type[errors.RankerError]) -> errors.RankerError:
    if kind is errors.InvalidRequestError:
        return errors.InvalidRequestError([errors.FieldViolation("field", "is wrong")])
    return kind("words")


def reasons_in_code() -> dict[str, set[ExitCode]]:
    """Every reason that stands in the source: of errors, in calls, and as the exit code of a failure that has no other;
    with the exit codes beside it."""
    found: dict[str, set[ExitCode]] = {}
    for top in ("sidecar", "training", "proto/python"):
        for path in (DOCS.parent / top).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                for reason, code in _reasons(node):
                    found.setdefault(reason, set()).update({ExitCode[code]} if code else ())
    return found


def _reasons(node: ast.AST) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.ClassDef):
        for each in node.body:
            if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == "reason":
                yield from ((str(value), "") for value in _texts(each.value))
    if not isinstance(node, ast.Call):
        return
    name = ast.unparse(node.func)
    named = {each.arg: each.value for each in node.keywords}
    codes = [
        each.attr
        for given in [*node.args, *named.values()]
        for each in ast.walk(given)
        if isinstance(each, ast.Attribute)
        and ast.unparse(each.value) == "ExitCode"
        and each.attr in ExitCode.__members__
    ]
    if "reason" in named:
        for value in _texts(named["reason"]):
            yield value, codes[0] if codes else ""
    elif name == "Failure":
        # A code that is worked out is none that can be read here.
        is_plain = len(node.args) < 2 or bool(codes)
        yield from ((code, code) for code in codes or (["ERROR"] if is_plain else []))
    elif name == "make_status" and len(node.args) > 2:
        yield from ((value, "") for value in _texts(node.args[2]))


def _texts(value: ast.expr) -> list[str]:
    return [value.value] if isinstance(value, ast.Constant) and isinstance(value.value, str) and value.value else []


def test_every_error_has_its_place() -> None:
    """Each reason has a row with its gRPC code and exit code, as the code has them, and a section of its own."""
    page = PAGES["errors.md"]
    rows = {row[0]: row[1:] for row in re.findall(r"^\| \[(\w+)\]\(#\w+\) \| (\w+) \| (\d+) \|", page, re.MULTILINE)}
    sections = set(re.findall(r"^### ([A-Z_]+)$", page, re.MULTILINE))
    assert list(rows) == sorted(rows)
    assert set(rows) == sections
    expected: dict[str, tuple[str, str]] = {}
    for kind in kinds():
        error = example(kind)
        code = next(each for each in grpc.StatusCode if each.value[0] == status_of(error).code)
        retry_after = error.retry_after if isinstance(error, errors.OverloadedError) else None
        seen = RankerRpcError(code, error.message, reason=error.reason, retry_after=retry_after)
        ends = (
            exit_code(error) if isinstance(error, (*OF_SERVE, *AT_START)) else failure_of(seen, "unix:/s", 1).exit_code
        )
        expected.setdefault(error.reason, (code.name, str(int(ends))))
    for reason, found in expected.items():
        assert rows[reason] == found, reason
    of_commands = dict(re.findall(r"^\| `([A-Z_]+)` \| (\d+) \|", page, re.MULTILINE))
    assert list(of_commands) == sorted(of_commands)
    in_code = reasons_in_code()
    by_constant = {"NOT_IN_PACKET", "CONTRADICTORY", grpc.StatusCode.UNAVAILABLE.name}
    assert rows.keys() | of_commands.keys() == {*expected, *in_code, *by_constant}
    assert not rows.keys() & of_commands.keys()
    for reason, code in of_commands.items():
        assert int(code) in (in_code.get(reason) or {ExitCode(int(code))}), reason


def test_every_fault_of_a_check_is_explained() -> None:
    """docs/backup.md has a row for each, in the order in which they are looked for."""
    assert re.findall(r"^\| `(\w+)` \|", PAGES["backup.md"], re.MULTILINE) == [fault.value for fault in Fault]


def test_the_index_names_every_page() -> None:
    """docs/README.md links every page beside it."""
    named = set(re.findall(r"\]\((\w+\.md)\)", PAGES["README.md"]))
    assert named == set(PAGES) - {"README.md"}


def test_links_to_headings_lead_somewhere() -> None:
    """A link with a #heading names a heading of its page."""
    for name, text in PAGES.items():
        for page, anchor in re.findall(r"\]\(([\w.]*\.md)?#([^)\s]+)\)", text):
            headings = re.findall(r"^#+ (.*)$", PAGES[page or name], re.MULTILINE)
            anchors = {re.sub(r"[^\w -]", "", each).lower().replace(" ", "-") for each in headings}
            assert anchor in anchors, f"{name}: {page}#{anchor}"


@pytest.mark.parametrize("name", RUN)
def test_what_a_page_tells_you_to_type_works(name: str) -> None:
    """All of a page's commands run as one script, and so does its Python, with memories m1 to m8, a packet of some of
    them that was reported on, a rescore after it, and the files that the page names."""
    with temporary_folder(keep=False) as folder, running_server(folder) as connection:
        for file, text in FILES.items():
            (folder / file).parent.mkdir(exist_ok=True)
            (folder / file).write_text(text, encoding="utf-8")
        make_artifact(folder / "model")
        with connection.client() as client:
            client.upsert("default", [{"id": f"m{n}", "content": f"memory {n} of deploys"} for n in range(1, 9)])
            packet = client.rank("default", "deploys", max_items=3).packet_id
            client.report_use(packet, ["m1"])
            run = client.rescore(apply=True).run_id
        environ = {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            "PACKET": packet,
            "RUN": run,
            "MEMORY_RANKER_LISTEN": connection.address,
            "MEMORY_RANKER_DATA": str(folder / "store"),
        }
        for command in (["bash", "-euo", "pipefail", "-c", SHELL[name]], [sys.executable, "-c", PYTHON[name]]):
            ran = ended(command, env=environ, cwd=folder)
            assert ran.returncode == 0, ran.stdout + ran.stderr
