"""How an importance is shown: a table, the report in Markdown, and what to make of it in words.

Knows the API's messages by their fields alone."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Sequence
from typing import Any

import click

from sidecar.cli import screen
from sidecar.cli.screen import Column
from sidecar.plurals import counted

NAMES = {
    "content": "Content Analysis",
    "user": "User Signal",
    "access": "Access Pattern",
    "emotion": "Emotional Salience",
    "context": "Contextual Relevance",
    "baseline": "Baseline of its Kind",
    "theme": "Recurring Theme",
    "contradiction": "Contradicted",
    "inconsistency": "Inconsistent",
    "superseded": "Superseded",
    "statement": "Sort of Statement",
    "words": "Wording",
    "clamp": "Clamp",
    "override": "User's Word",
}
"""Of the lines that sum to the score; parts of a signal are named by what they are."""
ROUNDING = "rounding"
"""A line of the last bits, which no table has room for."""
PASSING = ("working", "episodic")
FEW_LINKS = 0.3
"""Value of cross-references below which a memory of high importance could do with links."""


def show(result: Any, content: str, kind: str) -> None:
    """A table with the parts of each signal below it, and the words."""
    screen.table(
        [Column("factor"), *(Column(title, is_number=True) for title in ("score", "weight", "contribution"))],
        [
            [
                f"  {_part(line.factor)}" if "." in line.factor else _name(line.factor),
                _value(line),
                f"{line.weight:.0%}" if line.HasField("value") else "",
                f"{line.contribution:+.3f}" if line.HasField("value") else "",
            ]
            for line in result.lines
            if line.factor != ROUNDING
        ],
    )
    click.echo()
    found = result.importance
    screen.fields(
        [
            ("score", f"{found.score:.3f}, {tier(found.score)} importance"),
            ("without the rating", f"{result.weighted_score:.3f}" if result.weighted_score != found.score else ""),
            ("confidence", f"{found.confidence:.2f}, {result.confidence_tier}"),
            ("half-life", f"{_days(result.half_life_days)}; {result.decayed_score:.3f} is left of the score now"),
            ("agents", _agents(result)),
            ("kind", kind),
            ("memory", content),
        ]
    )
    for title, lines in (("key factors", found.factors), ("recommendation", recommendation(result, kind))):
        click.echo()
        click.secho(title, bold=True)
        for line in lines:
            click.echo(f"- {screen.visible(line)}")


def markdown(result: Any, content: str, kind: str) -> str:
    """The report of the note importance-scorer, as Markdown."""
    found = result.importance
    now = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
    lines = [
        "# Importance Scorer Report",
        "",
        f"**Memory:** {_quoted(content)}",
        f"**Type:** {_plain(kind)}",
        f"**Timestamp:** {now.isoformat().replace('+00:00', 'Z')}",
        "",
        "## Score Breakdown",
        "",
        "| Factor | Score | Weight | Contribution |",
        "|--------|-------|--------|--------------|",
    ]
    for line in result.lines:
        if "." not in line.factor and line.factor != ROUNDING:
            value = _value(line) or "absent"
            lines.append(f"| {_name(line.factor)} | {value} | {line.weight:.0%} | {line.contribution:+.3f} |")
    lines += [
        "",
        f"**Final Score:** {found.score:.3f}",
        f"**Confidence:** {found.confidence:.2f} ({result.confidence_tier})",
    ]
    if agents := _agents(result):
        lines.append(f"**Agents:** {agents}")
    lines += ["", "## Key Factors", ""]
    lines += [f"{number}. {_plain(words)}" for number, words in enumerate(found.factors, 1)]
    lines += ["", "## Recommendation", "", f"**{tier(found.score).upper()} IMPORTANCE** - this memory should be:", ""]
    return "\n".join([*lines, *(f"- {words}" for words in recommendation(result, kind))]) + "\n"


def show_all(results: Sequence[tuple[str, Any, Any]], limit: int, *, with_namespace: bool) -> None:
    """(namespace, memory, result), highest first: a table of the first, and how many are of which tier."""
    rows = [
        [
            f"{result.importance.score:.3f}",
            f"{result.importance.confidence:.2f}",
            _days(result.half_life_days),
            "yes" if result.promotion_candidate else "",
            *([name] if with_namespace else []),
            memory.kind,
            memory.id,
            memory.content,
        ]
        for name, memory, result in results[:limit]
    ]
    if rows:
        numbers = [Column(title, is_number=True) for title in ("score", "confidence", "half-life")]
        names = ["promote", *(["namespace"] if with_namespace else []), "kind", "id"]
        screen.table([*numbers, *map(Column, names), Column("content", is_text=True)], rows)
    if len(results) > len(rows):
        click.echo(f"... and {len(results) - len(rows)} more; --limit shows more, --json has all.")
    if not results:
        click.echo("0 memories: there is none to score.")
        return
    tiers = Counter(tier(result.importance.score) for _, _, result in results)
    counts = ", ".join(f"{tiers[name]} {name}" for name in ("high", "moderate", "low"))
    click.echo(f"{counted(len(results), 'memory')}: {counts}.")


def tier(score: float) -> str:
    """high, moderate or low."""
    from sidecar.importance.factors import tier as tier_of

    return tier_of(score)


def recommendation(result: Any, kind: str) -> list[str]:
    """What to do with a memory of this importance: which tier of storage, how long, and what else."""
    level = tier(result.importance.score)
    is_sure = result.importance.confidence >= 0.4
    if level == "low":
        stored = "kept as working memory, or let go" if kind in PASSING else "kept as it is, or let go"
    elif result.promotion_candidate or (level == "high" and kind in PASSING):
        stored = "stored in the semantic memory tier" + ("" if result.promotion_candidate else ", once it is surer")
    else:
        stored = f"stored as {'archival' if kind == 'archival' else 'semantic' if kind == 'fact' else kind} memory"
    long = "long" if result.half_life_days >= 30 else "short"
    found = [stored, f"given the {long} half-life of its kind ({_days(result.half_life_days)})"]
    if level == "high":
        found.append("prioritized in retrieval operations")
        links = next((line.value for line in result.lines if line.factor == "content.cross_references"), 0.0)
        if links < FEW_LINKS:
            found.append("considered for cross-referencing: it points to little")
    if not is_sure:
        found.append("rated by its user or used in a few sessions before the score is relied on")
    return found


def _name(factor: str) -> str:
    return NAMES.get(factor, factor)


def _part(factor: str) -> str:
    return factor.partition(".")[2].replace("_", " ")


def _value(line: Any) -> str:
    return f"{line.value:.2f}" if line.HasField("value") else ""


def _agents(result: Any) -> str:
    if not result.HasField("consensus"):
        return ""
    agents = result.consensus
    return f"{agents.agents} agents, consensus {agents.score:.2f}, spread {agents.spread:.2f}"


def _days(days: float) -> str:
    return f"{days:g} day{'' if days == 1 else 's'}"


def _quoted(text: str) -> str:
    return f'"{_plain(text)}"'


def _plain(text: str) -> str:
    """On one line, with no mark-up of its own."""
    return "".join(f"\\{c}" if c in "\\`*_[]<>|#" else c for c in screen.visible(text))
