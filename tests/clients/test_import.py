"""What a Python agent takes on by importing the client."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).with_name("import_alone.py")


def test_the_client_imports_neither_the_server_nor_its_libraries() -> None:
    """An agent that imports memoryranker loads no FAISS, no LightGBM, no sidecar, and sees no warning."""
    done = subprocess.run([sys.executable, "-W", "error", SCRIPT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
