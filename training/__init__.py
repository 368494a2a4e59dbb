"""Training: fits new weights from the log of what agents used; it may import the sidecar, never the other way."""
