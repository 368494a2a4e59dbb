"""The log on standard error: a line an event, as text or as JSON. Texts of memories and tasks are never logged."""

from __future__ import annotations

import datetime
import json
import logging
import sys


def set_up(level: str, form: str) -> None:
    """Logs from `level` on (debug, info, warning, error) in `form` (text, json), for the whole process."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    root = logging.getLogger()
    root.handlers = [handler]
    # Libraries have their say when something is wrong; their chatter would hide ours.
    root.setLevel(logging.WARNING)
    logging.getLogger("sidecar").setLevel(level.upper())


class TextLines(logging.Formatter):
    """2026-10-01T09:30:00.000Z info serving on unix:/run/memory-ranker.sock. A line, whatever the message holds."""

    def format(self, record: logging.LogRecord) -> str:
        """One line; a traceback follows on lines of its own."""
        message = record.getMessage().replace("\r", "\\r").replace("\n", "\\n")
        line = f"{_time(record)} {record.levelname.lower()} {message}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonLines(logging.Formatter):
    """{"time": ..., "level": ..., "logger": ..., "message": ...}, and "error" with the traceback where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        """One line of JSON."""
        found = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            found["error"] = self.formatException(record.exc_info)
        return json.dumps(found, ensure_ascii=False)


def _time(record: logging.LogRecord) -> str:
    moment = datetime.datetime.fromtimestamp(record.created, datetime.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
