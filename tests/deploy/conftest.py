"""The image for every test that uses it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.deploy import image
from tests.deploy.image import Podman
from tests.deploy.tools import need, refuse


@pytest.fixture(scope="session")
def podman() -> Iterator[Podman]:
    """Both targets of the Dockerfile, built."""
    need(image.IN_DEBIAN, *image.TOOLS)
    if os.geteuid() != 0:
        refuse("the image is built in namespaces and mounts of its own, which needs root: sudo make deploy-check")
    with image.images() as built:
        yield built
