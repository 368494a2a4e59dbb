"""relevance: the caller's own stored search score."""

from sidecar.domain import Floats
from sidecar.features.view import Feature, View


def value(view: View) -> Floats:
    """The stored relevance, 0 where there is none."""
    return view.columns.relevance


FEATURE = Feature(
    name="relevance", source="the search score that the caller stored with the memory", values={"default": value}
)
