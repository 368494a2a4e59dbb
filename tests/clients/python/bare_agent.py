"""An agent with nothing but grpcio and the generated code: it remembers, ranks, uses, and says what it used."""

from __future__ import annotations

import os
import sys
import uuid

import grpc
import ranker
from memoryranker.v1 import feedback_pb2, memory_pb2, memory_pb2_grpc, ranker_pb2, ranker_pb2_grpc, types_pb2

DEADLINE = 5.0


def main() -> None:
    address = os.environ.get("MEMORY_RANKER_LISTEN")
    if not address:
        sys.exit("set MEMORY_RANKER_LISTEN to unix:PATH or HOST:PORT, where `memory-ranker serve` listens")
    with ranker.connect(address) as channel:
        memories = memory_pb2_grpc.MemoryServiceStub(channel)
        rankers = ranker_pb2_grpc.RankerServiceStub(channel)

        # Remember: one batch, and a stream for anything longer; its id resumes it, should it break.
        batch = [types_pb2.Memory(id="canary", content="Deploys need a green canary for 30 minutes", kind="decision")]
        memories.UpsertMemories(
            memory_pb2.UpsertMemoriesRequest(namespace="agent-7", memories=batch, request_id=uuid.uuid4().hex),
            timeout=DEADLINE,
        )
        chunks = [[types_pb2.Memory(id=f"note-{n}", content=f"Note {n} of the handbook")] for n in range(3)]
        for answer in ranker.ingest(memories, "agent-7", uuid.uuid4().hex, chunks, timeout=30):
            print(f"chunk {answer.sequence} is durable")

        # Rank, use, report.
        request = ranker_pb2.RankRequest(namespace="agent-7", task="deploy the payment service", token_budget=500)
        request.request_id = uuid.uuid4().hex
        packet = rankers.Rank(request, timeout=DEADLINE)
        for item in packet.items:
            print(f"{item.score:.3f}  {item.memory.content}")
        used = [item.memory.id for item in packet.items if "canary" in item.memory.content]
        report = feedback_pb2.ReportUseRequest(packet_id=packet.packet_id, used_memory_ids=used)
        rankers.ReportUse(report, timeout=DEADLINE)


if __name__ == "__main__":
    try:
        main()
    except grpc.RpcError as error:
        sys.exit(str(ranker.Refusal(error)))
