"""The named weights that are shipped: three that repeat known notes, and our own default."""

from __future__ import annotations

from sidecar.weights.linear import Weights, make_weights

# note smartctx-scorer: kind prior, stored relevance .30, keyword overlap .25, access bonus capped at .10.
SMARTCTX = make_weights(
    "smartctx",
    {"kind_prior": 0.35, "relevance": 0.30, "lexical": 0.25, "frequency": 0.10},
    use_family_cap=0.10,
    variants={"kind_prior": "smartctx", "lexical": "smartctx", "frequency": "smartctx"},
)

# note scoring-engine: semantic proximity 40 %, recency 25 %, frequency 20 %, feedback 15 %.
ENGINE = make_weights(
    "engine",
    {"semantic": 0.40, "recency": 0.25, "frequency": 0.20, "rating": 0.15},
    use_family_cap=0.35,
)

# note importance-scorer: content 30 %, user 25 %, access 20 % (.6 of it sessions, .4 recency), emotion 15 %, context 10
# %. Content and user share the feature importance, so that the user's word can stand for both.
IMPORTANCE = make_weights(
    "importance",
    {"importance": 0.55, "frequency": 0.12, "recency": 0.08, "emotion": 0.15, "context": 0.10},
    use_family_cap=0.45,
    variants={"importance": "importance", "frequency": "importance"},
)

# The weights of task fit were fitted by `python -m training.fit_default` on five conversations of LoCoMo (Maharana et
# al. 2024, CC BY-NC 4.0: the numbers come from it, its text is not here); the rest was set by hand, for what those
# conversations cannot tell. docs/ranking.md has the figures, and the same command fits them to other data.
DEFAULT = make_weights(
    "default",
    {
        "thread": 0.43,
        "dates": 0.118,
        "semantic": 0.071,
        "subject": 0.064,
        "lexical": 0.036,
        "statement": 0.026,
        "handles": 0.06,
        "context": 0.03,
        "use_rate": 0.07,
        "rating": 0.03,
        "frequency": 0.02,
        "importance": 0.02,
        "kind_prior": 0.01,
        "recency": 0.005,
        "relevance": 0.01,
    },
    use_family_cap=0.15,
)

PRESETS: dict[str, Weights] = {preset.version: preset for preset in (DEFAULT, SMARTCTX, ENGINE, IMPORTANCE)}
