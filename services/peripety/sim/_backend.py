"""Selection of the backend: `PERIPETY_SIMCORE=auto|native|python`, read once at import.

`auto` selects the native backend if it is installed. An installed native backend that is broken or has
another version raises, since results must not depend on the backend that happens to load.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from peripety import __version__

if TYPE_CHECKING:
    from peripety.sim._core import Core

__all__ = ["CORE", "load_core"]

_VARIABLE = "PERIPETY_SIMCORE"


def load_core(choice: str) -> Core:
    """Load a backend.

    Raises:
        ValueError: the choice is not auto, native or python.
        ImportError: the native backend is required and absent, broken, or has another version.
    """
    if choice not in {"auto", "native", "python"}:
        raise ValueError(f"{_VARIABLE} must be auto, native or python, not '{choice}'")
    if choice == "python":
        return _reference_core()
    try:
        from peripety.sim._native import NativeCore  # noqa: PLC0415 - optional dependency
    except ModuleNotFoundError as error:
        if error.name != "peripety_simcore" or choice == "native":
            raise
        return _reference_core()
    core = NativeCore()
    if core.version != __version__:
        raise ImportError(
            f"peripety {__version__} needs peripety-simcore {__version__}, but {core.version} is installed; "
            f"install the matching one, or set {_VARIABLE}=python"
        )
    return core


def _reference_core() -> Core:
    from peripety.sim._pure.core import PurePythonCore  # noqa: PLC0415 - not needed with the native backend

    return PurePythonCore()


CORE: Core = load_core(os.environ.get(_VARIABLE, "auto"))
