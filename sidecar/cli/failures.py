"""How a command ends: exit codes that mean something, and errors that a person and a script can read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import IO, TYPE_CHECKING, Any

import click

from sidecar.cli import screen
from sidecar.formats.jsonl import not_utf8

if TYPE_CHECKING:
    from memoryranker.client import RankerRpcError


class ExitCode(IntEnum):
    """What the exit code says. MEANINGS has the words."""

    OK = 0
    ERROR = 1
    USAGE = 2
    NOT_FOUND = 3
    REFUSED = 4
    UNAVAILABLE = 5
    PARTLY = 6
    TAKEN = 7
    STARVING = 20
    POSITION_BIAS = 21
    FLAT_FORMULA = 22
    STALE_CACHE = 23
    WARNED = 24
    DAMAGED = 8
    GATED = 9
    INTERRUPTED = 130
    CLOSED = 141


MEANINGS: dict[ExitCode, str] = {
    ExitCode.OK: "done",
    ExitCode.ERROR: "something else went wrong; standard error says what",
    ExitCode.USAGE: "the command line, a variable or the settings file is wrong, or a file is not what it should be",
    ExitCode.NOT_FOUND: "what was named is not there: a memory, a packet, a model, a file to read, a folder, a store",
    ExitCode.REFUSED: "the server refused it as invalid",
    ExitCode.UNAVAILABLE: "no server, or no answer in time; the same call may succeed later",
    ExitCode.PARTLY: "partly done: some items of a batch were refused",
    ExitCode.TAKEN: "the store or the address cannot be had; most often another server has it",
    ExitCode.DAMAGED: "check, restore: the store or the backup is damaged",
    ExitCode.GATED: "train, train-importance: a gate refused; evaluate: the log tells too little; promote: the gates"
    " refuse the model, or leave it to a person",
    ExitCode.STARVING: "audit: too few reports come back",
    ExitCode.POSITION_BIAS: "audit: the same few memories are always served and seldom used",
    ExitCode.FLAT_FORMULA: "audit: reports are healthy, and scores do not follow them",
    ExitCode.STALE_CACHE: "audit: packets from before a rescore are still served",
    ExitCode.WARNED: "audit --strict: healthy or too little to tell, with a warning",
    ExitCode.INTERRUPTED: "interrupted by Ctrl-C",
    ExitCode.CLOSED: "whoever read the output has stopped, as `head` does; nothing is said",
}

_CODES = {
    "INVALID_ARGUMENT": ExitCode.REFUSED,
    "OUT_OF_RANGE": ExitCode.REFUSED,
    "ALREADY_EXISTS": ExitCode.REFUSED,
    "NOT_FOUND": ExitCode.NOT_FOUND,
    "UNAVAILABLE": ExitCode.UNAVAILABLE,
    "DEADLINE_EXCEEDED": ExitCode.UNAVAILABLE,
}
_REASONS = {"MODEL_REFUSED": ExitCode.REFUSED, "MODEL_GATED": ExitCode.GATED}


class Failure(click.ClickException):
    """An error that ends a command. Shown on standard error, with --json as one JSON object."""

    def __init__(
        self,
        message: str,
        exit_code: ExitCode = ExitCode.ERROR,
        *,
        reason: str = "",
        violations: tuple[tuple[str, str], ...] = (),
        violations_total: int = 0,
        metadata: Mapping[str, str] | None = None,
        retry_after: float | None = None,
        as_json: bool = False,
    ) -> None:
        super().__init__(message)
        self.exit_code = int(exit_code)  # type: ignore[misc]
        self.reason = reason
        self.violations = violations
        self.violations_total = max(violations_total, len(violations))
        self.metadata = dict(metadata or {})
        self.retry_after = retry_after
        self.as_json = as_json

    def adding(self, words: str) -> Failure:
        """The same failure with more to say."""
        return Failure(
            f"{self.message} ({words})",
            ExitCode(self.exit_code),
            reason=self.reason,
            violations=self.violations,
            violations_total=self.violations_total,
            metadata=self.metadata,
            retry_after=self.retry_after,
        )

    def as_object(self) -> dict[str, Any]:
        """What --json shows."""
        return {
            "error": {
                "reason": self.reason or ExitCode(self.exit_code).name,
                "message": self.message,
                "violations": [{"field": field, "description": words} for field, words in self.violations],
                "violations_total": self.violations_total,
                "metadata": self.metadata,
                "retry_after": self.retry_after,
                "exit_code": self.exit_code,
            }
        }

    def as_text(self) -> str:
        """What a person sees: the reason, every violation, the way out."""
        if not self.violations:
            lines = [f"{self.reason}: {self.message}" if self.reason else self.message]
        else:
            lines = [f"{self.reason or 'refused'}:", *(f"  {field}: {words}" for field, words in self.violations)]
            if missing := self.violations_total - len(self.violations):
                lines.append(f"  and {missing} more")
        if self.retry_after is not None:
            lines.append(f"Try again in {self.retry_after:g} s.")
        return "\n".join(lines)

    def show(self, file: IO[Any] | None = None) -> None:
        """Writes it to standard error."""
        text = json.dumps(self.as_object(), ensure_ascii=False) if self.as_json else f"Error: {self.as_text()}"
        click.echo(text, file=file, err=file is None)


def unreadable(name: str, error: OSError | UnicodeError) -> Failure:
    """A file that cannot be read: in every command another code for one that is not there."""
    if isinstance(error, UnicodeDecodeError):
        return Failure(f"cannot read {name}: {not_utf8(error)}", ExitCode.USAGE)
    words = getattr(error, "strerror", None) or str(error)
    return Failure(f"cannot read {name}: {words}", ExitCode.NOT_FOUND if _is_missing(error) else ExitCode.USAGE)


def unwritable(name: str, error: OSError) -> Failure:
    """A file or folder that cannot be written: likewise, if what it should lie in is not there."""
    code = ExitCode.NOT_FOUND if _is_missing(error) else ExitCode.ERROR
    return Failure(f"cannot write {name}: {error.strerror or error}", code)


def _is_missing(error: Exception) -> bool:
    return isinstance(error, FileNotFoundError | NotADirectoryError)


def failure_of(error: RankerRpcError, address: str, timeout: float) -> Failure:
    """The failure that a call's error stands for."""
    code = error.code.name
    exit_code = _REASONS.get(error.reason) or _CODES.get(code, ExitCode.ERROR)
    if error.retry_after is not None:
        exit_code = ExitCode.UNAVAILABLE
    message = error.message
    if code == "DEADLINE_EXCEEDED":
        message = f"no answer from {address} within {timeout:g} s; wait longer with --timeout SECONDS ({message})"
    if error.reason == "NOT_READY":
        message = f"{address} still loads its memories, after {timeout:g} s; wait longer with --timeout SECONDS"
    return Failure(
        message,
        exit_code,
        reason=error.reason,
        violations=tuple((each.field, each.description) for each in error.violations),
        violations_total=int(error.metadata.get("violations_total", "0")),
        metadata=error.metadata,
        retry_after=error.retry_after,
    )


def end_batch(results: Sequence[Mapping[str, Any]], *, as_json: bool) -> None:
    """Says which items of a batch were refused, unless the JSON has said it, and ends the command with their code.

    Each result is {"memory_id": ..., "status": {"code": ..., "message": ...}}, with no status where all went well.
    """
    failed = [each for each in results if each.get("status", {}).get("code", "ok") != "ok"]
    if not as_json:
        for each in failed:
            screen.note(f"{screen.visible(each['memory_id'])}: {screen.visible(each['status']['message'])}")
    are_missing = all(each["status"]["code"] == "not_found" for each in failed)
    exit_with(batch_exit_code(len(failed), len(results), are_missing=are_missing))


def batch_exit_code(refused: int, total: int, *, are_missing: bool = False) -> ExitCode:
    """How a batch of `total` items ended of which `refused` were not taken; `are_missing` if those were not found."""
    if refused == 0:
        return ExitCode.OK
    if refused < total:
        return ExitCode.PARTLY
    return ExitCode.NOT_FOUND if are_missing else ExitCode.REFUSED


def exit_with(code: ExitCode) -> None:
    """Ends the command with this code; goes on if it is OK."""
    if code is not ExitCode.OK:
        click.get_current_context().exit(int(code))
