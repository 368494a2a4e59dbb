"""What a server tells of its work while it works. The observer here keeps nothing: it stands where no metrics are asked
for, so that nobody pays for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from sidecar.domain import Channel, Packet
from sidecar.store.snapshots import StoreNumbers
from sidecar.weights.roles import Outcome


@dataclass(frozen=True, slots=True)
class Standing:
    """How a server that is ready stands; each is asked for anew at every reading."""

    numbers: Callable[[], StoreNumbers]
    store_problems: Callable[[], Iterable[str]]
    model_problems: Callable[[], Iterable[str]]
    model_version: Callable[[], str]
    feature_schema_hash: str
    server_version: str
    embedder: str


class Observer:
    """Hears of every call and of what came of it. Called from many threads, on the way of every answer."""

    def called(self, method: str, code: str, seconds: float) -> None:
        """A call of one of our methods ended with this gRPC code, after so long on its thread."""

    def refused(self, reason: str) -> None:
        """A call was refused for this reason (docs/errors.md)."""

    def stages(self, seconds: Mapping[str, float]) -> None:
        """How long the stages of a Rank took that was answered; one that was not needed is not there."""

    def packet(self, packet: Packet) -> None:
        """A packet was ranked, and logged if it has an id."""

    def report(self, channel: Channel, used: int, unused: int) -> None:
        """A report was recorded that says of so many memories that they were used, and not used."""

    def model(self, outcome: Outcome) -> None:
        """An attempt to change what a model is used for ended so."""

    def working(self, pool: str, count: Callable[[], int]) -> None:
        """`count` says how many calls this pool of threads works on or has waiting."""

    def standing(self, standing: Standing) -> None:
        """The server is ready, and can be asked how it stands."""
