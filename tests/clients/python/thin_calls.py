"""The scenario's calls over our own client, as an agent in Python makes them."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Callable
from typing import Any, Literal, cast

from conformance import Call, RefusedError, main
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message import Message
from memoryranker.client import Client, RankerRpcError, RankOptions
from memoryranker.v1 import ranker_pb2, types_pb2


def calls(address: str) -> dict[str, Call]:
    """Every call of the scenario, over one client that waits for a server, and one that does not."""
    clients = {wait: Client(address, wait_for_ready=wait) for wait in (False, True)}

    def answered(method: Callable[[Client, Any, float], Any]) -> Call:
        def call(request: Any, deadline: float, wait: bool) -> Any:
            try:
                answer = method(clients[wait], request, deadline)
            except RankerRpcError as error:
                raise RefusedError(error, [(each.field, each.description) for each in error.violations]) from error
            return MessageToDict(answer) if isinstance(answer, Message) else answer

        return call

    return {name: answered(method) for name, method in _METHODS.items()}


def _memories(given: list[Any]) -> list[types_pb2.Memory]:
    return [ParseDict(each, types_pb2.Memory()) for each in given]


def _rank(client: Client, request: Any, timeout: float) -> Any:
    message = ParseDict(request, ranker_pb2.RankRequest())
    options = cast("RankOptions", {field.name: value for field, value in message.ListFields()})
    if message.HasField("weights"):
        options["weights"] = message.weights.values
    if message.HasField("as_of_time"):
        options["as_of_time"] = message.as_of_time.ToDatetime(datetime.UTC)
    if message.explain:
        level = ranker_pb2.ExplainLevel.Name(message.explain).removeprefix("EXPLAIN_LEVEL_").lower()
        options["explain"] = cast('Literal["none", "contributions", "full"]', level)
    given = {name: value for name, value in options.items() if name not in ("namespace", "task")}
    return client.rank(message.namespace, message.task, timeout=timeout, **cast("RankOptions", given))


def _ingest(client: Client, request: Any, timeout: float) -> Any:
    chunks = request["chunks"]
    size = max(map(len, chunks))
    memories = _memories([each for chunk in chunks for each in chunk])
    result = client.ingest(
        request["namespace"], memories, stream_id=request["streamId"], chunk_size=size, timeout=timeout
    )
    return {
        "acknowledgedSequence": -(-result.acknowledged // size),
        "createdCount": result.created,
        "rejections": [{"memoryId": each.memory_id, "message": each.message} for each in result.rejections],
    }


_METHODS: dict[str, Callable[[Client, Any, float], Any]] = {
    "UpsertMemories": lambda client, asked, timeout: client.upsert(
        asked["namespace"], _memories(asked["memories"]), request_id=asked.get("requestId", ""), timeout=timeout
    ),
    "GetMemory": lambda client, asked, timeout: {
        "memory": MessageToDict(client.get(asked["namespace"], asked["memoryId"], timeout=timeout))
    },
    "ListMemories": lambda client, asked, timeout: {
        "memories": [
            MessageToDict(each)
            for each in client.list(asked["namespace"], page_size=asked["pageSize"], timeout=timeout)
        ]
    },
    "Ingest": _ingest,
    "Rank": _rank,
    "ReportUse": lambda client, asked, timeout: client.report_use(
        asked["packetId"], asked["usedMemoryIds"], request_id=asked["requestId"], timeout=timeout
    ),
    "GetPacket": lambda client, asked, timeout: client.get_packet(
        asked["namespace"], asked["packetId"], timeout=timeout
    ),
    "GetStatus": lambda client, asked, timeout: client.status(asked["namespace"], timeout=timeout),
}


if __name__ == "__main__":
    sys.exit(main(calls(sys.argv[2]), sys.argv[1]))
