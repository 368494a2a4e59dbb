"""The command line, `memory-ranker`: the road for people and scripts. It talks to the server as any client does.

Importing it loads neither NumPy nor gRPC: each command fetches what it needs when it runs.
"""

from __future__ import annotations

import errno
import os
import sys

# NumPy and FAISS read it when they are loaded, and one thread a call is what the server is built for.
os.environ.setdefault("OMP_NUM_THREADS", "1")


def main() -> None:
    """Runs the command that the process was called with, and exits with its code.

    Once all is written it exits without Python's own tidying up: gRPC's threads may still be at work in C then, and
    now and then wait for each other for ever.
    """
    try:
        _need_output()
        from sidecar.cli.group import cli

        for stream in (sys.stdout, sys.stderr):
            # Text from a store may not fit into the terminal's encoding; showing it must not end in a traceback.
            getattr(stream, "reconfigure", lambda **_: None)(errors="backslashreplace")
        try:
            cli(prog_name="memory-ranker")
        except SystemExit as ended:
            sys.stdout.flush()
            sys.stderr.flush()
            if isinstance(ended.code, int):
                os._exit(ended.code)
            raise
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT) or error.filename is not None:
            raise
        # What is still buffered could not be written at the exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.stderr.write(f"Error: cannot write the output: {error.strerror}; make room, or send it elsewhere\n")
        sys.exit(1)


def _need_output() -> None:
    """Ends the process before anything is done where nobody could be told of it. A closed standard input reads as an
    empty one, and what is said on a closed standard error is lost."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull)  # noqa: SIM115 - open as long as the process lives
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    if sys.stdout is None:
        words = "standard output is closed, nothing was done; send it to /dev/null if it is not wanted"
        sys.stderr.write(f"Error: {words}\n")
        sys.exit(1)
