"""The API's messages as plain data for --json: the API's own field names, enums as lower-case words, times as RFC 3339.

A field that can be unset is left out where it is; all others are always there. Features and contributions are objects
by name. Knows messages by their descriptors alone.
"""

from __future__ import annotations

import struct
from typing import Any

STATUS_CODES = {0: "ok", 3: "invalid_argument", 5: "not_found", 6: "already_exists", 8: "resource_exhausted"}


def plain(message: Any) -> dict[str, Any]:
    """`message` as what json.dumps takes."""
    if message.DESCRIPTOR.full_name == "google.rpc.Status":
        return {"code": STATUS_CODES.get(message.code, str(message.code)), "message": message.message}
    found: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        if field.is_repeated or not field.has_presence or message.HasField(field.name):
            value = _field(field, getattr(message, field.name))
            if field.type != field.TYPE_BYTES or value:
                found[field.name] = value
    return found


def packet(response: Any) -> dict[str, Any]:
    """A RankResponse, with features and contributions by name."""
    found = plain(response)
    names = found["feature_names"]
    for item in found["items"]:
        for part in ("contributions", "features"):
            item[part] = dict(zip(names, item[part], strict=False))
    return found


def word(message: Any, field: str) -> str:
    """The value of an enum field as a lower-case word without its prefix; "" when unspecified."""
    return _word(message.DESCRIPTOR.fields_by_name[field].enum_type, getattr(message, field))


def _field(field: Any, value: Any) -> Any:
    if not field.is_repeated:
        return _value(field, value)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        of_value = field.message_type.fields_by_name["value"]
        return {key: _value(of_value, value[key]) for key in sorted(value)}
    return [_value(field, each) for each in value]


def _value(field: Any, value: Any) -> Any:
    if field.type == field.TYPE_ENUM:
        return _word(field.enum_type, value)
    if field.type == field.TYPE_BYTES:
        # The API's only bytes that come back are vectors.
        return list(struct.unpack(f"<{len(value) // 4}f", value))
    if field.message_type is None:
        return value
    name = field.message_type.full_name
    if name == "google.protobuf.Struct":
        return _struct(value)
    if name in ("google.protobuf.Timestamp", "google.protobuf.Duration"):
        return value.ToJsonString()
    return plain(value)


def _word(enum: Any, number: int) -> str:
    """SEGMENT_RANKED is "ranked": what all names of the enum have in common is its prefix."""
    known = enum.values_by_number.get(number)
    if known is None:
        return str(number)
    prefix = enum.values_by_number[0].name.removesuffix("UNSPECIFIED")
    name: str = known.name
    return "" if number == 0 else name.removeprefix(prefix).lower()


def _struct(value: Any) -> Any:
    """A Struct, a ListValue or one of their plain values."""
    if not hasattr(value, "DESCRIPTOR"):
        # A Struct knows only floating-point numbers. Zero has a sign only there.
        return int(value) if isinstance(value, float) and value.is_integer() and str(value) != "-0.0" else value
    if value.DESCRIPTOR.name == "Struct":
        return {key: _struct(value[key]) for key in sorted(value)}
    return [_struct(each) for each in value]
