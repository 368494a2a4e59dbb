"""statement: a memory that says something; one that ends in a question mark only asks."""

from sidecar.domain import Floats
from sidecar.features.view import Feature, View


def value(view: View) -> Floats:
    """0 if the memory ends in a question mark, else 1."""
    says: Floats = (~view.columns.asks).astype(float)
    return says


FEATURE = Feature(
    name="statement",
    source="whether it says something: 0 for a memory that ends in a question mark",
    values={"default": value},
)
