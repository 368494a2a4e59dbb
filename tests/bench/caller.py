"""One caller of the bench in a process of its own: calls as often as it can, and prints how often that was."""

from __future__ import annotations

import sys
import time
from itertools import cycle

import grpc
from memoryranker.v1 import ranker_pb2

from tests.bench import workload


def main(listen: str, method: str, namespace: str, seconds: float) -> int:
    """Calls a second."""
    with grpc.insecure_channel(listen, options=[("grpc.enable_http_proxy", 0)]) as channel:
        call = channel.unary_unary(
            method,
            request_serializer=ranker_pb2.RankRequest.SerializeToString,
            response_deserializer=ranker_pb2.RankResponse.FromString,
        )
        requests = [
            ranker_pb2.RankRequest(namespace=namespace, task=task, max_items=20) for task in workload.tasks(200)
        ]
        asked = cycle(requests)
        call(next(asked), timeout=60)
        print("ready", flush=True)
        sys.stdin.readline()  # all callers start together
        done, end = 0, time.perf_counter() + seconds
        while time.perf_counter() < end:
            call(next(asked), timeout=60)
            done += 1
        return done


if __name__ == "__main__":
    print(main(sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4])), flush=True)
