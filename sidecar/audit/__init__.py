"""The queries that tell a starved ranker from a broken one."""
