"""`python -m sidecar.cli`."""

from sidecar.cli import main

main()
