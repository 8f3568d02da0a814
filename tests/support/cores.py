"""Both cores for tests: one suite runs over each; a missing native core is loud, or fatal where required."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from peripety.engine import Program
from peripety.engine._backend import load_backend

if TYPE_CHECKING:
    from peripety.engine.backend_protocol import Backend


CORE_NAMES = ("python", "native")
REQUIRE_NATIVE = os.environ.get("PERIPETY_REQUIRE_NATIVE") == "1"


def core_named(name: str) -> Backend:
    """The core of a name; skips the test when the native one is not installed and not required."""
    try:
        return load_backend(name)
    except ModuleNotFoundError:
        if REQUIRE_NATIVE:
            raise
        pytest.skip("native core: not built; build it with `make native`")


def program_on(core: Backend, document: bytes, *, is_canonical: bool = False) -> Program:
    """A valid document compiled on one core."""
    canonical = document if is_canonical else core.parse(document)
    return Program(canonical, core.compile(canonical))
