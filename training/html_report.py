"""The report of a training run as one HTML page that stands alone. Pure: same run, same bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import numpy as np

from sidecar.features import FEATURE_NAMES
from sidecar.plurals import counted
from sidecar.weights import Weights
from sidecar.weights.artifact import Provenance
from training import report_figures as figures
from training.gates import Coverage, coverage
from training.page import bars, page, section, table
from training.run import MOST_OWN, Run, Trained

MOST_APART = 4
"""Weights by which a namespace is said to differ."""
WeightRow = tuple[str, float, float, str]


def report(run: Run, trained: Trained, version: str, provenance: Provenance, weights: Sequence[WeightRow]) -> str:
    """The page of one run. `weights` are (feature, before, after, standard error)."""
    k = run.settings.gates.top_k
    logged, aged = trained.logged, trained.dataset
    scores = trained.old.served_scores(logged), trained.new.served_scores(aged)
    moved = figures.moves(logged, aged, trained.old, trained.new, k)
    sections = [
        _head(run, trained, version, provenance),
        section("Gates", _gates(run)),
        section("Weights", _weights(weights)),
        section("Curves" if trained.new.common.curves else "Contributions", _contributions(trained)),
        section("Half-lives", _half_lives(trained)),
        section("Namespaces", _namespaces(trained)),
        section("Use by place", _use(figures.use_by_place(logged), "place")),
        section("Use by value of each feature", _by_value(figures.use_by_value(logged))),
        section("Reports by agent", _coverage(run.agents, "agent", run.left_out_agents)),
        section("Reports by surface", _coverage(coverage(logged, logged.packets.surface), "surface")),
        section("Propensities", f"<p>{escape(figures.propensities(logged).words)}</p>" + _off_policy(trained)),
        section("Use by kind", _use(figures.use_by_kind(logged), "kind")),
        section(
            f"nDCG@{k} of held-out sessions, by agent",
            _slices(figures.slices(logged, scores, trained.split.held_out, logged.packets.agent, k)),
        ),
        section(
            f"nDCG@{k} of held-out sessions, by namespace",
            _slices(figures.slices(logged, scores, trained.split.held_out, logged.packets.namespace, k)),
        ),
        section(
            f"nDCG@{k} of held-out sessions, by kind",
            "<p>Among the memories of one kind alone.</p>"
            + _slices(figures.slices_by_kind(logged, scores, trained.split.held_out, k)),
        ),
        section("The memories that move most", _movers(moved)),
        section("What would have been served differently", _exchanges(moved, k)),
    ]
    return page(version, sections)


def _head(run: Run, trained: Trained, version: str, provenance: Provenance) -> str:
    apart = trained.held_out.difference
    window, counts = provenance.window, provenance.counts
    return (
        f"<header><h1>{escape(version)}</h1>\n<p>Promotion: <strong>{trained.promotion.value}</strong>. Starts from "
        f"<strong>{escape(provenance.base_version)}</strong>. On {counted(apart.sessions, 'held-out session')} nDCG@"
        f"{run.settings.gates.top_k} goes from {trained.held_out.old:.4f} to {trained.held_out.new:.4f}, by "
        f"<strong>{apart.mean:+.4f}</strong> (95 %: {apart.low:+.4f} to {apart.high:+.4f}).</p>\n"
        f"<p>Packets of {window['from_time']} until {window['event_cutoff_time']}, reports received until "
        f"{window['ingest_cutoff_time']}: {counted(counts['packets'], 'packet')}, {counts['reported_packets']:,} "
        f"reported on, {counted(counts['fitted_sessions'], 'session')} fitted on.</p></header>"
    )


def _gates(run: Run) -> str:
    marks = {True: "passed", False: "refused", None: "not judged"}
    rows = [
        (stage, gate.gate, marks[gate.passed], gate.words)
        for stage, gates in (("train", run.train_gates), ("promote", run.promote_gates))
        for gate in gates
    ]
    found = table(("stage", "gate", "outcome", "in words"), rows)
    for word in ("passed", "refused"):
        found = found.replace(f"<td>{word}</td>", f'<td class="{word}">{word}</td>')
    return found


def _weights(rows: Sequence[WeightRow]) -> str:
    most = max((max(before, after) for _, before, after, _ in rows), default=1.0)
    return "<p>Blue before, orange after.</p>" + table(
        ("feature", "before", "after", "by", "standard error", ""),
        [
            (name, f"{before:.4f}", f"{after:.4f}", f"{after - before:+.4f}", error, bars((before, after), most))
            for name, before, after, error in rows
        ],
        (1, 2, 3, 4),
    )


def _contributions(trained: Trained) -> str:
    shares = [
        figures.contribution_shares(data, model.common)
        for data, model in ((trained.logged, trained.old), (trained.dataset, trained.new))
    ]
    names = [name for name in FEATURE_NAMES if shares[0][name] > 0 or shares[1][name] > 0]
    most = max((max(each[name] for each in shares) for name in names), default=1.0)
    shown = table(
        ("feature", "before", "after", ""),
        [
            (name, f"{shares[0][name]:.1%}", f"{shares[1][name]:.1%}", bars([each[name] for each in shares], most))
            for name in names
        ],
        (1, 2),
    )
    words = "<p>What each feature adds to the scores of served memories, of all that is added.</p>"
    return f"{words}{shown}{_curves(trained.old.common, trained.new.common)}"


def _curves(old: Weights, new: Weights) -> str:
    """What each feature adds by its value: a step function, or a straight line up to its cap."""
    lines = [[_line(weights, column) for column in range(len(FEATURE_NAMES))] for weights in (old, new)]
    top = max((y for of_weights in lines for line in of_weights for _, y in line), default=0.0) or 1.0
    pictures = []
    for name, *both in zip(FEATURE_NAMES, *lines, strict=True):
        if not any(y > 0.0 for line in both for _, y in line):
            continue
        drawn = "".join(
            f'<polyline class="{which}" points="'
            + " ".join(f"{10 + 200 * x:.1f},{70 - 60 * y / top:.1f}" for x, y in line)
            + '"/>'
            for which, line in zip(("before", "after"), both, strict=True)
            if any(y > 0.0 for _, y in line)
        )
        pictures.append(
            f'<figure style="margin:0"><svg role="img" aria-label="{name}" width="220" height="88">'
            f'<line class="axis" x1="10" y1="70" x2="210" y2="70"/>{drawn}'
            f'<text x="10" y="84">0</text><text x="203" y="84">1</text><text x="10" y="10">{top:.3f}</text></svg>'
            f"<figcaption>{name}</figcaption></figure>"
        )
    words = "What a value adds, by feature, all on one scale: before dashed, after in full."
    return f'<p>{words}</p><div class="grid">{"".join(pictures)}</div>'


def _line(weights: Weights, column: int) -> list[tuple[float, float]]:
    """The corners of what a feature adds, from x = 0 to 1."""
    if weights.curves:
        curve = weights.curves[column]
        if curve is None:
            return [(0.0, 0.0), (1.0, 0.0)]
        ends = [*np.repeat(curve.thresholds, 2).tolist(), 1.0]
        return list(zip([0.0, *ends], np.repeat(curve.values, 2).tolist(), strict=True))
    weight, cap = float(weights.values[column]), float(weights.caps[column])
    bend = min(1.0, cap / weight) if weight > 0.0 else 1.0
    return [(x, min(weight * x, cap)) for x in sorted({0.0, bend, 1.0})]


def _half_lives(trained: Trained) -> str:
    if not trained.half_lives:
        return "<p>No kind stands in enough pairs.</p>"
    return "<p>In days. A run moves one by a factor of two at most.</p>" + table(
        ("kind", "before", "after", "likeliest", "gain in log-likelihood", "sessions"),
        [
            (
                each.kind or "not logged",
                f"{each.old:g}",
                f"{each.new:g}",
                f"{each.best:g}",
                f"{each.gain:.2f}",
                str(each.sessions),
            )
            for each in trained.half_lives
        ],
        (1, 2, 3, 4, 5),
    )


def _namespaces(trained: Trained) -> str:
    found = trained.namespaces.found
    if not found:
        return "<p>No namespace was fitted on its own.</p>"
    differing = sum(each.differs for each in found)
    return (
        f"<p>{differing:,} of {counted(len(found), 'namespace')} differ. They are served by weights of their own (at "
        f"most the {MOST_OWN:,} with the most sessions), each drawn to the common ones as far as its data do not "
        "carry it. The error is the largest standard error of its weights.</p>"
        + table(
            (
                "namespace",
                "differs",
                "sum of moves",
                "carried by its data",
                "sessions",
                "error",
                "from the common weights",
            ),
            [
                (
                    each.namespace,
                    "yes" if each.differs else "no",
                    f"{each.difference:.3f}",
                    f"{each.share:.0%}",
                    str(each.sessions),
                    f"{np.nanmax(each.standard_errors):.3f}" if np.isfinite(each.standard_errors).any() else "",
                    _apart(trained, each.namespace),
                )
                for each in sorted(found, key=lambda each: (-each.difference, each.namespace))
            ],
            (2, 3, 4, 5),
        )
    )


def _apart(trained: Trained, namespace: str) -> str:
    """The weights by which a namespace differs most from the common ones, as they would serve."""
    own = trained.new.namespaces.get(namespace)
    if own is None:
        return ""
    apart = own.values - trained.new.common.values
    most = [index for index in np.argsort(-np.abs(apart), kind="stable")[:MOST_APART].tolist() if apart[index]]
    return ", ".join(f"{FEATURE_NAMES[index]} {apart[index]:+.3f}" for index in most)


def _use(shares: Sequence[figures.Share], what: str) -> str:
    known = [each for each in shares if each.seen > 0]
    if not known:
        return "<p>Nothing is known of use.</p>"
    most = max(each.rate for each in known)
    return table(
        (what, "used", "of", "rate", ""),
        [
            (each.name, f"{each.used:.0f}", f"{each.seen:.0f}", f"{each.rate:.1%}", bars((each.rate,), most))
            for each in known
        ],
        (1, 2, 3),
    )


def _by_value(found: Mapping[str, Sequence[figures.Share]]) -> str:
    parts = []
    for name, shares in found.items():
        most = max(each.rate for each in shares) or 1.0
        drawn = "".join(
            f'<rect class="one" x="{10 + 34 * i}" y="{70 - 60 * each.rate / most:.1f}" width="26" '
            f'height="{60 * each.rate / most:.1f}">'
            f"<title>{each.name}: {each.rate:.1%} of {each.seen:.0f}</title></rect>"
            f'<text x="{10 + 34 * i}" y="84">{each.name.removeprefix("to ")}</text>'
            for i, each in enumerate(shares)
        )
        parts.append(
            f'<figure style="margin:0"><svg role="img" aria-label="{name}" width="220" height="88">{drawn}'
            f'<text x="10" y="9">{most:.0%}</text></svg><figcaption>{name}</figcaption></figure>'
        )
    return (
        "<p>How often memories were used, by the value that the feature had: 0, and fifths up to 1.</p>"
        '<div class="grid">' + "".join(parts) + "</div>"
    )


def _coverage(found: Sequence[Coverage], what: str, left_out: Sequence[str] = ()) -> str:
    most = max((each.share for each in found), default=1.0)
    return table(
        (what, "packets", "reported", "share", "", ""),
        [
            (
                each.agent or "(unnamed)",
                f"{each.packets}",
                f"{each.reported}",
                f"{each.share:.1%}",
                bars((each.share,), most),
                "left out" if each.agent in left_out else "",
            )
            for each in sorted(found, key=lambda each: -each.packets)
        ],
        (1, 2, 3),
    )


def _off_policy(trained: Trained) -> str:
    found = trained.off_policy
    if found is None:
        return "<p>No memory of a reserved slot was reported on in the held-out sessions.</p>"
    rows = [
        (name, f"{each.value:.4f}", f"{each.difference:+.4f}", f"{each.low:+.4f} to {each.high:+.4f}")
        for name, each in found.estimates.items()
    ]
    return f"<p>{escape(found.words)}.</p>" + table(
        ("estimator", "use rate", "against logged", "95 %"), rows, (1, 2, 3)
    )


def _slices(found: Sequence[figures.Slice]) -> str:
    if not found:
        return "<p>No session was held out.</p>"
    return table(
        ("", "sessions", "before", "after", "by"),
        [
            (
                each.name or "(unnamed)",
                str(each.sessions),
                f"{each.before:.4f}",
                f"{each.after:.4f}",
                f"{each.after - each.before:+.4f}",
            )
            for each in sorted(found, key=lambda each: -each.sessions)
        ],
        (1, 2, 3, 4),
    )


def _movers(moved: figures.Moves) -> str:
    if not moved.movers:
        return "<p>No memory moves.</p>"
    return (
        "<p>Mean places among the logged candidates of their packets, and the feature that moves them most.</p>"
        + table(
            ("memory", "packets", "place before", "place after", "because of"),
            [
                (each.memory_id, str(each.packets), f"{each.before:.1f}", f"{each.after:.1f}", each.because)
                for each in moved.movers
            ],
            (1, 2, 3),
        )
    )


def _exchanges(moved: figures.Moves, k: int) -> str:
    share = moved.changed / moved.packets if moved.packets else 0.0
    words = (
        f"<p>In {moved.changed} of {counted(moved.packets, 'packet')} ({share:.0%}) the first {k} would be others.</p>"
    )
    if not moved.exchanges:
        return words
    return words + table(
        ("packet", "would have gone", "would have come"),
        [(each.packet_id, ", ".join(each.gone), ", ".join(each.come)) for each in moved.exchanges],
    )
