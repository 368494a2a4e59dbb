"""The sidecar: ranks the memories of an agent, served over gRPC."""

__version__ = "0.1.0"
