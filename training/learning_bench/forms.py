"""Curves beside linear weights on conversations that neither was fitted on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sidecar.weights import PRESETS
from training.learning_bench.recovery import left_out
from training.learning_bench.rows import PREVIEW, Row, Say, beside, dataset_of, interval
from training.model import Model
from training.movement import MovementCaps
from training.promotion import Promotion
from training.run import TrainSettings, train
from training.worlds import World, play

SESSIONS = 3_000
"""More than the 2,000 with a used and an unused memory that curves need to take the place of weights."""
FREE = MovementCaps(max_l1=2.0, max_step=1.0, least_overlap=0.0)


def forms(worlds: Sequence[World], sessions: int, say: Say) -> list[Row]:
    """nDCG@10 of each conversation, of weights and of curves fitted to the same reported packets of the others, served
    by `engine`; and what the gates say of the curves."""
    found: dict[str, list[float]] = {"linear": [], "curves": []}
    outcomes: list[Promotion | None] = []
    blocked: Counter[str] = Counter()
    for held, others, _, _ in left_out(worlds):
        dataset = dataset_of(play(others, PRESETS["engine"], np.random.default_rng(1), sessions=sessions))
        for form, values in found.items():
            run = train(dataset, Model(PRESETS["engine"]), replace(PREVIEW, form=form))
            assert run.trained is not None
            values.append(held.ndcg(run.trained.new.common))
        gated = train(dataset, Model(PRESETS["engine"]), TrainSettings(form="curves", movement=FREE))
        outcomes.append(None if gated.trained is None else gated.trained.promotion)
        blocked.update(gate.gate for gate in (*gated.train_gates, *gated.promote_gates) if gate.passed is False)
        say(f"forms: {held.name} left out, linear {found['linear'][-1]:.3f}, curves {found['curves'][-1]:.3f}")
    apart = [one - other for one, other in zip(found["curves"], found["linear"], strict=True)]
    low, high = interval(apart)
    note = f"{len(worlds)} conversations left out, {sessions:,} sessions of the others served by `engine`; --preview"
    promoted = sum(outcome is Promotion.AUTOMATIC for outcome in outcomes)
    refusals = ", ".join(f"{gate} {count}" for gate, count in sorted(blocked.items())) or "none"
    return [
        beside("nDCG@10 on a new conversation: linear weights", float(np.mean(found["linear"])), "nDCG@10", note),
        beside("nDCG@10 on a new conversation: curves", float(np.mean(found["curves"])), "nDCG@10", note),
        beside(
            "curves less linear weights", float(np.mean(apart)), "nDCG@10", f"[{low:+.3f}, {high:+.3f}] by conversation"
        ),
        beside(
            "curves that the gates would let take the place of linear weights",
            float(promoted),
            f"of {len(worlds)} runs",
            f"without movement caps; gates that refused: {refusals}",
        ),
    ]
