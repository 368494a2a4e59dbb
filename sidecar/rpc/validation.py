"""The API's bounds on single values, as the .proto files state them. Each check notes what is wrong and goes on.

Pure. A description says what the value is, what it must be, and shows no more than a glimpse of long values.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from google.protobuf.duration_pb2 import Duration
from google.protobuf.struct_pb2 import Struct, Value
from google.protobuf.timestamp_pb2 import Timestamp
from numpy.typing import NDArray

from sidecar.domain import DAY, SECOND, Micros
from sidecar.errors import Violations
from sidecar.formats.bounds import END_SECOND as END_SECOND
from sidecar.formats.bounds import FIRST_SECOND as FIRST_SECOND
from sidecar.formats.bounds import ID_BYTES as ID_BYTES
from sidecar.formats.bounds import NAMESPACE_BYTES as NAMESPACE_BYTES
from sidecar.formats.bounds import REQUEST_ID_BYTES as REQUEST_ID_BYTES
from sidecar.formats.bounds import shown as shown
from sidecar.plurals import counted

METADATA_BYTES = 16_384
METADATA_DEPTH = 16
"""Protobuf itself reads no more than some 30 levels: below that the error is ours, and says where."""

LONGEST_DURATION: Micros = 365_250 * DAY

_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Mn", "Me", "Zs", "Zl", "Zp"})
# Letters and symbols by category, and yet nothing to see: Hangul fillers, the blank Braille pattern.
_BLANKS = frozenset("\u115f\u1160\u3164\uffa0\u2800")


def check_text(bad: Violations, path: str, value: str, least: int, most: int) -> None:
    """Bounds a text in bytes of UTF-8 and refuses NUL, which not every store can keep."""
    size = len(value.encode())
    if size < least:
        bad.add(path, f"is empty; must have {least} to {most:,} bytes")
    elif size > most:
        bad.add(path, f"has {size:,} bytes; must have {'at most' if least == 0 else f'{least} to'} {most:,}")
    if "\0" in value:
        bad.add(path, f"is {shown(value)} and holds a NUL, at character {value.index(chr(0))}; send it without")


def check_visible(bad: Violations, path: str, value: str) -> None:
    """Refuses a text in which there is nothing to see. The empty one is check_text's."""
    if value and not any(unicodedata.category(c) not in _INVISIBLE and c not in _BLANKS for c in value):
        bad.add(path, f"is {shown(value)}; must hold at least one visible character")


def check_texts(bad: Violations, path: str, values: Sequence[str], count: int, least: int, most: int) -> None:
    """Bounds a list in its length, and each text in it. Of one that is too long its length alone is told."""
    check_count(bad, path, len(values), 0, count)
    for i, value in enumerate(values if len(values) <= count else ()):
        check_text(bad, f"{path}[{i}]", value, least, most)


def check_count(bad: Violations, path: str, count: int, least: int, most: int) -> None:
    """Bounds the length of a list."""
    if not least <= count <= most:
        bad.add(path, f"has {count:,} entries; must have {'at most' if least == 0 else f'{least} to'} {most:,}")


def check_range(bad: Violations, path: str, value: float, least: float, most: float) -> None:
    """Bounds a number; NaN is in no range."""
    if not least <= value <= most:
        bad.add(path, f"is {value!r}; must be in [{least:,}, {most:,}]")


def check_choice(bad: Violations, path: str, value: int, names: Iterable[str], numbers: Iterable[int]) -> None:
    """Refuses the number of an enum value that this version does not know."""
    if value not in numbers:
        bad.add(path, f"is {value}; must be one of {', '.join(names)}")


def read_time(bad: Violations, path: str, value: Timestamp) -> Micros:
    """Microseconds since 1970-01-01 UTC, finer parts cut off. Years 1900 to 2200."""
    if not (FIRST_SECOND <= value.seconds < END_SECOND and 0 <= value.nanos <= 999_999_999):
        bad.add(path, f"is {value.seconds} s + {value.nanos} ns since 1970; must be a time in the years 1900 to 2200")
        return 0
    return value.seconds * SECOND + value.nanos // 1000


def read_vector(bad: Violations, path: str, data: bytes, dimension: int | None) -> NDArray[np.float32] | None:
    """A vector of `dimension` numbers, finite, not all zero; None if it is not one. `dimension` 0: none is taken; None:
    any number of them is."""
    if dimension == 0:
        bad.add(path, "is set; this store keeps no vectors (its embedder is none), so leave it unset")
        return None
    if dimension is None and len(data) % 4:
        bad.add(path, f"has {counted(len(data), 'byte')}; must have four for each number, a little-endian float32")
        return None
    if dimension is not None and len(data) != 4 * dimension:
        bad.add(
            path,
            f"has {len(data):,} bytes; must have {4 * dimension:,}: as many numbers as the store's dimension "
            f"({dimension}), each a little-endian float32",
        )
        return None
    vector = np.frombuffer(data, dtype="<f4").astype(np.float32)
    if not np.isfinite(vector).all():
        place = int(np.flatnonzero(~np.isfinite(vector))[0])
        bad.add(path, f"is {vector[place]} at number {place}; must be finite")
        return None
    if not vector.any():
        bad.add(path, "is all zero; must point somewhere")
        return None
    return vector


def read_duration(bad: Violations, path: str, message: Duration) -> Micros:
    """A length of time above 0, in microseconds; one that is out of bounds is noted, and stands as 1."""
    micros: Micros = message.seconds * SECOND + message.nanos // 1000
    if not 0 < micros <= LONGEST_DURATION:
        years = LONGEST_DURATION / DAY / 365.25
        bad.add(path, f"is {message.seconds:,} s; must be above 0 and at most {years:,.0f} years")
        return 1
    return micros


def read_struct(bad: Violations, path: str, struct: Struct) -> dict[str, Any]:
    """Plain data from a Struct: finite numbers, no NUL, at most 16 levels deep and 16 KiB as JSON."""
    if (size := struct.ByteSize()) > 8 * METADATA_BYTES:
        # Protobuf takes at most some six times as much as JSON: not worth reading, whatever is in it.
        bad.add(path, f"has {size:,} bytes; must have at most {METADATA_BYTES:,} as JSON")
        return {}
    before = len(bad.found)
    data = {key: _read_value(bad, _inside(path, key), value, 1) for key, value in _members(bad, path, struct)}
    if len(bad.found) == before:
        size = len(json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode())
        if size > METADATA_BYTES:
            bad.add(path, f"has {size:,} bytes as JSON; must have at most {METADATA_BYTES:,}")
    return data


def _inside(path: str, key: str) -> str:
    """The path of a member. A key may have megabytes, and thousands of members may lie under it."""
    return f"{path}.{key if len(key) <= 64 else key[:63] + '…'}"


def _members(bad: Violations, path: str, struct: Struct) -> list[tuple[str, Value]]:
    for key in struct.fields:
        if "\0" in key:
            bad.add(path, f"has the key {shown(key)}, which holds a NUL; send it without")
    return sorted(struct.fields.items())


def _read_value(bad: Violations, path: str, value: Value, depth: int) -> Any:
    if depth > METADATA_DEPTH:
        bad.add(path, f"lies more than {METADATA_DEPTH} levels deep; send it flatter")
        return None
    match value.WhichOneof("kind"):
        case "number_value":
            if not np.isfinite(value.number_value):
                bad.add(path, f"is {value.number_value}; must be finite")
            return value.number_value
        case "string_value":
            if "\0" in value.string_value:
                bad.add(path, f"is {shown(value.string_value)} and holds a NUL; send it without")
            return value.string_value
        case "bool_value":
            return value.bool_value
        case "struct_value":
            members = _members(bad, path, value.struct_value)
            return {key: _read_value(bad, _inside(path, key), each, depth + 1) for key, each in members}
        case "list_value":
            return [_read_value(bad, f"{path}[{i}]", v, depth + 1) for i, v in enumerate(value.list_value.values)]
        case _:
            # JSON's null; also a value without any kind, which means nothing else.
            return None
