"""dates: the memory was learned when the task says: on a day, in a month or a year that it names."""

import numpy as np

from sidecar.domain import Floats
from sidecar.features.view import Feature, View

FADING_DAYS = 5.0
FARTHEST_DAYS = 60.0


def value(view: View) -> Floats:
    """exp(-days off / FADING_DAYS): 1 within what the task names, 0 from FARTHEST_DAYS on or if it names none."""
    days = view.text.days_off
    if days is None:
        return view.nothing
    return np.where(days < FARTHEST_DAYS, np.exp(-days / FADING_DAYS), 0.0)


FEATURE = Feature(
    name="dates",
    source="learned on, or soon after, a day, month or year that the task names",
    values={"default": value},
    needs_task=True,
)
