"""emotion: stored emotional salience, where the namespace has opted in."""

from sidecar.domain import Floats
from sidecar.features.view import Feature, View


def value(view: View) -> Floats:
    """The stored emotion where switched on, else 0."""
    return view.columns.emotion if view.emotion_enabled else view.nothing


FEATURE = Feature(name="emotion", source="stored emotional salience, only when opted in", values={"default": value})
