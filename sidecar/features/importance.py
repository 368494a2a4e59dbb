"""importance: a memory's own worth, by one pure function of its content, use and user parts.

The user's word wins. Without one, content and use share the score; a missing part hands its share to the other, and
with neither the kind's baseline stands (note: importance-scorer, "Memory Type Adjustments").
"""

import numpy as np

from sidecar.domain import Floats
from sidecar.features.view import Feature, View

BASELINE = {
    "working": 0.3,
    "episodic": 0.5,
    "archival": 0.6,
    "semantic": 0.7,
    "procedural": 0.8,
    "decision": 0.8,
    "fact": 0.7,
    "preference": 0.6,
    "failure": 0.6,
    "debugging": 0.4,
    "attempt": 0.3,
    "default": 0.5,
}
USE_SHARE = 0.4
NOTE_CONTENT, NOTE_USER = 0.30, 0.25


def marks_value(helpful: int, unhelpful: int) -> float:
    """What marks of raters say, in (0, 1): helpful ones among all, with half a mark on either side."""
    return (helpful + 0.5) / (helpful + unhelpful + 1.0)


def combine(content: Floats, use: Floats, override: Floats, baseline: Floats) -> Floats:
    """The score of each row from its parts; NaN stands for a part that is missing. Shape (n,), in [0, 1]."""
    return _with_use(np.where(np.isnan(content), baseline, content), use, override)


def value(view: View) -> Floats:
    """The combined score of each row."""
    columns = view.columns
    return _with_use(_own(view), columns.importance_use, columns.importance_override)


def note(view: View) -> Floats:
    """As the importance-scorer note weighs content and user, .30 and .25, of which together they have a share: the
    user's word alone where there is one, else content with marks, else content alone. Use comes by other features."""
    columns = view.columns
    own, marked = without_use(view), columns.helpful + columns.unhelpful > 0
    if not marked.any():
        return own
    marks = (columns.helpful + 0.5) / (columns.helpful + columns.unhelpful + 1.0)
    with_marks = (NOTE_CONTENT * own + NOTE_USER * marks) / (NOTE_CONTENT + NOTE_USER)
    return np.where(marked & np.isnan(columns.importance_override), with_marks, own)


def without_use(view: View) -> Floats:
    """The combined score as if nothing were known of use: its part in task fit. Shape (n,)."""
    override = view.columns.importance_override
    return view.once("importance_without_use", lambda: np.where(np.isnan(override), _own(view), override))


def _own(view: View) -> Floats:
    """The content part, or what the row's kind is worth by itself. Shape (n,)."""
    content = view.columns.importance_content
    return view.once("importance_own", lambda: np.where(np.isnan(content), view.by_kind(BASELINE), content))


def _with_use(own: Floats, use: Floats, override: Floats) -> Floats:
    together = np.where(np.isnan(use), own, (1.0 - USE_SHARE) * own + USE_SHARE * use)
    return np.where(np.isnan(override), together, override)


FEATURE = Feature(
    name="importance",
    source="its own worth: content, use and the user's word, which wins",
    values={"default": value, "importance": note},
    without_use=without_use,
    raw={"importance_without_use": without_use},
)
