"""subject: the person or thing the task asks about is whom the memory is about."""

from sidecar.domain import Floats
from sidecar.features.view import Feature, View


def value(view: View) -> Floats:
    """1 by subject field or speaker prefix, else 0.

    A memory that merely names someone is not worth more for it: where people address each other, a name in a
    sentence marks the one who is spoken to.
    """
    text = view.text
    if not (text.subject_field.any() or text.subject_prefix.any()):
        return view.nothing
    about: Floats = (text.subject_field | text.subject_prefix).astype(float)
    return about


FEATURE = Feature(
    name="subject",
    source="whom the task asks about: by subject field, by speaker prefix",
    values={"default": value},
    needs_task=True,
    version=2,
)
