"""The fields of a memory over a real socket: what was written is read, and what an upsert leaves unset stays."""

from __future__ import annotations

import datetime
import struct
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from memoryranker.client import Client
from memoryranker.v1 import memory_pb2

from tests.serving import wait_until_scored

CREATED = memory_pb2.WRITE_OUTCOME_CREATED
UPDATED = memory_pb2.WRITE_OUTCOME_UPDATED
UNCHANGED = memory_pb2.WRITE_OUTCOME_UNCHANGED


Text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=40)
Unit = st.floats(0, 1)
Times = st.datetimes(
    datetime.datetime(1900, 1, 1),  # noqa: DTZ001
    datetime.datetime(2200, 12, 31),  # noqa: DTZ001
    timezones=st.just(datetime.UTC),
)
Json = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | Text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(Text, inner, max_size=3),
    max_leaves=8,
)
Memories = st.fixed_dictionaries(
    {"content": Text.map(lambda text: f"a {text}")},
    optional={
        "kind": Text.filter(lambda text: len(text.encode()) <= 64),
        "create_time": Times,
        "valid_from_time": Times,
        "valid_until_time": Times,
        "superseded_by": Text,
        "source_thread": Text,
        "source_sequence": st.integers(-(2**63), 2**63 - 1),
        "subject": Text,
        "tags": st.lists(Text.filter(lambda text: len(text.encode()) <= 128), min_size=1, max_size=4, unique=True),
        "metadata": st.dictionaries(Text, Json, min_size=1, max_size=4),
        "relevance": Unit,
        "importance_override": Unit,
        "emotion": Unit,
        "pinned": st.booleans(),
        "suppressed": st.booleans(),
        "token_count": st.integers(1, 1_000_000),
    },
)


def is_servable(fields: dict[str, Any]) -> bool:
    """False for one that would expire before it is valid, which is refused."""
    start, end = fields.get("valid_from_time"), fields.get("valid_until_time")
    return start is None or end is None or start < end


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None)
@given(fields=Memories.filter(is_servable), memory_id=Text)
def test_what_was_written_is_read(client: Client, namespace: str, fields: dict[str, Any], memory_id: str) -> None:
    """Every field that a caller sends comes back as it was sent, and the same memory sent again changes nothing."""
    client.delete(namespace, [memory_id])
    first = client.upsert(namespace, [{"id": memory_id, **fields}])
    assert first.results[0].outcome == CREATED, first
    read = client.get(namespace, memory_id)
    for name, value in fields.items():
        found = getattr(read, name)
        if isinstance(value, datetime.datetime):
            found = found.ToDatetime(datetime.UTC)
        elif isinstance(value, list):
            found = list(found)
        elif isinstance(value, dict):
            value = client_struct(value)
        assert found == value, name
    wait_until_scored(client, namespace)
    version = client.status(namespace).namespace.score_version
    again = client.upsert(namespace, [{"id": memory_id, **fields}])
    assert again.results[0].outcome == UNCHANGED
    assert again.score_version == version


def client_struct(value: dict[str, Any]) -> Any:
    from memoryranker.client import memory

    return memory("m", metadata=value).metadata


def test_what_an_upsert_leaves_unset_keeps_its_value(client: Client, namespace: str) -> None:
    """Only what is sent changes; what hangs on the content changes with it."""
    client.upsert(
        namespace,
        [{"id": "m", "content": "one", "kind": "decision", "tags": ["a"], "pinned": True, "token_count": 77}],
    )
    before = client.get(namespace, "m", include_embedding=True)
    assert client.upsert(namespace, [{"id": "m", "content": "one", "subject": "Ann"}]).results[0].outcome == UPDATED
    after = client.get(namespace, "m", include_embedding=True)
    assert (after.kind, list(after.tags), after.pinned, after.subject) == ("decision", ["a"], True, "Ann")
    assert (after.token_count, after.embedding, after.create_time) == (77, before.embedding, before.create_time)
    client.upsert(namespace, [{"id": "m", "content": "quite another matter"}])
    changed = client.get(namespace, "m", include_embedding=True)
    assert not changed.HasField("token_count")
    assert changed.embedding != before.embedding
    assert (changed.kind, changed.create_time) == ("decision", before.create_time)


def test_a_callers_own_vector_is_kept_with_its_content(client: Client, namespace: str) -> None:
    """A vector that was sent stays, also when the same content is sent without one; a new content has a new one."""
    dimension = client.status().dimension
    own = struct.pack(f"<{dimension}f", *range(dimension))
    client.upsert(namespace, [{"id": "m", "content": "one", "embedding": own}])
    assert client.get(namespace, "m").embedding == b""
    client.upsert(namespace, [{"id": "m", "content": "one", "kind": "decision"}])
    assert client.get(namespace, "m", include_embedding=True).embedding == own
    client.update(namespace, "m", embedding=None)
    assert client.get(namespace, "m", include_embedding=True).embedding not in (own, b"")
    client.update(namespace, "m", embedding=own, content="two")
    assert client.get(namespace, "m", include_embedding=True).embedding == own
    client.update(namespace, "m", content="three")
    assert client.get(namespace, "m", include_embedding=True).embedding not in (own, b"")


def test_pins_and_suppression_are_taken_back_by_false_alone(client: Client, namespace: str) -> None:
    """Unset changes nothing, false unpins; what is answered always says which it is."""

    def written(**fields: Any) -> tuple[int, bool, bool]:
        (result,) = client.upsert(namespace, [{"id": "m", "content": "text", **fields}]).results
        memory = client.get(namespace, "m")
        assert memory.HasField("pinned")
        assert memory.HasField("suppressed")
        return result.outcome, memory.pinned, memory.suppressed

    assert written() == (CREATED, False, False)
    assert written(pinned=True, suppressed=True) == (UPDATED, True, True)
    assert written() == (UNCHANGED, True, True)
    assert written(pinned=False) == (UPDATED, False, True)
    assert written(pinned=False, suppressed=False) == (UPDATED, False, False)
    assert written(pinned=False) == (UNCHANGED, False, False)
