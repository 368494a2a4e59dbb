"""Hostile requests: any message of the API, filled from its descriptor, with something in it that breaks things."""

from __future__ import annotations

import struct
from random import Random
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

NAMESPACE = "hostile"
PACKET_ID = "0123456789abcdef0123456789abcdef"

DEPTH = 4
"""Messages inside messages, beyond which none is set."""

HARM = (0.0, 0.03, 0.2, 1.0)
"""Shares of hostile values in a request. With few of them it gets past the first checks, to what lies behind."""

TEXTS = (
    *("", "x", "m1", " \t\n", "\0", "a\0b", "メモ🧠", "Smo\u0308rg\u00e5s", "\u200b\u200d", "\ufeff", "\u202etxt"),
    *(
        "x" * 64,
        "x" * 65,
        "é" * 64,
        "x" * 129,
        "x" * 257,
        "🧠" * 20_000,
        "../../etc/passwd",
        "C:\\notes\\todo",
        "%s{0}",
    ),
    *("'; DROP TABLE memories; --", '{"a": 1}', "NaN", "default", "request", "content", "metadata.a", "kind"),
    *("\r\n\x1b[31m", "a" * 5_000 + " " + "b" * 5_000),
)
DOUBLES = (float("nan"), float("inf"), float("-inf"), -1.0, -0.0, 0.0, 5e-324, 0.5, 1.0, 1.0000001, 1e308)
VECTOR = struct.pack("<8f", 1, *[0] * 7)
VECTORS = (
    *(b"", b"\0", b"\0" * 32, struct.pack("<8f", *[float("nan")] * 8), struct.pack("<8f", *[float("inf")] * 8)),
    *(struct.pack("<8f", *[3e38] * 8), struct.pack("<8f", *[1e-45] * 8), VECTOR, b"\x01" * 31),
)
SECONDS = (-(2**63), -62_135_596_801, -2_208_988_801, -2_208_988_800, -1, 0, 1_760_000_000, 7_289_654_399, 2**63 - 1)
PIECES = (b"", b"\xff", b"\xc3\x28", b"\xed\xa0\x80", b"\x0a\x02\xc3\x28", b"\0" * 9)
"""Put into the bytes of a request. c3 28 is a broken sequence of UTF-8, ed a0 80 is half of a surrogate pair."""

NEEDED = (
    "namespace",
    "memory_id",
    "id",
    "content",
    "memories",
    "memory",
    "update_mask",
    "paths",
    "rating",
    "packet_id",
)
USUAL: dict[str, tuple[Any, ...]] = {
    "namespace": (NAMESPACE,),
    "packet_id": (PACKET_ID,),
    "paths": ("content", "subject", "token_count", "embedding", "metadata", "tags", "valid_until_time"),
    "preset": ("default", "smartctx"),
    "page_token": ("",),
    "request_id": ("",),
    "rating": (1, 2, 3),
    "explain": (0, 3),
    "seconds": (0, 1_760_000_000),
    "nanos": (0,),
    "max_items": (10, 200),
    "task_embedding": (VECTOR,),
    "embedding": (VECTOR,),
}
"""Values that a good request may have, by field."""
KEYS = ("lexical", "semantic", "recency", "default", "a")


def wire(descriptor: Descriptor, random: Random) -> bytes:
    """The bytes of a request: most of them whole, some with a piece of them cut out, changed or put in."""
    data = message(descriptor, random, random.choice(HARM)).SerializeToString()
    if random.random() < 0.8:
        return data
    start = random.randint(0, len(data))
    return data[:start] + random.choice(PIECES) + data[start + random.randint(0, 8) :]


def message(descriptor: Descriptor, random: Random, harm: float, depth: int = DEPTH) -> Message:
    """A message of this kind, of whose values a share of `harm` is hostile."""
    made = GetMessageClass(descriptor)()
    for field in descriptor.fields:
        if random.random() > (1.0 if field.name in NEEDED else 0.7 if harm > 0.5 else 0.25):
            continue
        inner = field.message_type
        if inner is not None and inner.GetOptions().map_entry:
            _fill_map(getattr(made, field.name), inner.fields_by_name["value"], random, harm, depth)
        elif inner is not None and depth and field.is_repeated:
            getattr(made, field.name).extend(
                message(inner, random, harm, depth - 1) for _ in range(random.choice((1, 2)))
            )
        elif inner is not None and depth:
            getattr(made, field.name).CopyFrom(message(inner, random, harm, depth - 1))
        elif inner is None and field.is_repeated:
            getattr(made, field.name).extend(_value(field, random, harm) for _ in range(random.choice((1, 2, 3))))
        elif inner is None:
            setattr(made, field.name, _value(field, random, harm))
    return made


def _fill_map(entries: Any, field: FieldDescriptor, random: Random, harm: float, depth: int) -> None:
    for key in random.sample(TEXTS if random.random() < harm else KEYS, random.choice((1, 2))):
        if field.message_type is None:
            entries[key] = _value(field, random, harm)
        elif depth:
            entries[key].CopyFrom(message(field.message_type, random, harm, depth - 1))


def _value(field: FieldDescriptor, random: Random, harm: float) -> Any:
    if random.random() >= harm and field.name in USUAL:
        return random.choice(USUAL[field.name])
    is_hostile = random.random() < harm
    match field.cpp_type:
        case FieldDescriptor.CPPTYPE_STRING if field.type == FieldDescriptor.TYPE_BYTES:
            return random.choice(VECTORS if is_hostile else (VECTOR,))
        case FieldDescriptor.CPPTYPE_STRING:
            return random.choice(TEXTS if is_hostile else ("m1", "m2", "m3"))
        case FieldDescriptor.CPPTYPE_DOUBLE:
            return random.choice(DOUBLES if is_hostile else (0.0, 0.25))
        case FieldDescriptor.CPPTYPE_BOOL:
            return random.random() < 0.5
        case FieldDescriptor.CPPTYPE_ENUM:
            return random.choice((0, 1, 2, 3, 4, 99, -1) if is_hostile else (0, 1))
        case _ if field.name == "seconds":
            return random.choice(SECONDS)
        case kind:
            most = 2**31 - 1 if kind == FieldDescriptor.CPPTYPE_INT32 else 2**63 - 1
            return random.choice((-most - 1, -1, 0, 1, 2, 5, 200, most) if is_hostile else (1, 2))
