"""Logs, metrics and the HTTP port."""
