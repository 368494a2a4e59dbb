"""MemoryService: memories are written, read, changed and deleted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import grpc
import numpy as np
from google.rpc import code_pb2, status_pb2
from memoryranker.v1 import memory_pb2, memory_pb2_grpc

from sidecar.domain import SCORED_FIELDS, Filter, Memory, Micros, WriteOutcome, says_the_same, stands_alike
from sidecar.errors import Violations
from sidecar.importance.scorer import ImportanceScorer
from sidecar.ranking.tokens import count_all_tokens
from sidecar.retrieval.embedding import Embedder
from sidecar.retrieval.namespaces import Namespaces
from sidecar.rpc.batch import MAX_BATCH, check_windows, read_batch
from sidecar.rpc.importance import fill_parts, list_candidates, score_importance
from sidecar.rpc.incoming import read_filter
from sidecar.rpc.incoming_memories import read_changes, read_id, read_namespace, read_request_id
from sidecar.rpc.ingest import Ingest
from sidecar.rpc.interceptors import deadline_check
from sidecar.rpc.outgoing import fill_memories, set_time, write_refusal, write_result
from sidecar.rpc.paging import list_of, make_token, read_page_size, read_token
from sidecar.rpc.replay import answer_of, once_of
from sidecar.rpc.stopping import Stopping
from sidecar.rpc.validation import check_count
from sidecar.store.memories import Derived
from sidecar.store.requests import Replayed
from sidecar.store.store import Store

MAX_DELETED_IDS = 10_000
MOST_SCORED_AT_ONCE = 8
"""Memories whose importance is worked out before they are written; of more, after it, when nobody waits for an answer:
scoring a memory takes longer than writing it."""
ROOM_IN_A_PAGE = 16_384
"""What the memories of a page leave of a message, for all that is not theirs."""

_NOT_FOUND = status_pb2.Status(code=code_pb2.NOT_FOUND, message="no memory of that id")


class MemoryService(memory_pb2_grpc.MemoryServiceServicer):
    """Answers what `memory.proto` says, from a store and the snapshots of its namespaces."""

    def __init__(
        self,
        store: Store,
        namespaces: Namespaces,
        embedder: Embedder,
        clock: Callable[[], Micros],
        max_message_bytes: int,
        stopping: Stopping,
        scorer: ImportanceScorer,
    ) -> None:
        self._scorer = scorer
        self._store = store
        self._namespaces = namespaces
        self._embedder = embedder
        self._clock = clock
        self._page_bytes = max_message_bytes - ROOM_IN_A_PAGE
        self._ingest = Ingest(store, embedder.dimension, self._derive, clock, stopping)

    def UpsertMemories(
        self, request: memory_pb2.UpsertMemoriesRequest, context: grpc.ServicerContext
    ) -> memory_pb2.UpsertMemoriesResponse:
        """Each memory is read on its own; the good ones are written together."""
        check = deadline_check(context)
        bad = Violations()
        namespace = read_namespace(bad, request.namespace)
        read_request_id(bad, request.request_id)
        check_count(bad, "memories", len(request.memories), 1, MAX_BATCH)
        bad.raise_if_any()
        batch = read_batch(request.memories, self._embedder.dimension)

        def write(done: tuple[list[tuple[WriteOutcome, Memory]], int]) -> memory_pb2.UpsertMemoriesResponse:
            outcomes, version = done
            results = dict(batch.refused)
            for i, (outcome, memory) in zip(batch.places, outcomes, strict=True):
                results[i] = write_result(memory.id, outcome)
            return memory_pb2.UpsertMemoriesResponse(
                results=[results[i] for i in range(len(request.memories))], score_version=version
            )

        once = once_of("UpsertMemories", request, write)
        if once is not None and (known := self._store.answered(namespace, once, self._clock())):
            return answer_of(memory_pb2.UpsertMemoriesResponse, known, write)
        old = self._store.get_many(namespace, [memory_id for memory_id, _ in batch.patches])
        batch = check_windows(batch, old)
        check()
        derived = self._derive(namespace, batch.patches, old)
        check()
        done = self._store.upsert(namespace, batch.patches, self._clock(), once, derived)
        return answer_of(memory_pb2.UpsertMemoriesResponse, done, write)

    def IngestMemories(
        self, request_iterator: Iterator[memory_pb2.IngestMemoriesRequest], context: grpc.ServicerContext
    ) -> Iterator[memory_pb2.IngestMemoriesResponse]:
        """Chunk by chunk, each acknowledged when it is durable and rankable."""
        return self._ingest.answer(request_iterator, context)

    def GetMemory(
        self, request: memory_pb2.GetMemoryRequest, context: grpc.ServicerContext
    ) -> memory_pb2.GetMemoryResponse:
        """As it stands in the store."""
        bad = Violations()
        namespace = read_namespace(bad, request.namespace)
        memory_id = read_id(bad, "memory_id", request.memory_id)
        bad.raise_if_any()
        memory = self._store.get(namespace, memory_id)
        response = memory_pb2.GetMemoryResponse()
        fill_memories([response.memory], [memory], with_embedding=request.include_embedding)
        fill_parts(response, self._store.importance_parts(memory.key))
        return response

    def ListMemories(
        self, request: memory_pb2.ListMemoriesRequest, context: grpc.ServicerContext
    ) -> memory_pb2.ListMemoriesResponse:
        """A page ends early where it would not fit into a message."""
        bad = Violations()
        namespace = read_namespace(bad, request.namespace)
        wanted = read_filter(bad, request.filter)
        size = read_page_size(bad, request)
        of = list_of(request)
        after = read_token(bad, of, request.page_token)
        bad.raise_if_any()
        response = memory_pb2.ListMemoriesResponse()
        found, end = self._listed(namespace, wanted, after, size)
        room = self._page_bytes
        for memory in found:
            message = response.memories.add()
            fill_memories([message], [memory], with_embedding=request.include_embedding)
            room -= message.ByteSize()
            if room < 0 and len(response.memories) > 1:
                del response.memories[-1]
                end = response.memories[-1].id
                break
        if end:
            response.next_page_token = make_token(of, end)
        return response

    def UpdateMemory(
        self, request: memory_pb2.UpdateMemoryRequest, context: grpc.ServicerContext
    ) -> memory_pb2.UpdateMemoryResponse:
        """A new content is embedded and counted before the write. A retry shows the memory as it is by then: no text is
        kept for retries."""
        check = deadline_check(context)
        bad = Violations()
        namespace = read_namespace(bad, request.namespace)
        read_request_id(bad, request.request_id)
        memory_id = read_id(bad, "memory.id", request.memory.id)
        changes = read_changes(bad, request, self._embedder.dimension)
        bad.raise_if_any()

        def write(done: tuple[Memory, int]) -> memory_pb2.UpdateMemoryResponse:
            return memory_pb2.UpdateMemoryResponse(score_version=done[1])

        def answer(done: tuple[Memory, int] | Replayed) -> memory_pb2.UpdateMemoryResponse:
            response = answer_of(memory_pb2.UpdateMemoryResponse, done, write)
            memory = self._store.get(namespace, memory_id) if isinstance(done, Replayed) else done[0]
            fill_memories([response.memory], [memory])
            return response

        once = once_of("UpdateMemory", request, write)
        if once is not None and (known := self._store.answered(namespace, once, self._clock())):
            return answer(known)
        derived: Mapping[str, Derived] = {}
        if {"token_count", "embedding", *SCORED_FIELDS} & changes.keys():
            old = {memory_id: self._store.get(namespace, memory_id)}
            derived = self._derive(namespace, [(memory_id, changes)], old)
            check()
        done = self._store.update(namespace, memory_id, changes, self._clock(), once, derived.get(memory_id))
        return answer(done)

    def DeleteMemories(
        self, request: memory_pb2.DeleteMemoriesRequest, context: grpc.ServicerContext
    ) -> memory_pb2.DeleteMemoriesResponse:
        """Exactly the memories that are named, or that pass the filter now."""
        bad = Violations()
        namespace = read_namespace(bad, request.namespace)
        read_request_id(bad, request.request_id)
        check_count(bad, "memory_ids", len(request.memory_ids), 0, MAX_DELETED_IDS)
        wanted = read_filter(bad, request.filter)
        if bool(request.memory_ids) == request.HasField("filter"):
            bad.add("memory_ids", "and filter are both set or both unset; exactly one must be set")
        elif request.HasField("filter") and wanted.is_empty:
            bad.add("filter", "is empty and would delete everything; set a part of it, or call PurgeNamespace")
        bad.raise_if_any()

        def write(done: tuple[dict[str, bool], int]) -> memory_pb2.DeleteMemoriesResponse:
            found, version = done
            return memory_pb2.DeleteMemoriesResponse(
                deleted_count=sum(found.values()),
                results=[
                    write_result(each, WriteOutcome.DELETED) if found[each] else write_refusal(each, _NOT_FOUND)
                    for each in request.memory_ids
                ],
                score_version=version,
            )

        once = once_of("DeleteMemories", request, write)
        if once is not None and (known := self._store.answered(namespace, once, self._clock())):
            return answer_of(memory_pb2.DeleteMemoriesResponse, known, write)
        ids = list(request.memory_ids) or self._passing(namespace, wanted)
        done = self._store.delete(namespace, ids, self._clock(), once)
        return answer_of(memory_pb2.DeleteMemoriesResponse, done, write)

    def ListNamespaces(
        self, request: memory_pb2.ListNamespacesRequest, context: grpc.ServicerContext
    ) -> memory_pb2.ListNamespacesResponse:
        """Those that hold or held a memory, and were not purged."""
        bad = Violations()
        size = read_page_size(bad, request)
        of = list_of(request)
        after = read_token(bad, of, request.page_token)
        bad.raise_if_any()
        found = self._store.list_namespaces(after, size + 1)
        response = memory_pb2.ListNamespacesResponse()
        for each in found[:size]:
            summary = response.namespaces.add(
                namespace=each.namespace, memory_count=each.memory_count, score_version=each.score_version
            )
            if each.update_time:
                set_time(summary.update_time, each.update_time)
        if len(found) > size:
            response.next_page_token = make_token(of, found[size - 1].namespace)
        return response

    def ScoreImportance(
        self, request: memory_pb2.ScoreImportanceRequest, context: grpc.ServicerContext
    ) -> memory_pb2.ScoreImportanceResponse:
        """Weighs what is known of each memory now, and stores nothing."""
        return score_importance(request, self._scorer, self._namespaces, self._embedder.dimension)

    def ListPromotionCandidates(
        self, request: memory_pb2.ListPromotionCandidatesRequest, context: grpc.ServicerContext
    ) -> memory_pb2.ListPromotionCandidatesResponse:
        """Scores a page of memories, and moves none of them."""
        return list_candidates(request, self._scorer, self._store, self._namespaces, self._page_bytes)

    def _derive(
        self, namespace: str, patches: Sequence[tuple[str, dict[str, Any]]], old: Mapping[str, Memory]
    ) -> Mapping[str, Derived]:
        """Tokens and vector that follow from each patch's content, or from the memory's where a patch clears them; and
        the content part of its importance, unless there are more than MOST_SCORED_AT_ONCE to work out: those follow
        after the write.

        `old` has the memories as they were read. A content that stays keeps its vector.
        """
        derived: dict[str, Derived] = {}
        uncounted: list[tuple[dict[str, Any], str]] = []
        unembedded: list[tuple[dict[str, Any], str]] = []
        surely: list[tuple[dict[str, Any], dict[str, Any], set[str]]] = []
        for memory_id, patch in patches:
            known, is_written = old.get(memory_id), "content" in patch
            content = patch["content"] if is_written else old[memory_id].content
            cleared = {name for name in ("token_count", "embedding") if name in patch and patch[name] is None}
            fields: dict[str, Any] = {}
            if patch.get("token_count"):
                patch["tokens"] = patch["token_count"]
            elif is_written or "token_count" in cleared:
                fields["token_count"] = None
                uncounted.append((fields, content))
            if "embedding" in cleared or (is_written and "embedding" not in patch):
                stays = known is not None and known.content == content and "embedding" not in cleared
                fields["embedding"] = known.embedding if known is not None and stays else None
                if fields["embedding"] is None and self._embedder.dimension:
                    unembedded.append((fields, content))
            derived[memory_id] = Derived(content, fields)
            if is_written:
                surely.append((patch, fields, cleared | ({"tokens"} if "token_count" in cleared else set())))
            else:
                for name in cleared:
                    del patch[name]
        counts = count_all_tokens(content for _, content in uncounted)
        for (fields, _), tokens in zip(uncounted, counts, strict=True):
            fields["tokens"] = tokens
        if unembedded:
            vectors = self._embedder.embed([content for _, content in unembedded])
            for (fields, _), vector in zip(unembedded, vectors, strict=True):
                fields["embedding"] = vector
        for patch, fields, names in surely:  # cleared beside a content: set whether or not the content is new
            patch.update({name: fields[name] for name in names})
        return self._with_importance(namespace, patches, old, derived)

    def _with_importance(
        self,
        namespace: str,
        patches: Sequence[tuple[str, dict[str, Any]]],
        old: Mapping[str, Memory],
        derived: dict[str, Derived],
    ) -> Mapping[str, Derived]:
        if not self._scorer.settings.enabled or len(patches) > MOST_SCORED_AT_ONCE:
            return derived
        unscored = []
        for memory_id, patch in patches:
            known = old.get(memory_id)
            base = known or Memory(id=memory_id, content="")
            new = replace(base, **derived[memory_id].added_to(patch, known))
            if known is not None and not stands_alike(known, new):
                continue  # it is scored after the write, beside those that count by it or no longer do
            if known is None or known.importance_content is None or not says_the_same(known, new):
                unscored.append(new)
        scored = self._scorer.score_contents(namespace, unscored) if unscored else []
        return derived | {each.memory.id: replace(derived[each.memory.id], importance=each) for each in scored}

    def _listed(self, namespace: str, wanted: Filter, after: str, size: int) -> tuple[Sequence[Memory], str]:
        """A page, and the id that it ends with; "" for the last page."""
        if wanted.is_empty:
            found = self._store.list_memories(namespace, after, size + 1)
            return found[:size], found[size - 1].id if len(found) > size else ""
        ids = sorted(each for each in self._passing(namespace, wanted) if each > after)
        there = self._store.get_many(namespace, ids[:size])
        return list(there.values()), ids[size - 1] if len(ids) > size else ""

    def _passing(self, namespace: str, wanted: Filter) -> list[str]:
        snapshot = self._namespaces.get(namespace)
        ids = snapshot.columns.ids
        return [ids[row] for row in np.flatnonzero(snapshot.filter_mask(wanted)).tolist()]
