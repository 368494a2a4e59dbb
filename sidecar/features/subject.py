"""subject: the person or thing the task asks about is whom the memory is about."""

import numpy as np

from sidecar.domain import Floats
from sidecar.features.view import Feature, View


def value(view: View) -> Floats:
    """1 by subject field or speaker prefix, else 0.

    A memory that merely names someone is not worth more for it: where people address each other, a name in a
    sentence marks the one who is spoken to.
    """
    text = view.text
    if not (len(text.subject_field) or len(text.subject_prefix)):
        return view.nothing
    about = np.zeros(len(view.columns))
    about[text.subject_field] = about[text.subject_prefix] = 1.0
    return about


FEATURE = Feature(
    name="subject",
    source="whom the task asks about: by subject field, by speaker prefix",
    values={"default": value},
    needs_task=True,
    version=2,
)
