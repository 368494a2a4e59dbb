"""Features in the ways of a preset that repeats a note, which the log does not have: measured again.

What a variant looks at beside the log's own numbers is the text of task and memory. The task is kept with its packet in
a store; a memory's text is its text as it was scored if no one has written to the memory since. The values come from
the code that serves. A packet of which one text is not there any more stays out, for its order would be another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sidecar.domain import Floats, Memory, Micros, Packet
from sidecar.features import BY_NAME, FEATURE_NAMES, RAW_NAMES, View
from sidecar.ranking.long_task import both_ends, is_too_long
from sidecar.ranking.occasion import says_something
from sidecar.retrieval.snapshot import snapshot_of
from sidecar.store.log import LogRow
from training.dataset import Dataset

MEASURABLE = frozenset(("kind_prior:smartctx", "lexical:smartctx", "frequency:smartctx"))
"""Those that need no more than the kinds and counts in the log, and the two texts."""
_USE_SESSIONS = RAW_NAMES.index("use_sessions")

Texts = Mapping[int, tuple[str, Micros]]
"""By a memory's key in the store: its content, and when it was last written."""


def unmeasurable(variants: Mapping[str, str]) -> list[str]:
    """The features whose variants need what no log has, such as the counts of a whole namespace at that moment."""
    return [name for name, variant in variants.items() if f"{name}:{variant}" not in MEASURABLE]


@dataclass(frozen=True, slots=True)
class _Asked:
    task: str
    time: Micros
    """Of its scoring; what was written from then on may have been written after it."""
    keys: tuple[int, ...]
    """Of the served by place, then of the undrawn by id, as a data set has them."""


class Asked:
    """Collects what packets were asked and which memories they scored, while rows pass through to the data set."""

    def __init__(self, task_of: Callable[[bytes], str | None]) -> None:
        self._task_of = task_of
        self._of_packet: dict[str, _Asked] = {}

    def passing(self, rows: Iterable[LogRow]) -> Iterator[LogRow]:
        """The same rows."""
        for row in rows:
            if isinstance(row, Packet) and (task := self._task_of(row.payload)) is not None:
                undrawn = sorted(row.undrawn, key=lambda each: each.memory_id)
                keys = (*(each.memory_key for each in row.items), *(each.memory_key for each in undrawn))
                self._of_packet[row.packet_id] = _Asked(_as_read(task), min(row.as_of_time, row.create_time), keys)
            yield row

    @property
    def keys(self) -> set[int]:
        """Of all the memories; those of a caller's own list are negative."""
        return {key for each in self._of_packet.values() for key in each.keys}

    def measured(
        self,
        dataset: Dataset,
        variants: Mapping[str, str],
        texts: Texts,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> tuple[Dataset, NDArray[np.bool_]]:
        """The data set with these features in their variants, and which packets have them, (p,); the others are as they
        were. `progress` hears packets of packets."""
        features, pool_features = dataset.features.copy(), dataset.pool_features.copy()
        columns = [FEATURE_NAMES.index(name) for name in variants]
        packets = dataset.packets.packet_id
        known = np.zeros(len(packets), bool)
        ends = np.searchsorted(dataset.packet, np.arange(len(packets) + 1)).tolist()
        pool_ends = np.searchsorted(dataset.pool_packet, np.arange(len(packets) + 1)).tolist()
        for number, (mine, others) in enumerate(zip(pairwise(ends), pairwise(pool_ends), strict=True)):
            progress(number, len(packets))
            asked = self._of_packet.get(packets[number])
            contents = None if asked is None else _contents(asked, texts)
            if asked is None or contents is None:
                continue
            served, pool = slice(*mine), slice(*others)
            values = _values(
                asked.task,
                contents,
                [dataset.kinds[code] for code in (*dataset.kind[served], *dataset.pool_kind[pool])],
                np.concatenate([dataset.raw[served, _USE_SESSIONS], dataset.pool_raw[pool, _USE_SESSIONS]]),
                variants,
            )
            count = mine[1] - mine[0]
            features[served, columns], pool_features[pool, columns] = values[:count], values[count:]
            known[number] = True
        progress(len(packets), len(packets))
        return replace(dataset, features=features, pool_features=pool_features), known


def _as_read(task: str) -> str:
    """What the server reads of a task."""
    task = task if says_something(task) else ""
    return both_ends(task) if is_too_long(task) else task


def _contents(asked: _Asked, texts: Texts) -> list[str] | None:
    """The texts as they were scored; None if one of them is not there, or was written since."""
    found = [texts.get(key, ("", asked.time)) for key in asked.keys]
    return None if any(written >= asked.time for _, written in found) else [content for content, _ in found]


def _values(
    task: str, contents: Sequence[str], kinds: Sequence[str], use_sessions: Floats, variants: Mapping[str, str]
) -> Floats:
    """One packet's values, shape (n, len(variants)), in the order of `variants`."""
    memories = [
        Memory(id=str(number), content=content, kind=kind)
        for number, (content, kind) in enumerate(zip(contents, kinds, strict=True))
    ]
    snapshot = snapshot_of(memories)
    view = View(
        columns=replace(snapshot.columns, use_sessions=use_sessions.astype(np.int32)),
        text=snapshot.match_text(task),
        as_of_time=0,
        half_life_days={},
        use_prior={},
        variants=variants,
    )
    return np.stack([view.value(BY_NAME[name]) for name in variants], axis=1)
