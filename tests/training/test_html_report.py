from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

from sidecar.weights import make_weights
from tests.training.made import Agent, Truth, make_dataset
from training import report_figures as figures
from training.artifact_files import others_of
from training.model import Model
from training.run import Run, TrainSettings, train

TRUTH = {"semantic": 0.4, "lexical": 0.3, "subject": 0.3, "handles": 0.0}
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
        "Propensities",
        "Use by kind",
        "nDCG@10 of held-out sessions, by agent",
        "nDCG@10 of held-out sessions, by namespace",
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


def test_wrong_propensities_are_told() -> None:
    """Of draws whose sum of 1/pi is not the pool's size."""
    right = figures.Propensities(100, 10.1, 10.0, 0.1)
    wrong = figures.Propensities(100, 12.0, 10.0, 0.1)
    assert "as it should be" in right.words
    assert "too far" in wrong.words
    assert "No packet drew" in figures.Propensities(0, 0.0, 0.0, 0.0).words


@pytest.mark.skipif(not CHROMIUM, reason="no Chromium is installed here; CI installs one")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_browser_shows_it(page: str, scheme: str, tmp_path: Any, browse: Callable[..., Any]) -> None:
    """In Chromium: no request, no error, every text has a contrast of 4.5 to the page (WCAG 2, level AA), and at the
    width of a phone nothing is cut off."""
    (tmp_path / "report.html").write_text(page, encoding="utf-8")
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
