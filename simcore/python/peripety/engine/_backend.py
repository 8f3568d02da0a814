"""Selection of the backend: `PERIPETY_SIMCORE=auto|native|python`, read once at import.

`auto` selects the native backend if it is installed. An installed native backend that is broken or has
another version raises, since results must not depend on the backend that happens to load.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from peripety.version import __version__

if TYPE_CHECKING:
    from peripety.engine.backend_protocol import Backend


_ENVIRONMENT_VARIABLE = "PERIPETY_SIMCORE"


def load_backend(choice: str) -> Backend:
    """Load a backend.

    Raises:
        ValueError: the choice is not auto, native or python.
        ImportError: the native backend is required and absent, broken, or has another version.
    """
    if choice not in {"auto", "native", "python"}:
        raise ValueError(f"{_ENVIRONMENT_VARIABLE} must be auto, native or python, not '{choice}'")
    if choice == "python":
        return _load_reference()
    try:
        from peripety.engine._native import NativeBackend  # noqa: PLC0415 - optional dependency
    except ModuleNotFoundError as error:
        if error.name != "peripety_simcore" or choice == "native":
            raise
        return _load_reference()
    core = NativeBackend()
    if core.version != __version__:
        raise ImportError(
            f"peripety {__version__} needs peripety-simcore {__version__}, but {core.version} is installed; "
            f"install the matching one, or set {_ENVIRONMENT_VARIABLE}=python",
        )
    return core


def _load_reference() -> Backend:
    from peripety.engine._reference.backend import ReferenceBackend  # noqa: PLC0415 - not needed with the native backend

    return ReferenceBackend()


ACTIVE_BACKEND: Backend = load_backend(os.environ.get(_ENVIRONMENT_VARIABLE, "auto"))
