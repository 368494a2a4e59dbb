"""Text that was deleted is gone from every file of the store, and so is a purged namespace."""

from __future__ import annotations

import subprocess
import threading
import time
from pathlib import Path
from random import Random
from typing import Any

from sidecar.store.store import Store
from tests.serving import running

GONE_WITHIN = 30.0
"""Seconds within which deleted text must have left all files."""


def bytes_of(folder: Path) -> bytes:
    """All bytes of all files in the folder and below. Read by another process: closing a database file here would drop
    the locks that this process has on it."""
    paths = sorted(str(path) for path in folder.rglob("*") if path.is_file())
    return subprocess.run(["cat", "--", *paths], capture_output=True, check=True).stdout


def wait_until_gone(folder: Path, words: list[str]) -> float:
    """Returns after how many seconds none of the words was in the folder."""
    started = time.monotonic()
    while True:
        data = bytes_of(folder)
        left = [word for word in words if word.encode() in data]
        if not left:
            return time.monotonic() - started
        assert time.monotonic() - started < GONE_WITHIN, f"{len(left)} of {len(words)} are still there: {left[:3]}"


def test_deleted_text_is_found_nowhere_in_the_data_folder(tmp_path: Path) -> None:
    """Texts of every size, their metadata, tags and subjects, ratings' reasons and answers kept for retries: after a
    delete by id or by filter, or an update that replaces them, no byte of them is in any file within 30 seconds, by
    itself and while others write."""
    random = Random(5)
    words = [f"SECRET{random.getrandbits(64):016x}" for _ in range(120)]
    with running(tmp_path, embedder="none") as server:
        client = server.client
        for i, word in enumerate(words):
            fill = "filler " * random.choice((0, 1, 30, 300, 3_000))
            client.upsert("n", [{"id": f"m{i}", "content": f"{fill}{word} {fill}"}], request_id=f"r{i}")
            client.update(
                "n", f"m{i}", subject=f"s {word}", tags=[f"t {word}"], metadata={"k": word}, request_id=f"r{i}"
            )
            client.rate("n", f"m{i}", "helpful", reason=word, request_id=f"r{i}")
            client.upsert("n", [{"id": f"kept{i}", "content": f"harmless text number {i} {fill}"}])
            packet = client.rank("n", f"filler {i}", request_id=f"r{i}")
            client.report_use(packet.packet_id, [packet.items[0].memory.id], request_id=f"r{i}")
        assert all(word.encode() in bytes_of(tmp_path) for word in words)
        replaced = range(0, 120, 3)
        for i in replaced:
            new: dict[str, Any] = {"content": "harmless", "subject": "", "tags": [], "metadata": {}}
            client.update("n", f"m{i}", **new)
            client.rate("n", f"m{i}", "withdrawn")
        client.delete("n", [f"m{i}" for i in range(1, 120, 3)])
        client.delete("n", filter={"ids": [f"m{i}" for i in range(2, 120, 3)]})
        over = threading.Event()

        def keep_writing() -> None:
            number = 0
            while not over.is_set():
                number += 1
                client.upsert("n", [{"id": f"busy{number % 50}", "content": f"harmless text of round {number}"}])

        writer = threading.Thread(target=keep_writing)
        writer.start()
        try:
            wait_until_gone(tmp_path, words)
        finally:
            over.set()
            writer.join()
        assert client.status("n").namespace.packet_count == 120
        assert client.get("n", "kept7").content.startswith("harmless text number 7")
    wait_until_gone(tmp_path, words)


def test_a_purged_namespace_is_found_nowhere(tmp_path: Path) -> None:
    """Its texts, its tasks, its ids and its name leave every file; another namespace stays whole."""
    with running(tmp_path, embedder="none") as server:
        for namespace in ("PURGEDNAME", "kept"):
            ids = [f"ID{namespace}{i}" for i in range(20)]
            server.client.upsert(namespace, [{"id": i, "content": f"TEXT{namespace} {i} " * 50} for i in ids])
            packet = server.client.rank(namespace, f"TASK{namespace}", session_id=f"SESSION{namespace}")
            server.client.report_use(packet.packet_id, ids[:1])
    with Store.open(tmp_path / "data") as store:
        assert store.purge_namespace("PURGEDNAME") == (20, 1)
        store.settle()
        assert b"PURGEDNAME" not in bytes_of(tmp_path)
        assert store.namespace_numbers("kept").packet_count == 1
        assert len(store.load("kept").memories) == 20
