"""The native core, behind the same door as the reference."""

from __future__ import annotations

import peripety_simcore

__all__ = ["NativeCore"]


class NativeCore:
    """The `Core` in Rust."""

    name = "native"
    version = peripety_simcore.__version__
