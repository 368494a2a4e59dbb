"""Everything that can be set. Every setting declares its unit, bounds and meaning in its field's metadata, from which
flags, documentation and `config --print` are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from sidecar.config.rules import EMBEDDER, FOLDER, HTTP, LISTEN, NAMES, TEXT, Rule, choice, number, whole


def _about(rule: Rule, words: str, unit: str = "") -> dict[str, Any]:
    return {"rule": rule, "help": words, "unit": unit}


_ALSO_BARE = {"bare_variable": True}
"""Marks a setting whose variable may also be given without the prefix, as others have known it."""
IMPORTANCE_WEIGHTS = (
    "content_weight",
    "user_signal_weight",
    "access_pattern_weight",
    "emotional_weight",
    "contextual_weight",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that can be set. Made by `resolve`; `data` and `listen` have defaults that depend on the machine."""

    data: Path = field(metadata=_about(FOLDER, "folder of the store, on a local disk; made if missing"))
    listen: str = field(metadata=_about(LISTEN, "address to serve on"))
    socket_access: str = field(
        default="owner",
        metadata=_about(
            choice("owner", "group"), "who else may use a Unix socket, besides root: the group of its folder"
        ),
    )
    http: str = field(
        default="off",
        metadata=_about(HTTP, "address of the HTTP port, which has /livez, /readyz and /metrics"),
    )
    embedder: str = field(
        default="wordllama",
        metadata=_about(EMBEDDER, "what makes vectors of texts; a store keeps the one it was made with"),
    )
    weights: str = field(
        default="default",
        metadata=_about(TEXT, "name of the weights that serve; weights.active beside [weights.NAME]"),
    )
    threads: int = field(
        default=4,
        metadata=_about(
            whole(1, 64), "calls that are worked on at a time, and as many again that need no vectors", "threads"
        ),
    )
    streams: int = field(
        default=72,
        metadata=_about(whole(1, 1024), "long streams at a time; they never take the threads of calls", "threads"),
    )
    max_message_bytes: int = field(
        default=4_194_304,
        metadata=_about(whole(1_048_576, 67_108_864), "largest message that is taken or sent", "bytes"),
    )
    drain_seconds: float = field(
        default=10.0,
        metadata=_about(number(0, 600), "how long running calls may take to finish when the server stops", "seconds"),
    )
    exact_up_to: int = field(
        default=30_000,
        metadata=_about(
            whole(0, 2**31 - 1),
            "memories of a namespace up to which all are scored; above, candidates are; 0 for always all",
            "memories",
        ),
    )
    reserve_min_reported_sessions: int = field(
        default=5,
        metadata=_about(whole(0, 1000), "reported sessions from which a memory has had its turns", "sessions"),
    )
    reserve_pool_size: int = field(
        default=24, metadata=_about(whole(1, 1000), "most memories that reserved slots draw from", "memories")
    )
    reserve_epsilon: float = field(
        default=0.5, metadata=_about(number(0, 1), "share of a draw that is even over the pool")
    )
    reserve_temperature: float = field(
        default=0.1, metadata=_about(number(0.001, 100), "how little task fit tilts the rest of a draw")
    )
    reserve_floor: float = field(default=0.05, metadata=_about(number(0, 1), "least task fit of a reserved memory"))
    reserve_fit_share: float = field(
        default=0.6,
        metadata=_about(number(0, 1), "least task fit of a reserved memory, as a share of the last ranked one's"),
    )
    swap_near_ties: float = field(
        default=0.0,
        metadata=_about(
            number(0, 0.1),
            "scores so near that the first two ranked memories take either place by chance, to learn how much more the "
            "first is looked at; 0 is off",
        ),
    )
    use_agent_session_cap: int = field(
        default=20,
        metadata=_about(whole(1, 1_000_000), "sessions of one memory that one agent weighs at most", "sessions"),
    )
    rescore_max_move: float = field(
        default=0.1, metadata=_about(number(0, 1), "how far a rescore moves an importance at most in one run")
    )
    prune_keep_days: float = field(
        default=30.0,
        metadata=_about(number(0, 36_500), "age below which no packet is pruned, for training needs it", "days"),
    )
    quota_bytes: int = field(
        default=0,
        metadata=_about(
            whole(0, 2**53),
            "most that the store takes with its log; writes that grow it are refused before; 0 for no limit",
            "bytes",
        ),
    )
    loaded_bytes: int = field(
        default=0,
        metadata=_about(
            whole(0, 2**53),
            "memory that loaded namespaces may take, about; above, those not used for longest are let go of until they "
            "are asked for; 0 for no limit",
            "bytes",
        ),
    )
    log_level: str = field(
        default="info",
        metadata=_about(choice("debug", "info", "warning", "error"), "least severity that is logged"),
    )
    log_format: str = field(default="text", metadata=_about(choice("text", "json"), "form of a log line"))
    emotion_namespaces: tuple[str, ...] = field(
        default=(), metadata=_about(NAMES, "namespaces in which emotional salience counts")
    )
    importance_scorer_enabled: str = field(
        default="true",
        metadata=_about(choice("true", "false"), "whether importances are scored") | _ALSO_BARE,
    )
    content_weight: float = field(
        default=0.30, metadata=_about(number(0, 1), "what the content counts in an importance") | _ALSO_BARE
    )
    user_signal_weight: float = field(
        default=0.25, metadata=_about(number(0, 1), "what ratings and marks count in an importance") | _ALSO_BARE
    )
    access_pattern_weight: float = field(
        default=0.20, metadata=_about(number(0, 1), "what sessions that used it count in an importance") | _ALSO_BARE
    )
    emotional_weight: float = field(
        default=0.15, metadata=_about(number(0, 1), "what emotion counts in an importance") | _ALSO_BARE
    )
    contextual_weight: float = field(
        default=0.10,
        metadata=_about(number(0, 1), "what the context counts in an importance; the five sum to 1") | _ALSO_BARE,
    )
    min_importance: float = field(
        default=0.1, metadata=_about(number(0, 1), "least importance that is computed") | _ALSO_BARE
    )
    max_importance: float = field(
        default=1.0, metadata=_about(number(0, 1), "largest importance that is computed") | _ALSO_BARE
    )
    importance_access: str = field(
        default="logarithm",
        metadata=_about(choice("logarithm", "tiers"), "how sessions that used a memory count in its importance"),
    )
    importance_domain: str = field(
        default="common",
        metadata=_about(
            TEXT,
            "whose weights of the five signals are taken: common, code, conversation, decisions, or an "
            "[importance.NAME] table of the settings file",
        ),
    )
    presets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Weights by name from the file's [weights.NAME] tables, as written there; checked when weights load."""
    importance_domains: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Weights of the five signals by name from the file's [importance.NAME] tables; checked when the server starts."""
    importance_namespaces: Mapping[str, Any] = field(default_factory=dict)
    """Whose weights of the five signals a namespace takes, from the file's table [importance_namespaces]."""


TABLES = ("presets", "importance_domains", "importance_namespaces")
"""The settings that only a settings file can give."""
FIELDS = {each.name: each for each in fields(Settings) if each.metadata}
"""The settings that a flag, a variable or a key may give, by name; metadata has rule, help and unit."""
