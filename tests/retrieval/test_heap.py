"""How much memory the C library keeps."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

from sidecar.retrieval.heap import HEAPS

HEAPS_OF_MANY_THREADS = """
import ctypes, sys, threading
from sidecar.retrieval import heap

if sys.argv[1] == "share":
    heap.share()
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
together = threading.Barrier(6)

def take():
    together.wait()
    libc.malloc(100_000)
    together.wait()

threads = [threading.Thread(target=take) for _ in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
libc.fdopen.restype = ctypes.c_void_p
out = ctypes.c_void_p(libc.fdopen(1, b"w"))
libc.malloc_info(0, out)
libc.fflush(out)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have heaps of another kind")
def test_threads_share_few_heaps() -> None:
    """However many threads allocate, there are no more than a few heaps that could keep what they let go of."""

    def heaps(how: str) -> int:
        command = [sys.executable, "-c", HEAPS_OF_MANY_THREADS, how]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.count("<heap nr=")

    assert heaps("share") <= HEAPS < heaps("each its own")
