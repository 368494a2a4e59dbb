"""The one place that knows SQL: schema, migrations, the one writer, the readers."""

from sidecar.store.checkpoints import Limits
from sidecar.store.reports import CONTRADICTORY, NOT_IN_PACKET, LoggedPacket, ReportItem, ReportOutcome
from sidecar.store.requests import Once, Replayed
from sidecar.store.snapshots import NamespaceNumbers, NamespaceSummary, StoreNumbers
from sidecar.store.store import Store

__all__ = [
    "CONTRADICTORY",
    "NOT_IN_PACKET",
    "Limits",
    "LoggedPacket",
    "NamespaceNumbers",
    "NamespaceSummary",
    "Once",
    "Replayed",
    "ReportItem",
    "ReportOutcome",
    "Store",
    "StoreNumbers",
]
