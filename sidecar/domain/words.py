"""Units, kinds and the enumerations that a packet and its reports are told in."""

from __future__ import annotations

from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

Micros = int
Floats = NDArray[np.float64]

SECOND: Micros = 1_000_000
MINUTE: Micros = 60 * SECOND
DAY: Micros = 86_400 * SECOND

KNOWN_KINDS = (
    "decision",
    "fact",
    "preference",
    "failure",
    "attempt",
    "debugging",
    "semantic",
    "episodic",
    "procedural",
    "working",
    "archival",
)
DEFAULT_KIND = "fact"


class Segment(StrEnum):
    """The part of a packet a memory stands in."""

    RANKED = "ranked"
    RESERVED = "reserved"
    PINNED = "pinned"


class Channel(StrEnum):
    """How a use came to be known, strongest first."""

    EXPLICIT = "explicit"
    INFERRED = "inferred"
    PACKET = "packet"
    ECHO = "echo"


class ReportState(StrEnum):
    """How a packet stands with respect to reports."""

    OPEN = "open"
    REPORTED = "reported"
    UNREPORTED = "unreported"
    LATE = "late"


class Rating(StrEnum):
    """A rater's mark on a memory; WITHDRAWN takes an earlier one back."""

    HELPFUL = "helpful"
    UNHELPFUL = "unhelpful"
    WITHDRAWN = "withdrawn"


class LeftOutReason(StrEnum):
    """Why a memory is not in a packet, in the order in which the gates stand."""

    FILTERED = "filtered"
    SUPPRESSED = "suppressed"
    RATED_UNHELPFUL = "rated_unhelpful"
    EXPIRED = "expired"
    NOT_YET_VALID = "not_yet_valid"
    SUPERSEDED = "superseded"
    NOT_A_CANDIDATE = "not_a_candidate"
    BELOW_MIN_SCORE = "below_min_score"
    NEAR_DUPLICATE = "near_duplicate"
    OVERSIZED = "oversized"
    BUDGET = "budget"
    OUTRANKED = "outranked"


class EmptyReason(StrEnum):
    """Why a packet has no items."""

    NO_MEMORIES = "no_memories"
    FILTERED = "filtered"
    BELOW_MIN_SCORE = "below_min_score"
    BUDGET = "budget"


class DegradationReason(StrEnum):
    """Something that was not done as well as usual; the answer still holds."""

    LOG_UNAVAILABLE = "log_unavailable"
    NO_EMBEDDING = "no_embedding"
    TASK_SHORTENED = "task_shortened"
    MODEL_FALLBACK = "model_fallback"


class WriteOutcome(StrEnum):
    """What a write did to one memory."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    DELETED = "deleted"
