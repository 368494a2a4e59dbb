"""Keeps the C library from holding on to memory that is free again. Of no effect where it is not glibc."""

from __future__ import annotations

import ctypes
from contextlib import suppress

HEAPS = 2
"""How many the C library may spread what threads allocate over: of the 8 a core that it would make, each keeps what its
threads took for a moment."""
_M_ARENA_MAX = -8  # malloc.h


def share() -> None:
    """Before threads begin."""
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, HEAPS)


def give_back() -> None:
    """After much was let go."""
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
