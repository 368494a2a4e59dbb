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
    own = template().partition("# Named weights")[2]
    example = "\n".join(line.removeprefix("# ") for line in own.splitlines()[1:])
    weights = f"""
## Weights of your own

They stand in the file alone, a table for each name; features that are left out weigh nothing:

```toml
{example}
```
"""
    return INTRODUCTION + "\n".join(rows) + "\n" + weights


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(f"`{each}`" for each in value) or "none"
    return f"`{value}`"


if __name__ == "__main__":
    sys.stdout.write(page())
