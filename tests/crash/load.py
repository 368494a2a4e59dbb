"""Callers of a server that is killed under them, and what they were told: the only truth afterwards."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import grpc
from memoryranker.v1 import feedback_pb2, memory_pb2, memory_pb2_grpc, ranker_pb2, ranker_pb2_grpc, types_pb2

NAMESPACE = "n"


@dataclass
class Told:
    """What one caller was told. Nobody else writes the memories that it names."""

    contents: dict[str, str] = field(default_factory=dict)
    helpful: dict[str, bool] = field(default_factory=dict)
    packets: dict[str, list[str]] = field(default_factory=dict)
    uses: dict[str, str] = field(default_factory=dict)
    in_doubt: dict[str, str | None] = field(default_factory=dict)
    """By memory, the content that it has now if the write that was not answered happened; None: it was deleted."""
    retries: list[tuple[Any, Any, Any]] = field(default_factory=list)
    """Stub's method, request and answer of calls with a request_id."""


class Caller:
    """Calls until a call fails. `heard` is counted up at each answer."""

    def __init__(self, number: int, seed: int, told: Told, heard: threading.Semaphore) -> None:
        self.number = number
        self.told = told
        self._random = Random(seed)
        self._heard = heard
        self._name = f"{number}-{seed}"
        self._count = 0
        self.ended: grpc.RpcError | None = None
        """What ended it, if it was an answer: no server is left to give one."""

    def run(self, channel: grpc.Channel, over: threading.Event) -> None:
        """Until it is over, or the server is gone."""
        ranker, memory = ranker_pb2_grpc.RankerServiceStub(channel), memory_pb2_grpc.MemoryServiceStub(channel)
        self.told.retries.clear()  # their stubs belong to a server that is gone
        calls: tuple[Callable[[Any, Any], None], ...] = (
            *(self._upsert, self._upsert, self._update, self._delete, self._rank, self._rank, self._report),
            *(self._rate, self._retry),
        )
        try:
            while not over.is_set():
                self._random.choice(calls)(ranker, memory)
                self._heard.release()
        except grpc.RpcError as error:
            self.ended = error

    def _ask(self, method: Any, request: Any) -> Any:
        answer = method(request, timeout=30)
        if request.request_id:
            self.told.retries.append((method, request, answer))
        return answer

    def _request_id(self) -> str:
        self._count += 1
        return f"{self._name}-{self._count}" if self._random.random() < 0.7 else ""

    def _content(self, memory_id: str) -> str:
        words = " ".join(
            f"word{self._random.randrange(200)}" for _ in range(self._random.choice((3, 30, 30, 30, 30, 900)))
        )
        return f"{memory_id} {words}"

    def _some(self) -> str | None:
        return self._random.choice(list(self.told.contents)) if self.told.contents else None

    def _upsert(self, _: Any, memory: Any) -> None:
        request = memory_pb2.UpsertMemoriesRequest(namespace=NAMESPACE, request_id=self._request_id())
        for _ in range(self._random.randint(1, 3)):
            self._count += 1
            memory_id = f"{self._name}-{self._count}"
            request.memories.add(id=memory_id, content=self._content(memory_id))
        self.told.in_doubt = {each.id: each.content for each in request.memories}
        self._ask(memory.UpsertMemories, request)
        self.told.contents |= {each.id: each.content for each in request.memories}
        self.told.in_doubt = {}

    def _update(self, _: Any, memory: Any) -> None:
        if memory_id := self._some():
            content = self._content(memory_id)
            request = memory_pb2.UpdateMemoryRequest(namespace=NAMESPACE, request_id=self._request_id())
            request.memory.id, request.memory.content = memory_id, content
            request.update_mask.paths.append("content")
            self.told.in_doubt = {memory_id: content}
            answer = self._ask(memory.UpdateMemory, request)
            assert answer.memory.content == content
            self.told.contents[memory_id] = content
            self.told.in_doubt = {}

    def _delete(self, _: Any, memory: Any) -> None:
        if memory_id := self._some():
            request = memory_pb2.DeleteMemoriesRequest(
                namespace=NAMESPACE, memory_ids=[memory_id], request_id=self._request_id()
            )
            self.told.in_doubt = {memory_id: None}
            assert self._ask(memory.DeleteMemories, request).deleted_count == 1
            del self.told.contents[memory_id]
            self.told.helpful.pop(memory_id, None)
            self.told.in_doubt = {}

    def _rank(self, ranker: Any, _: Any) -> None:
        request = ranker_pb2.RankRequest(
            namespace=NAMESPACE,
            task=f"word{self._random.randrange(200)} word{self._random.randrange(200)}",
            session_id=f"s{self._random.randrange(20)}",
            request_id=self._request_id(),
        )
        packet = self._ask(ranker.Rank, request)
        self.told.packets[packet.packet_id] = [item.memory.id for item in packet.items]

    def _report(self, ranker: Any, _: Any) -> None:
        packet_id, memory_ids = self._random.choice(list(self.told.packets.items()) or [("", [])])
        if memory_ids:
            used = self.told.uses.get(packet_id) or self._random.choice(memory_ids)
            request = feedback_pb2.ReportUseRequest(
                packet_id=packet_id, used_memory_ids=[used], request_id=self._request_id()
            )
            assert self._ask(ranker.ReportUse, request).used_count == 1
            self.told.uses[packet_id] = used

    def _rate(self, ranker: Any, _: Any) -> None:
        if memory_id := self._some():
            request = feedback_pb2.RateMemoryRequest(
                namespace=NAMESPACE,
                memory_id=memory_id,
                rating=types_pb2.RATING_HELPFUL,
                request_id=self._request_id(),
            )
            assert self._ask(ranker.RateMemory, request).ratings.helpful == 1
            self.told.helpful[memory_id] = True

    def _retry(self, _: Any, __: Any) -> None:
        """Sends an earlier call again: it must change nothing, and be answered as it was."""
        if self.told.retries:
            method, request, answer = self._random.choice(self.told.retries)
            if isinstance(request, memory_pb2.UpdateMemoryRequest):
                return  # it shows the memory as it is now
            again = method(request, timeout=30)
            if isinstance(request, ranker_pb2.RankRequest):
                assert again.packet_id == answer.packet_id
            else:
                for each in (again, answer):
                    if "replayed" in each.DESCRIPTOR.fields_by_name:
                        each.ClearField("replayed")
                assert again == answer
