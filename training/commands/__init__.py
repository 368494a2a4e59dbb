"""The commands that training adds to `memory-ranker`. They alone speak as a command does."""
