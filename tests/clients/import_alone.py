"""Imports the client, by itself, and exits non-zero if that brought in the server or its heavy libraries.

Run as a script, with any grpcio and protobuf that the client supports.
"""

import importlib
import pkgutil
import sys

import memoryranker

HEAVY = {"faiss", "lightgbm", "scipy", "sidecar", "sqlite3", "training", "wordllama"}


def main() -> None:
    modules = {module.name for module in pkgutil.walk_packages(memoryranker.__path__, "memoryranker.")}
    if not {"memoryranker.client", "memoryranker.v1.ranker_pb2_grpc"} <= modules:
        sys.exit(f"memoryranker is not whole: {', '.join(sorted(modules))}")
    for name in sorted(modules):
        importlib.import_module(name)
    brought_in = sorted(HEAVY & set(sys.modules))
    if brought_in:
        sys.exit(f"importing memoryranker also imported {', '.join(brought_in)}")
    versions = ", ".join(f"{name} {importlib.import_module(name).__version__}" for name in ("grpc", "google.protobuf"))
    print(f"the client imports alone, without a warning, on {versions}")


if __name__ == "__main__":
    main()
