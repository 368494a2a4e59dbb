"""Generated from proto/memoryranker/v1 by `make proto`; not edited by hand."""
