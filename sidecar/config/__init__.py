"""The settings: one frozen object, read once."""

from sidecar.config.resolving import (
    ENVIRONMENT_PREFIX,
    FILE_VARIABLE,
    WEIGHTS_KEYS,
    Resolved,
    resolve,
)
from sidecar.config.rules import SOCKET_PATH_BYTES
from sidecar.config.settings import FIELDS, Settings

__all__ = [
    "ENVIRONMENT_PREFIX",
    "FIELDS",
    "FILE_VARIABLE",
    "SOCKET_PATH_BYTES",
    "WEIGHTS_KEYS",
    "Resolved",
    "Settings",
    "resolve",
]
