"""The top 20 in the libraries that people would pick instead, over the same vectors, each in process.

    python tests/bench/peers.py VECTORS.npy TASKS.npy TEXTS.txt PEER

Runs in an environment of its own (tests/bench/requirements/peers.txt) and knows nothing of ours. Prints one line of
JSON: seconds of each call, or why the peer could not run. Each peer is set as its documentation recommends for exact or
default search of cosine similarity; building is not timed.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

TOP = 20
WARM_UP = 20

Search = Callable[[np.ndarray], object]


def chroma(vectors: np.ndarray, texts: list[str], folder: Path) -> Search:
    """Persistent client, HNSW with cosine, documents beside."""
    import chromadb

    client = chromadb.PersistentClient(str(folder), settings=chromadb.Settings(anonymized_telemetry=False))
    collection = client.create_collection("peers", configuration={"hnsw": {"space": "cosine"}})
    for start in range(0, len(vectors), 5_000):
        part = slice(start, min(start + 5_000, len(vectors)))
        ids = [str(i) for i in range(part.start, part.stop)]
        collection.add(ids=ids, embeddings=vectors[part], documents=texts[part])
    return lambda task: collection.query(query_embeddings=[task], n_results=TOP)


def sqlite_vec(vectors: np.ndarray, texts: list[str], folder: Path) -> Search:
    """A vec0 table with cosine distance, texts joined."""
    import sqlite3

    import sqlite_vec as extension

    db = sqlite3.connect(folder / "vec.db")
    db.enable_load_extension(True)
    extension.load(db)
    db.execute(f"CREATE VIRTUAL TABLE v USING vec0(embedding float[{vectors.shape[1]}] distance_metric=cosine)")
    db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, content TEXT)")
    db.executemany("INSERT INTO v(rowid, embedding) VALUES (?, ?)", ((i, v.tobytes()) for i, v in enumerate(vectors)))
    db.executemany("INSERT INTO t VALUES (?, ?)", enumerate(texts))
    db.commit()
    found = "SELECT rowid, distance FROM v WHERE embedding MATCH ? AND k = ?"
    return lambda task: db.execute(
        f"SELECT t.content, f.distance FROM ({found}) f JOIN t ON t.id = f.rowid ORDER BY f.distance",
        (task.tobytes(), TOP),
    ).fetchall()


def lancedb(vectors: np.ndarray, texts: list[str], folder: Path) -> Search:
    """A table; with an IVF_PQ index from 100,000 rows on, as recommended, else exact."""
    import lancedb as lance
    import pyarrow as pa

    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
    table = lance.connect(folder).create_table("peers", pa.table({"vector": column, "content": texts}))
    if len(vectors) >= 100_000:
        table.create_index(metric="cosine", vector_column_name="vector")
    return lambda task: table.search(task).distance_type("cosine").limit(TOP).to_list()


def qdrant(vectors: np.ndarray, texts: list[str], folder: Path) -> Search:
    """The local mode, in memory."""
    from qdrant_client import QdrantClient, models

    client = QdrantClient(":memory:")
    client.create_collection("peers", models.VectorParams(size=vectors.shape[1], distance=models.Distance.COSINE))
    for start in range(0, len(vectors), 5_000):
        part = range(start, min(start + 5_000, len(vectors)))
        points = [models.PointStruct(id=i, vector=vectors[i].tolist(), payload={"content": texts[i]}) for i in part]
        client.upsert("peers", points)
    return lambda task: client.query_points("peers", query=task.tolist(), limit=TOP, with_payload=True)


def langgraph(vectors: np.ndarray, texts: list[str], folder: Path) -> Search:
    """InMemoryStore with an embedding function that only looks up."""
    from langgraph.store.memory import InMemoryStore

    known: dict[str, list[float]] = dict(zip(texts, vectors.tolist(), strict=True))
    asked: dict[str, list[float]] = {}

    def embed(wanted: Any) -> list[list[float]]:
        return [asked.get(text) or known[text] for text in wanted]

    store = InMemoryStore(index={"dims": vectors.shape[1], "embed": embed, "fields": ["content"]})
    for i, text in enumerate(texts):
        store.put(("peers",), str(i), {"content": text})

    def search(task: np.ndarray) -> object:
        asked["task"] = task.tolist()
        return store.search(("peers",), query="task", limit=TOP)

    return search


def mem0_style(vectors: np.ndarray, texts: list[str], folder: Path) -> Search:
    """What many agents do by hand: vector search, then a sort by a mix of similarity, recency and importance."""
    rng = np.random.default_rng(1)
    ages, importance = rng.uniform(0, 365, len(vectors)), rng.uniform(0, 1, len(vectors))

    def search(task: np.ndarray) -> object:
        similarity = vectors @ task
        near = np.argpartition(-similarity, TOP * 5)[: TOP * 5].tolist()
        scored = [
            (0.6 * float(similarity[i]) + 0.2 * 0.99 ** float(ages[i]) + 0.2 * float(importance[i]), i) for i in near
        ]
        return [(score, texts[i]) for score, i in sorted(scored, reverse=True)[:TOP]]

    return search


PEERS = {
    "chroma": chroma,
    "sqlite_vec": sqlite_vec,
    "lancedb": lancedb,
    "qdrant_local": qdrant,
    "langgraph_store": langgraph,
    "mem0_style": mem0_style,
}


def main(vectors_file: str, tasks_file: str, texts_file: str, peer: str) -> dict[str, object]:
    """Seconds of each call, or why not."""
    vectors, tasks = np.load(vectors_file), np.load(tasks_file)
    texts = Path(texts_file).read_text(encoding="utf-8").splitlines()
    try:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            search = PEERS[peer](vectors, texts, Path(folder))
            seconds = []
            for number, task in enumerate((*tasks[:WARM_UP], *tasks)):
                start = time.perf_counter()
                search(task)
                if number >= WARM_UP:
                    seconds.append(time.perf_counter() - start)
        return {"seconds": seconds}
    except Exception as error:  # noqa: BLE001 - the row says why it is empty
        return {"why_not": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:5])), flush=True)
