"""`export-log`: the packets and reports of a log as Parquet, for an ML engineer's own tools and for `train`."""

from __future__ import annotations

import os
import secrets
from functools import partial
from pathlib import Path

import click

from sidecar.cli import screen
from sidecar.cli.failures import unwritable
from sidecar.cli.parsing import PATH
from sidecar.plurals import counted
from training.commands.progress import steps
from training.commands.reading import log_errors, log_options
from training.dataset import Cutoffs
from training.sources import read_source


@click.command(
    "export-log",
    short_help="Write packets and reports as Parquet.",
    epilog="""\b
Examples:
  memory-ranker export-log --out log.parquet
  memory-ranker export-log memories-today.jsonl --out log.parquet --json""",
)
@log_options
@click.option("--out", required=True, type=PATH, metavar="FILE", help="Where to.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def export_log(source: Path, namespace: str, cutoffs: Cutoffs, out: Path, as_json: bool) -> None:
    """Writes the packets and reports of a store's folder, also one in use, or of an export, as one Parquet file.

    It holds ids and numbers and no text: neither memories nor tasks. The file is there whole or not at all.
    """
    from training.parquet import write_parquet

    if out.suffix != ".parquet":
        raise click.UsageError(f"--out {out} must end in .parquet, by which `train` knows it")
    part = out.with_name(f".{out.name[:200]}.{secrets.token_hex(4)}.part")
    try:
        with log_errors(), steps() as advance:
            os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            count = write_parquet(part, read_source(source, namespace, cutoffs, partial(advance, "log")))
        part.replace(out)
    except OSError as error:
        raise unwritable(str(out), error) from error
    finally:
        part.unlink(missing_ok=True)
    if as_json:
        screen.document({"output": str(out), "rows": count})
    else:
        click.echo(f"{counted(count, 'row')} of packets and reports written to {screen.visible(str(out))}")
