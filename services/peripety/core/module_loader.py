"""Import of modules on demand."""

from __future__ import annotations

import gc
from importlib import import_module
from typing import Any


def load_module(name: str) -> Any:
    """Import a module on demand.

    The garbage collector rests meanwhile. A module creates thousands of objects and no garbage, and to look
    for some takes a sixth of the time that a server needs to start.

    Args:
        name: full name of the module.
    """
    is_collecting = gc.isenabled()
    gc.disable()
    try:
        return import_module(name)
    finally:
        if is_collecting:
            gc.enable()
