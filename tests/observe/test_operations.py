"""docs/operations.md, the alerts and the dashboard against the metrics of a real server."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from memoryranker.client import RankerRpcError

from sidecar.weights.roles import Outcome
from tests.observe.asking import ask, samples
from tests.serving import running
from tests.weights.making import make_artifact, numbered

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
RULES = ROOT / "deploy" / "prometheus" / "alerts.yml"
DASHBOARD = json.loads((ROOT / "deploy" / "grafana" / "dashboard.json").read_text(encoding="utf-8"))
OF_PROMETHEUS = {"job", "instance", "le"}
"""Labels that the server does not set itself."""


@dataclass(frozen=True, slots=True)
class Metrics:
    """What a server shows: types and labels by metric, and every sample's name."""

    types: dict[str, str]
    labels: dict[str, set[str]]
    samples: set[str]


def read(text: str) -> Metrics:
    types = {name: kind for name, kind in re.findall(r"^# TYPE (\w+) (\w+)$", text, re.M) if "_created" not in name}
    found: dict[str, set[str]] = {name: set() for name in types}
    names = set()
    for sample in samples(text):
        name, _, inner = sample.partition("{")
        names.add(name)
        metric = name if name in types else re.sub(r"_(bucket|sum|count)$", "", name)
        if metric in types:
            found[metric] |= set(re.findall(r'(\w+)="', inner)) - {"le"}
    return Metrics(types, found, names)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Metrics, dict[str, float]]:
    """The metrics of a server on which all happened that has one: calls, refusals, reports, and models that
    were promoted, gated, refused, stopped and rolled back."""
    folder = tmp_path_factory.mktemp("s")
    make_artifact(folder / "m")
    numbered(folder / "refused by its gates", 1, gates={"train": "passed", "promote": "refused"})
    make_artifact(folder / "damaged")
    (folder / "damaged" / "weights.json").write_text("{}", encoding="utf-8")
    numbered(folder / "shadow", 2)
    with running(folder, embedder="none", http="0") as server:
        client = server.client
        client.upsert("kim", [{"id": "m", "content": "the ferry leaves at nine"}])
        packet = client.rank("kim", "ferry")
        client.report_use(packet.packet_id, ["m"])
        client.load_model(str(folder / "m"))
        model = client.load_model(str(folder / "shadow"), role="shadow").model.version
        client.load_model(version=model, role="retired")
        client.rollback_model()
        for bad in ("refused by its gates", "damaged"):
            with pytest.raises(RankerRpcError):
                client.load_model(str(folder / bad))
        text = ask(server.sidecar.http, "/metrics").text
    return read(text), samples(text)


def test_every_attempt_at_a_model_is_counted(shown: tuple[Metrics, dict[str, float]]) -> None:
    """By how it ended; and what is wrong since is a number that an alert can watch."""
    _, values = shown
    name = "memory_ranker_model_changes_total"
    counted = {each: values[f'{name}{{outcome="{each.value}"}}'] for each in Outcome}
    assert counted == {
        Outcome.PROMOTED: 2,
        Outcome.ROLLED_BACK: 1,
        Outcome.STOPPED: 1,
        Outcome.GATED: 1,
        Outcome.REFUSED: 1,
    }
    assert values["memory_ranker_model_problems"] == 1
    assert values["memory_ranker_store_problems"] == 0


def test_the_page_has_every_metric_and_no_other(shown: tuple[Metrics, dict[str, float]]) -> None:
    """With the type and the labels that it has, each once; a label whose values are few is written out with them."""
    metrics, values = shown
    rows = re.findall(r"^\| `((?:memory_ranker|process)_\w+)` \| (\w+) \|(.*?)\| (.*) \|$", PAGE, re.M)
    assert len(rows) == len({name for name, *_ in rows})
    assert {name: kind for name, kind, *_ in rows} == metrics.types
    assert {name: set(re.findall(r"`(\w+)`", labels)) for name, _, labels, _ in rows} == metrics.labels
    words = {name: set(re.findall(r"`(\w+)`", meaning)) for name, _, _, meaning in rows}
    for label in ("stage", "segment", "channel", "outcome", "pool", "reason"):
        for name in (each for each, labels in metrics.labels.items() if label in labels):
            # The channels of uses are those of the row above it; the reasons of refusals have a page of their own.
            if name not in ("memory_ranker_uses_total", "memory_ranker_refusals_total"):
                seen = {each for key in values for each in re.findall(rf'^{name}\w*{{.*\b{label}="(\w+)"', key)}
                assert seen <= words[name], name


def expressions() -> dict[str, str]:
    """Every expression of the alerts and the dashboard, by where it stands."""
    found: dict[str, str] = {}
    rules = re.findall(
        r"- alert: (\w+)\n\s+expr: (?:>-\n)?(.*?)\n\s+(?:for|labels):", RULES.read_text(encoding="utf-8"), re.S
    )
    found |= {name: " ".join(text.split()) for name, text in rules}
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", []):
            found[f"{panel['title']} {target['refId']}"] = target["expr"]
    return found


@pytest.mark.parametrize("place", expressions())
def test_an_expression_asks_for_what_there_is(place: str, shown: tuple[Metrics, dict[str, float]]) -> None:
    """Every name in it is a sample that a server shows, and every label one that it has."""
    metrics, values = shown
    text = expressions()[place]
    names = set(re.findall(r"\b((?:memory_ranker|process)_\w+)", text))
    assert names or text.startswith("up{")
    assert names <= metrics.samples
    known = OF_PROMETHEUS | {each for labels in metrics.labels.values() for each in labels}
    for name, inner in re.findall(r"\b((?:memory_ranker|process)_\w+)\{(.*?)\}", text):
        metric = name if name in metrics.types else re.sub(r"_(bucket|sum|count)$", "", name)
        given = re.findall(r'(\w+)(=~|!=|=)"(.*?)"', inner)
        assert {label for label, *_ in given} <= metrics.labels[metric] | OF_PROMETHEUS
        for label, sign, value in given:
            if label not in (*OF_PROMETHEUS, "code", "reason") and sign == "=":
                assert any(key.startswith(f"{name}{{") and f'{label}="{value}"' in key for key in values)
    for group in re.findall(r"by \((.*?)\)", text):
        assert {each.strip() for each in group.split(",")} <= known


def test_an_alert_hears_of_the_first_time(tmp_path: Path) -> None:
    """Each series whose increase an alert asks for is there, at 0, before anything happened: a series that begins at 1
    has not increased."""
    asked = re.findall(r"increase\((\w+)\{(\w+)=~?\"([\w|]+)\"}", RULES.read_text(encoding="utf-8"))
    assert len(asked) >= 4
    with running(tmp_path, embedder="none", http="0") as server:
        values = samples(ask(server.sidecar.http, "/metrics").text)
    for name, label, words in asked:
        for word in words.split("|"):
            assert values[f'{name}{{{label}="{word}"}}'] == 0


def test_the_page_has_every_alert() -> None:
    """A row for each, with its severity, in the order of the rules."""
    rules = re.findall(r"- alert: (\w+)\n.*?severity: (\w+)", RULES.read_text(encoding="utf-8"), re.S)
    assert rules
    assert re.findall(r"^\| (MemoryRanker\w+) \| (\w+) \|", PAGE, re.M) == rules


def test_the_dashboard_is_whole() -> None:
    """Panels have titles and numbers of their own and do not overlap; each draws something or is a heading."""
    panels: list[dict[str, Any]] = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert place["x"] + place["w"] <= 24
        assert not cells & taken
        taken |= cells
        assert panel["title"]
        assert bool(panel.get("targets")) != (panel["type"] == "row")


def promtool(*arguments: str | Path, folder: Path) -> None:
    tool = shutil.which("promtool")
    if tool is None:
        pytest.skip("promtool is not on the path (Debian's package prometheus has it)")
    ran = subprocess.run(
        [tool, *map(str, arguments)], cwd=folder, capture_output=True, text=True, check=False, timeout=60
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_alerts_fire_on_what_they_are_for() -> None:
    """Prometheus' own tool plays a healthy, a new and an ill server to them."""
    promtool("check", "rules", RULES.name, folder=RULES.parent)
    promtool("test", "rules", "alerts_test.yml", folder=RULES.parent)


def test_prometheus_understands_every_expression_of_the_dashboard(tmp_path: Path) -> None:
    """As rules, with Grafana's variables filled in."""
    rules = [
        {"record": f"panel{i}", "expr": text.replace("$__rate_interval", "1m").replace("$instance", ".*")}
        for i, text in enumerate(expressions().values())
    ]
    # JSON is YAML too.
    (tmp_path / "rules.yml").write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    promtool("check", "rules", "rules.yml", folder=tmp_path)
