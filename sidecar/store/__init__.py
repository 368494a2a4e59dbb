"""The one place that knows SQL: schema, migrations, the one writer, the readers."""

from sidecar.store.checkpoints import Limits
from sidecar.store.requests import Once, Replayed
from sidecar.store.snapshots import NamespaceSummary
from sidecar.store.store import Store

__all__ = [
    "Limits",
    "NamespaceSummary",
    "Once",
    "Replayed",
    "Store",
]
