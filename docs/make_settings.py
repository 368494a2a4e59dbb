"""`python docs/make_settings.py > docs/settings.md`: every setting, from its own declaration."""

from __future__ import annotations

import sys

from sidecar.cli.settings import ON_THE_MACHINE, template
from sidecar.config import ENVIRONMENT_PREFIX, FIELDS, FILE_VARIABLE

INTRODUCTION = f"""\
# Settings

Made by `python docs/make_settings.py > docs/settings.md`; do not edit.

Each can be given as a flag of `memory-ranker serve`, as a variable, or in the settings file, and the first of these
wins: `--log-level debug`, `{ENVIRONMENT_PREFIX}LOG_LEVEL=debug`, `log_level = "debug"`. The file is
`~/.config/memory-ranker/config.toml`, or the one that `--config` or `{FILE_VARIABLE}` names. Unknown names are errors.

```sh
memory-ranker config
memory-ranker config --threads 8 --json
```

show what they come to and where each comes from; this prints a file to start from:

```sh
memory-ranker config --defaults
```

| setting | meaning | may be | default |
|---|---|---|---|
"""


def page() -> str:
    """The page, as Markdown."""
    rows = []
    for name, field in FIELDS.items():
        about = field.metadata
        default = f"`{ON_THE_MACHINE[name]}`" if name in ON_THE_MACHINE else _shown(field.default)
        unit = f", in {about['unit']}" if about["unit"] else ""
        cells = (f"`{name}`", about["help"], f"{about['rule'].limit}{unit}", default)
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    own, _, importance = template().partition("# Named weights")[2].partition("# Weights of importance")
    example, tables = ("\n".join(line[2:] for line in each.splitlines()[1:] if line) for each in (own, importance))
    weights = f"""
## Weights of your own

They stand in the file alone, a table for each name; features that are left out weigh nothing:

```toml
{example}
```

## Weights of importance

Those of a domain stand in the file alone, too, a table for each; they sum to 1, and signals that are left out weigh
nothing. A table of a shipped name (`code`, `conversation`, `decisions`) takes its place. See
[importance.md](importance.md):

```toml
{tables}
```
"""
    return INTRODUCTION + "\n".join(rows) + "\n" + weights


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(f"`{each}`" for each in value) or "none"
    return f"`{value}`"


if __name__ == "__main__":
    sys.stdout.write(page())
