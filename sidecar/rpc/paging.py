"""Page tokens: where the page before ended, and which list it was of.

A token is opaque, not secret: whoever makes one up gets a page of a list that he may read anyway.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Any

from sidecar.errors import Violations
from sidecar.rpc.validation import check_range, check_text

_HASH_BYTES = 8


def read_page_size(bad: Violations, request: Any, unset: int = 100) -> int:
    """The size of a page of at most 1,000, and a look at the token's length."""
    size: int = request.page_size if request.HasField("page_size") else unset
    check_range(bad, "page_size", size, 1, 1_000)
    check_text(bad, "page_token", request.page_token, 0, 4_096)
    return size


def list_of(request: Any) -> bytes:
    """What makes one list another: the request, but for the page."""
    of = type(request)()
    of.CopyFrom(request)
    for name in ("page_size", "page_token"):
        of.ClearField(name)
    data: bytes = of.SerializeToString(deterministic=True)
    return type(request).__name__.encode() + data


def make_token(of: bytes, last: str) -> str:
    """The token for the page after `last` of the list that `of` describes."""
    return base64.urlsafe_b64encode(_hash(of) + last.encode()).decode()


def read_token(bad: Violations, of: bytes, token: str) -> str:
    """What the page before ended with; "" for the first page. Notes a token that is of another list, or of none."""
    if not token:
        return ""
    try:
        data = base64.b64decode(token, altchars=b"-_", validate=True)
        last = data[_HASH_BYTES:].decode()
    except (binascii.Error, ValueError):
        bad.add("page_token", "is no token of this server; send the last page's next_page_token, or leave it unset")
        return ""
    if data[:_HASH_BYTES] != _hash(of):
        bad.add("page_token", "belongs to another list; repeat the request that gave it, or leave it unset")
    return last


def _hash(of: bytes) -> bytes:
    return hashlib.blake2b(of, digest_size=_HASH_BYTES).digest()
