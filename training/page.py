"""An HTML page that stands alone, and what stands in it: no script, no request, light and dark. Pure.

Pictures are inline SVG. A policy in the page itself forbids it to load anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

BAR = 220
"""Width of a full bar, in pixels."""
MOST_ROWS = 200
"""Of a table; what is beyond it is counted. So a report stays small, and its model fits into one message."""
MOST_TEXT = 2_000
"""Characters of one cell."""
STYLE = """
:root { color-scheme: light dark; --ink: #1d2330; --soft: #5a6375; --paper: #ffffff; --line: #d9dee8; --one: #3461c1;
  --two: #b0571b; --good: #1e7a3c; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9f0; --soft: #a2abbd; --paper: #14171f; --line: #333b4b;
  --one: #8fb1ff; --two: #f0a672; --good: #6fd08c; --bad: #ff8a80; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 24px; max-width: 1040px; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 26px; margin: 0 0 4px; } h2 { font-size: 19px; margin: 36px 0 8px; }
p, caption { color: var(--soft); text-align: left; } strong { color: var(--ink); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; } th, td { padding: 4px 14px 4px 0; border-bottom: 1px solid var(--line);
  text-align: left; vertical-align: top; } td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
.passed { color: var(--good); } .refused { color: var(--bad); }
svg text { fill: var(--soft); font-size: 11px; } .one { fill: var(--one); } .two { fill: var(--two); }
.before, .after { stroke-width: 2; fill: none; } .before { stroke: var(--one); stroke-dasharray: 4 3; }
.after { stroke: var(--two); } .axis { stroke: var(--line); }
.grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(230px, 1fr)); gap: 12px 20px; }
"""


def page(title: str, sections: Sequence[str]) -> str:
    """The whole page of these sections."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(sections)
        + "\n</body>\n</html>\n"
    )


def section(title: str, body: str) -> str:
    """A part of the page; `body` is HTML."""
    return f'<section aria-label="{escape(title)}">\n<h2>{escape(title)}</h2>\n{body}\n</section>'


def table(titles: Sequence[str], rows: Iterable[Sequence[str | float]], numbers: Sequence[int] = ()) -> str:
    """Rows under titles, of which the columns `numbers` stand to the right. Cells are escaped, but for those that begin
    with a picture of ours."""
    number = ' class="n"'

    def cell(tag: str, column: int, value: str | float) -> str:
        text = f"{value:.4g}" if isinstance(value, float) else value
        if not text.startswith("<svg"):
            text = escape(text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]}…")
        return f"<{tag}{number if column in numbers else ''}>{text}</{tag}>"

    every = list(rows)
    rows = every[:MOST_ROWS]
    more = f"<p>And {len(every) - MOST_ROWS:,} more.</p>" if len(every) > MOST_ROWS else ""
    head = "".join(cell("th", column, title) for column, title in enumerate(titles))
    body = "\n".join("<tr>" + "".join(cell("td", i, value) for i, value in enumerate(row)) + "</tr>" for row in rows)
    return f'<div class="wide"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>{more}'


def bars(values: Sequence[float], most: float) -> str:
    """One bar above the other, the first in the first colour."""
    full = most or 1.0
    height = 11 * len(values)
    bars = "".join(
        f'<rect class="{name}" x="0" y="{11 * row}" width="{max(0.0, value) / full * BAR:.1f}" height="9" rx="2"/>'
        for row, (name, value) in enumerate(zip(("one", "two"), values, strict=False))
    )
    label = ", ".join(f"{value:.3f}" for value in values)
    return f'<svg role="img" aria-label="{label}" width="{BAR}" height="{height}">{bars}</svg>'
