"""kind_prior: what a memory's kind is worth before anything else is known (note: smartctx-scorer, "Kind weight")."""

from sidecar.domain import Floats
from sidecar.features.view import Feature, View

# Weight .35 times these gives the note's .35 .30 .25 .20 .05. The other kinds stand where their use is alike.
PRIOR = {
    "decision": 7 / 7,
    "fact": 6 / 7,
    "preference": 5 / 7,
    "failure": 4 / 7,
    "attempt": 1 / 7,
    "procedural": 6 / 7,
    "semantic": 6 / 7,
    "archival": 4 / 7,
    "episodic": 3 / 7,
    "debugging": 3 / 7,
    "working": 2 / 7,
    "default": 3 / 7,
}
_OF_FIVE = {kind: PRIOR[kind] for kind in ("decision", "fact", "preference", "failure", "attempt")} | {"default": 0.0}


def value(view: View) -> Floats:
    """The prior of each row's kind."""
    return view.by_kind(PRIOR)


def none_for_other_kinds(view: View) -> Floats:
    """As the smartctx note has it: a kind outside its five is worth nothing."""
    return view.by_kind(_OF_FIVE)


FEATURE = Feature(
    name="kind_prior",
    source="the memory's kind: decision 1, fact 6/7, preference 5/7, failure 4/7, attempt 1/7, ...",
    values={"default": value, "smartctx": none_for_other_kinds},
)
