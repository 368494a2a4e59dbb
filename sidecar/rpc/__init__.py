"""The wire: the only place that knows grpc and the generated messages."""
