"""subject: the person or thing the task asks about is whom the memory is about."""

import numpy as np

from sidecar.domain import Floats
from sidecar.features.view import Feature, View

# A memory that is about the subject counts whole; one that merely names it counts half.
MENTION = 0.5


def value(view: View) -> Floats:
    """1 by subject field or speaker prefix, MENTION by mention, else 0."""
    text = view.text
    about = text.subject_field | text.subject_prefix
    return np.where(about, 1.0, np.where(text.subject_mention, MENTION, 0.0))


FEATURE = Feature(
    name="subject",
    source="whom the task asks about: by subject field, by speaker prefix, by mention",
    values={"default": value},
    needs_task=True,
)
