"""Finding: text to terms and vectors, and immutable snapshots of a namespace. The only place that knows FAISS."""
