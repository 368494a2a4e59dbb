"""A process that ingests memories into a stream of its own, and says after each acknowledgement how many are in.

It does not read on before its standard input says so, so that whoever started it chooses where it is killed.
"""

from __future__ import annotations

import sys

from memoryranker.client import Client, IngestResult


def wait(result: IngestResult) -> None:
    print(result.acknowledged, flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    address, stream_id, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    memories = [{"id": f"m{number}", "content": f"memory number {number}"} for number in range(count)]
    with Client(address, timeout=30) as client:
        client.ingest("n", memories, stream_id=stream_id, chunk_size=10, on_progress=wait)
