"""The scenario's calls with nothing but grpcio and the generated code."""

from __future__ import annotations

import sys
from typing import Any

import grpc
import ranker
from conformance import Call, RefusedError, main
from google.protobuf.json_format import MessageToDict, ParseDict
from memoryranker.v1 import (
    admin_pb2,
    admin_pb2_grpc,
    feedback_pb2,
    memory_pb2,
    memory_pb2_grpc,
    ranker_pb2,
    ranker_pb2_grpc,
    types_pb2,
)


def calls(address: str) -> dict[str, Call]:
    """Every call of the scenario, over one channel."""
    channel = ranker.connect(address)
    rankers = ranker_pb2_grpc.RankerServiceStub(channel)
    memories = memory_pb2_grpc.MemoryServiceStub(channel)
    admin = admin_pb2_grpc.AdminServiceStub(channel)

    def list_memories(request: Any, deadline: float, wait: bool) -> Any:
        page_of = unary(memories.ListMemories, memory_pb2.ListMemoriesRequest)
        found: list[Any] = []
        token = ""
        while True:
            page = page_of({**request, "pageToken": token}, deadline, wait)
            found += page.get("memories", [])
            if not (token := page.get("nextPageToken", "")):
                return {"memories": found}

    def ingest(request: Any, deadline: float, _: bool) -> Any:
        chunks = [[ParseDict(each, types_pb2.Memory()) for each in chunk] for chunk in request["chunks"]]
        answers = list(ranker.ingest(memories, request["namespace"], request["streamId"], chunks, deadline))
        rejected = [each for answer in answers for each in answer.rejections]
        return {
            "acknowledgedSequence": max(answer.acknowledged_sequence for answer in answers),
            "createdCount": sum(answer.created_count for answer in answers),
            "rejections": [
                {"memoryId": each.result.memory_id, "message": each.result.status.message} for each in rejected
            ],
        }

    return {
        "UpsertMemories": unary(memories.UpsertMemories, memory_pb2.UpsertMemoriesRequest),
        "GetMemory": unary(memories.GetMemory, memory_pb2.GetMemoryRequest),
        "ListMemories": list_memories,
        "Ingest": ingest,
        "Rank": unary(rankers.Rank, ranker_pb2.RankRequest),
        "ReportUse": unary(rankers.ReportUse, feedback_pb2.ReportUseRequest),
        "GetPacket": unary(rankers.GetPacket, ranker_pb2.GetPacketRequest),
        "GetStatus": unary(admin.GetStatus, admin_pb2.GetStatusRequest),
    }


def unary(method: Any, request_type: Any) -> Call:
    """A call with JSON on both sides."""

    def call(request: Any, deadline: float, wait: bool) -> Any:
        try:
            answer = method(ParseDict(request, request_type()), timeout=deadline, wait_for_ready=wait)
        except grpc.RpcError as error:
            found = ranker.Refusal(error)
            raise RefusedError(found, found.violations) from error
        return MessageToDict(answer)

    return call


if __name__ == "__main__":
    sys.exit(main(calls(sys.argv[2]), sys.argv[1]))
