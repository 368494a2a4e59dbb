from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

from sidecar.features import FEATURE_NAMES
from sidecar.weights import make_weights
from sidecar.weights.archive import MAX_BYTES
from tests.training.made import Agent, Truth, make_dataset
from training import report_figures as figures
from training.artifact_files import others_of
from training.gates import GateSettings
from training.held_out import ndcg_by_session
from training.html_report import _line
from training.model import Model
from training.run import Run, TrainSettings, train

TRUTH = {"semantic": 0.4, "lexical": 0.3, "subject": 0.3, "handles": 0.0}
START_NAMES = ("semantic", "lexical", "subject", "handles")
START = make_weights("start", {"semantic": 0.2, "lexical": 0.2, "subject": 0.2, "handles": 0.4})
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome") or ""


@pytest.fixture(scope="module")
def run() -> Run:
    """A run that was promoted, with two agents and names that are markup."""
    agents = (Agent("<b>coder</b>", 0.9, 0.7), Agent("planner & co", 0.6, 0.3))
    dataset = make_dataset(Truth(TRUTH, agents=agents, pool=4, namespace='"n"'), sessions=700, seed=1)
    return train(dataset, Model(START), TrainSettings())


def made(run: Run) -> str:
    assert run.trained is not None
    return others_of(run, run.trained, "linear-0123456789ab")["report.html"].decode()


@pytest.fixture(scope="module")
def page(run: Run) -> str:
    return made(run)


@pytest.fixture(scope="module")
def curves() -> Run:
    """A preview of curves."""
    dataset = make_dataset(Truth(TRUTH, pool=4), sessions=150, seed=2)
    return train(dataset, Model(START), TrainSettings(form="curves", preview=True))


def pictures(page: str, title: str) -> dict[str, list[list[tuple[float, float]]]]:
    """The lines of each picture of a section, by the picture's name."""
    section = page.split(f'<section aria-label="{title}">')[1].split("</section>")[0]
    return {
        name: [
            [(float(x), float(y)) for x, y in (point.split(",") for point in line.split(" "))]
            for line in re.findall(r'points="([^"]+)"', drawn)
        ]
        for name, drawn in re.findall(r'<svg role="img" aria-label="([a-z_]+)"(.*?)</svg>', section)
    }


def test_every_curve_is_drawn_step_by_step(curves: Run) -> None:
    """Beside the line that it takes the place of: a corner on each side of every threshold, none that falls."""
    assert curves.trained is not None
    found = pictures(made(curves), "Curves")
    served = {name: curve for name, curve in zip(FEATURE_NAMES, curves.trained.new.common.curves, strict=True) if curve}
    assert set(served) == set(found) - {name for name in START_NAMES if name not in served}
    for name, curve in served.items():
        before, after = found[name]
        assert before[0][0] == after[0][0] == 10
        assert before[-1][0] == after[-1][0] == 210
        assert len(after) == 2 * len(curve.thresholds) + 2
        assert [x for x, _ in after[1:-1:2]] == pytest.approx(10 + 200 * curve.thresholds, abs=0.05)
        heights = [70 - y for _, y in after]
        assert heights == sorted(heights)
        assert heights[0] == 0.0


def test_a_line_bends_at_its_cap(page: str) -> None:
    """Weights are lines from 0, which end at what they add for a value of 1."""
    found = pictures(page, "Contributions")
    assert set(found) == set(TRUTH)
    before, after = found["handles"]
    assert len(before) == len(after) == 2
    assert before[-1][1] < after[-1][1]  # the weight falls, so the picture's line ends lower down
    capped = make_weights("capped", {"semantic": 1.0}, caps={"semantic": 0.25})
    assert _line(capped, FEATURE_NAMES.index("semantic")) == [(0.0, 0.0), (0.25, 0.25), (1.0, 0.25)]


class Tags(HTMLParser):
    """Every tag that opens and closes, with what it would load."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loads: list[str] = []
        self.headings: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "meta":
            self.open.append(tag)
        self.loads += [f"{tag} {name}" for name, _ in attrs if name in ("src", "href", "xlink:href", "action", "data")]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loads += [f"{tag} {name}" for name, _ in attrs if name in ("src", "href", "xlink:href")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "h2":
            self.headings.append(data)


def test_the_page_is_whole_and_loads_nothing(page: str) -> None:
    """Every tag is closed in its order, nothing names an address, no script, and a policy forbids any request."""
    tags = Tags()
    tags.feed(page)
    assert tags.open == []
    assert tags.loads == []
    assert "default-src 'none'" in page
    assert not re.search(r"https?:|<script|@import|url\(", page)


def test_it_has_what_a_person_wants_to_see(page: str) -> None:
    """All sections, in one order."""
    tags = Tags()
    tags.feed(page)
    assert tags.headings == [
        "Gates",
        "Weights",
        "Contributions",
        "Half-lives",
        "Namespaces",
        "Use by place",
        "Use by value of each feature",
        "Reports by agent",
        "Reports by surface",
        "Propensities",
        "Use by kind",
        "nDCG@10 of held-out sessions, by agent",
        "nDCG@10 of held-out sessions, by namespace",
        "nDCG@10 of held-out sessions, by kind",
        "The memories that move most",
        "What would have been served differently",
    ]


def test_names_are_text_and_no_markup(page: str) -> None:
    """An agent or a namespace cannot put tags into the page."""
    assert "&lt;b&gt;coder&lt;/b&gt;" in page
    assert "<b>coder" not in page
    assert "planner &amp; co" in page


def test_the_same_run_gives_the_same_page(run: Run, page: str) -> None:
    """Byte for byte."""
    assert made(run) == page


def test_figures_add_up(run: Run) -> None:
    """Use by place, kind and value count each labelled exposure once; contributions share all there is; a memory that
    moves is said to move by the feature whose weight changed most."""
    trained = run.trained
    assert trained is not None
    seen = float((trained.logged.used + trained.logged.unused).sum())
    for shares in (
        figures.use_by_place(trained.logged),
        figures.use_by_kind(trained.logged),
        *figures.use_by_value(trained.logged).values(),
    ):
        assert sum(each.seen for each in shares) == pytest.approx(seen)
        assert sum(each.used for each in shares) == pytest.approx(float(trained.logged.used.sum()))
    assert sum(figures.contribution_shares(trained.logged, START).values()) == pytest.approx(1.0)
    low, high = (
        figures.use_by_value(trained.logged)["semantic"][1],
        figures.use_by_value(trained.logged)["semantic"][-1],
    )
    assert high.rate > low.rate
    moved = figures.moves(trained.logged, trained.dataset, trained.old, trained.new, 10)
    assert 0 < len(moved.movers) <= 20
    assert {each.because for each in moved.movers} <= set(TRUTH)
    assert "handles" in {each.because for each in moved.movers if each.after > each.before}
    assert all(len(each.gone) == len(each.come) for each in moved.exchanges)


def test_nothing_moves_between_the_same_weights(run: Run) -> None:
    """No mover, no exchange."""
    trained = run.trained
    assert trained is not None
    moved = figures.moves(trained.logged, trained.logged, trained.old, trained.old, 10)
    assert (moved.movers, moved.exchanges, moved.changed) == ([], [], 0)


def test_a_slice_is_what_its_packets_alone_would_give(run: Run) -> None:
    """By agent and by namespace: nDCG by session of these packets and no others; by kind, of one kind all."""
    trained = run.trained
    assert trained is not None
    logged, held_out = trained.logged, trained.split.held_out
    scores = trained.old.served_scores(logged), trained.new.served_scores(trained.dataset)
    agents = np.array(logged.packets.agent, dtype=object).astype(str)
    found = figures.slices(logged, scores, held_out, logged.packets.agent, 10)
    assert [each.name for each in found] == sorted(set(agents))
    for each in found:
        alone = ndcg_by_session(logged, scores[1], held_out & (agents == each.name), 10)
        assert each.sessions == len(alone.value)
        assert each.after == pytest.approx(alone.value.mean())
    (of_kind,) = figures.slices_by_kind(logged, scores, held_out, 10)
    assert of_kind.before == pytest.approx(trained.held_out.old)
    (of_namespace,) = figures.slices(logged, scores, held_out, logged.packets.namespace, 10)
    assert of_namespace.after == pytest.approx(trained.held_out.new)


def test_thousands_of_agents_and_namespaces_leave_the_model_small(run: Run) -> None:
    """With 1,500 of each, all with long names: tables end after 200 rows and count the rest, and everything that is
    for people takes less than a quarter of what a model may have."""
    agents = tuple(Agent(f"{n:04}" + "a" * 250, 0.9, 1.0) for n in range(1_500))
    dataset = make_dataset(Truth(TRUTH, agents=agents, pool=2), sessions=1_500, seed=3)
    namespaces = tuple(f"{n % 1_500:04}" + "&" * 250 for n in range(len(dataset.packets)))
    packets = replace(dataset.packets, namespace=namespaces, surface=dataset.packets.agent)
    silent = GateSettings(least_agent_report_share=0.05)
    settings = TrainSettings(gates=silent, own_namespaces=False)
    found = train(replace(dataset, packets=packets), Model(START), settings)
    assert found.trained is not None
    files = others_of(found, found.trained, "linear-0123456789ab")
    assert sum(map(len, files.values())) < MAX_BYTES / 4
    page = files["report.html"].decode()
    assert len(re.findall(r"<p>And [\d,]+ more\.</p>", page)) == 4
    assert len(found.left_out_agents) > 50
    assert re.search(r"and \d+ more", files["model_card.md"].decode())


def test_wrong_propensities_are_told() -> None:
    """Of draws whose sum of 1/pi is not the pool's size."""
    right = figures.Propensities(100, 10.1, 10.0, 0.1)
    wrong = figures.Propensities(100, 12.0, 10.0, 0.1)
    assert "as it should be" in right.words
    assert "too far" in wrong.words
    assert "No packet drew" in figures.Propensities(0, 0.0, 0.0, 0.0).words


@pytest.mark.skipif(not CHROMIUM, reason="no Chromium is installed here; CI installs one")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("form", ["run", "curves"])
def test_a_browser_shows_it(
    form: str, scheme: str, tmp_path: Any, browse: Callable[..., Any], request: pytest.FixtureRequest
) -> None:
    """In Chromium: no request, no error, every text has a contrast of 4.5 to the page (WCAG 2, level AA), and at the
    width of a phone nothing is cut off."""
    (tmp_path / "report.html").write_text(made(request.getfixturevalue(form)), encoding="utf-8")
    found = browse(tmp_path / "report.html", scheme)
    assert found["requests"] == []
    assert found["errors"] == []
    assert found["wide"] <= 375
    paper = brightness(found["paper"])
    assert (paper < 0.2) == (scheme == "dark")
    for colour in found["inks"]:
        one, other = sorted((brightness(colour), paper))
        assert (other + 0.05) / (one + 0.05) >= 4.5, colour


@pytest.fixture
def browse() -> Callable[..., Any]:
    """Opens a file in Chromium, and tells what it saw."""
    api = pytest.importorskip("playwright.sync_api", reason="make test installs playwright")

    def look(file: Any, scheme: str) -> dict[str, Any]:
        requests: list[str] = []
        errors: list[str] = []
        with api.sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
            view = browser.new_page(color_scheme=scheme, viewport={"width": 375, "height": 800})
            view.on("request", lambda each: None if each.url.startswith("file:") else requests.append(each.url))
            view.on("console", lambda each: errors.append(each.text))
            view.on("pageerror", lambda each: errors.append(str(each)))
            view.goto(file.as_uri())
            colours = view.evaluate(
                "() => [...new Set([...document.querySelectorAll('body,h1,h2,p,td,th,strong,figcaption')]"
                ".map(each => getComputedStyle(each).color))]"
            )
            wide = view.evaluate("() => document.documentElement.scrollWidth")
            paper = view.evaluate("() => getComputedStyle(document.body).backgroundColor")
            browser.close()
        return {"requests": requests, "errors": errors, "inks": colours, "wide": wide, "paper": paper}

    return look


def brightness(colour: str) -> float:
    """Relative luminance of an rgb() colour."""
    parts = np.array([float(each) for each in re.findall(r"[\d.]+", colour)[:3]]) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ np.array([0.2126, 0.7152, 0.0722]))
