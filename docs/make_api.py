"""`python docs/make_api.py > docs/api.md`: every service, method, message and field, from the comments in proto/."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
    ServiceDescriptorProto,
)

ROOT = Path(__file__).resolve().parents[1]
BUF = Path(sys.executable).with_name("buf")
PACKAGE = "memoryranker.v1"
ORDER = ("ranker", "feedback", "memory", "admin", "types")
OTHERS = {
    "google.protobuf.Timestamp": "Timestamp",
    "google.protobuf.Duration": "Duration",
    "google.protobuf.Struct": "Struct",
    "google.protobuf.FieldMask": "FieldMask",
    "google.rpc.Status": "google.rpc.Status",
}
OF_FILE, OF_MESSAGE, OF_SERVICE = (4, 5, 6), (2,), (2,)
"""Numbers of the fields of descriptors that source paths are made of: messages, enums and services; fields; methods."""

INTRODUCTION = """\
# The API

Made by `python docs/make_api.py > docs/api.md` from [proto/](../proto/memoryranker/v1); do not edit.

gRPC, package `memoryranker.v1`, over a Unix socket or loopback. The server offers reflection and `grpc.health.v1`.

- A field says its unit, its bounds and what it means when unset. `optional` is said where unset differs from 0.
- A refusal is one status with `google.rpc` details: an `ErrorInfo` whose reason is one of [errors.md](errors.md), and
  every bad field that fits. Batches answer item by item.
- `request_id` makes a retry count once: it is scoped to namespace and method and kept for 24 hours. The same id with
  another payload is an error.
- A message has at most 4 MiB (`max_message_bytes` in [settings.md](settings.md)). Pages are asked for by token.
- A method that is not built yet answers `UNIMPLEMENTED`.
- Fields are only ever added. What is there keeps its meaning: [conventions.md](conventions.md) has the promise.
"""


def page() -> str:
    """The page, as Markdown."""
    built = subprocess.run(
        [BUF, "build", "proto", "--path", "proto/memoryranker", "-o", "-"], cwd=ROOT, capture_output=True, check=True
    )
    files = [each for each in FileDescriptorSet.FromString(built.stdout).file if each.package == PACKAGE]
    files.sort(key=lambda each: ORDER.index(Path(each.name).stem))
    lines = [INTRODUCTION]
    for file in files:
        lines += [f"- [{each.name}](#{each.name.lower()}): {_summary(each)}" for each in file.service]
    lines.append("")
    for file in files:
        lines += _file(file)
    return "\n".join(lines).rstrip() + "\n"


def _summary(service: ServiceDescriptorProto) -> str:
    return ", ".join(f"[{method.name}](#{method.name.lower()})" for method in service.method)


def _file(file: FileDescriptorProto) -> Iterator[str]:
    comments = {tuple(each.path): " ".join(each.leading_comments.split()) for each in file.source_code_info.location}

    def comment(*path: int) -> str:
        found = comments.get(path, "")
        if not found:
            raise ValueError(f"{file.name}: nothing is said of {path}")
        return found

    for i, service in enumerate(file.service):
        yield from (f"## {service.name}", "", comment(6, i), "")
        for j, method in enumerate(service.method):
            asked, answered = (_link(each) for each in (method.input_type, method.output_type))
            asked = f"stream of {asked}" if method.client_streaming else asked
            answered = f"stream of {answered}" if method.server_streaming else answered
            yield from (f"### {method.name}", "", comment(6, i, 2, j), "", f"{asked} → {answered}", "")
    yield from (f"## Messages of {Path(file.name).name}", "")
    for i, message in enumerate(file.message_type):
        yield from (f"### {message.name}", "", comment(4, i), "")
        if not message.field:
            continue
        yield from ("| field | type | |", "|---|---|---|")
        for j, field in enumerate(message.field):
            yield f"| `{field.name}` = {field.number} | {_type(message, field)} | {_cell(comment(4, i, 2, j))} |"
        yield from _oneofs(message, [comment(4, i, 8, j) for j in _real_oneofs(message)])
        yield ""
    for i, enum in enumerate(file.enum_type):
        yield from _enum(enum, comment(5, i), [comment(5, i, 2, j) for j in range(len(enum.value))])


def _oneofs(message: DescriptorProto, comments: Sequence[str]) -> Iterator[str]:
    for j, words in zip(_real_oneofs(message), comments, strict=True):
        names = [f"`{field.name}`" for field in message.field if _is_in(field, j)]
        yield from ("", f"One of {', '.join(names)} (`{message.oneof_decl[j].name}`): {words}")


def _real_oneofs(message: DescriptorProto) -> list[int]:
    """Those that are written as such; an `optional` field is in one of its own."""
    return [j for j in range(len(message.oneof_decl)) if any(_is_in(field, j) for field in message.field)]


def _is_in(field: FieldDescriptorProto, oneof: int) -> bool:
    return field.HasField("oneof_index") and field.oneof_index == oneof and not field.proto3_optional


def _enum(enum: EnumDescriptorProto, words: str, values: Sequence[str]) -> Iterator[str]:
    yield from (f"### {enum.name}", "", words, "", "| value | |", "|---|---|")
    for value, about in zip(enum.value, values, strict=True):
        yield f"| `{value.name}` = {value.number} | {_cell(about)} |"
    yield ""


def _type(message: DescriptorProto, field: FieldDescriptorProto) -> str:
    entries = {each.name: each for each in message.nested_type if each.options.map_entry}
    entry = entries.get(field.type_name.rpartition(".")[2])
    if entry is not None:
        key, value = entry.field
        return f"map of {_plain_type(key)} to {_plain_type(value)}"
    name = _plain_type(field)
    if field.label == FieldDescriptorProto.LABEL_REPEATED:
        return f"repeated {name}"
    return f"optional {name}" if field.proto3_optional else name


def _plain_type(field: FieldDescriptorProto) -> str:
    if field.type_name:
        return _link(field.type_name)
    return FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower()


def _link(type_name: str) -> str:
    name = type_name.removeprefix(".")
    if name.startswith(f"{PACKAGE}."):
        short = name.removeprefix(f"{PACKAGE}.")
        return f"[{short}](#{short.lower()})"
    return OTHERS[name]


def _cell(text: str) -> str:
    return re.sub(r"([|<])", r"\\\1", text)


if __name__ == "__main__":
    sys.stdout.write(page())
