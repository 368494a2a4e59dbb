"""Which rows a filter lets through, before anything is cut off."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from sidecar.domain import Filter, Memory
from sidecar.errors import FieldViolation, InvalidRequestError
from sidecar.retrieval.contents import Contents, Mask
from sidecar.retrieval.document import Mark, is_scalar, metadata_paths, same_json, value_mark

NEAR_MATCHES = 3
LOOKED_AT = 2_000
"""Memories that are looked at for the metadata keys that there are."""


def filter_mask(contents: Contents, wanted: Filter) -> Mask:
    """Live rows that `wanted` lets through, shape (n,).

    InvalidRequestError for a metadata key that no live memory bears; a namespace without memories bears none, and
    there every key is let pass.
    """
    columns = contents.columns
    mask = columns.live.copy()
    if wanted.is_empty:
        return mask
    if wanted.kinds:
        codes = [code for code, kind in enumerate(columns.kinds) if kind in wanted.kinds]
        mask &= np.isin(columns.kind, codes)
    if wanted.any_tags:
        mask &= _bears_any(contents, (("tag", tag) for tag in wanted.any_tags))
    for tag in wanted.all_tags:
        mask &= _bears_any(contents, [("tag", tag)])
    if wanted.source_threads:
        mask &= _bears_any(contents, (("thread", thread) for thread in wanted.source_threads))
    if wanted.subjects:
        mask &= _bears_any(contents, (("subject", subject) for subject in wanted.subjects))
    for column, start, end in (
        (columns.create_time, wanted.create_time_from, wanted.create_time_until),
        (columns.update_time, wanted.update_time_from, wanted.update_time_until),
    ):
        if start is not None:
            mask &= column >= start
        if end is not None:
            mask &= column < end
    if wanted.ids:
        mask &= _is_one_of(contents, wanted.ids)
    if wanted.exclude_ids:
        mask &= ~_is_one_of(contents, wanted.exclude_ids)
    if wanted.metadata_equals and columns.live.any():
        mask &= _metadata_equals(contents, wanted.metadata_equals)
    return mask


def _bears_any(contents: Contents, marks: Iterable[Mark]) -> Mask:
    mask = np.zeros(len(contents), dtype=bool)
    for mark in marks:
        mask[contents.rows_marked(mark)] = True
    return mask


def _is_one_of(contents: Contents, ids: Iterable[str]) -> Mask:
    row_of_id = contents.row_of_id
    mask = np.zeros(len(contents), dtype=bool)
    mask[[row for memory_id in ids if (row := row_of_id.get(memory_id)) is not None]] = True
    return mask


def _metadata_equals(contents: Contents, wanted: Mapping[str, Any]) -> Mask:
    unknown = [key for key in wanted if not len(contents.rows_marked(("key", key)))]
    if unknown:
        known = sorted(_known_keys(contents))
        raise InvalidRequestError(
            [FieldViolation("filter.metadata_equals", _unknown_key(key, known)) for key in unknown]
        )
    mask = np.ones(len(contents), dtype=bool)
    for key, value in wanted.items():
        if is_scalar(value):
            mask &= _bears_any(contents, [value_mark(key, value)])
        else:
            rows = contents.rows_marked(("key", key)).tolist()
            equal = np.zeros(len(contents), dtype=bool)
            bearing = zip(rows, contents.memories.at(rows), strict=True)
            equal[[row for row, memory in bearing if _holds(memory, key, value)]] = True
            mask &= equal
    return mask


def _known_keys(contents: Contents) -> set[str]:
    """Metadata keys of the living memories; in a large namespace, of those that came last."""
    rows = np.flatnonzero(contents.columns.live)[-LOOKED_AT:].tolist()
    return {path for memory in contents.memories.at(rows) for path, _ in metadata_paths(memory.metadata)}


def _unknown_key(key: str, known: list[str]) -> str:
    near = difflib.get_close_matches(key, known, NEAR_MATCHES)
    hint = f"did you mean {', '.join(map(repr, near))}?" if near else f"known keys: {', '.join(known[:10]) or 'none'}"
    return f"no memory of the namespace has the metadata key {key!r}; {hint}"


def _holds(memory: Memory, key: str, wanted: Any) -> bool:
    return any(path == key and same_json(value, wanted) for path, value in metadata_paths(memory.metadata))
