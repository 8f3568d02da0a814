"""Which core runs: `PERIPETY_SIMCORE=auto|native|python`, read once at import.

`auto` takes the native core when it is installed. A native core that is installed but broken, or of another
version, raises: results must never depend on which core happened to load.
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
    """The core of a choice.

    Raises:
        ValueError: the choice is none of auto, native, python.
        ImportError: the native core is asked for and absent, broken, or of another version.
    """
    if choice not in {"auto", "native", "python"}:
        raise ValueError(f"{_VARIABLE} must be auto, native or python, not '{choice}'")
    if choice == "python":
        return _reference_core()
    try:
        from peripety.sim._native import NativeCore  # noqa: PLC0415 - it is optional
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
    from peripety.sim._pure.core import PurePythonCore  # noqa: PLC0415 - the native core does without

    return PurePythonCore()


CORE: Core = load_core(os.environ.get(_VARIABLE, "auto"))
