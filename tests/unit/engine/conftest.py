from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.engine.backends import BACKEND_NAMES, backend_named

if TYPE_CHECKING:
    from peripety.engine.backend_protocol import Backend


@pytest.fixture(params=BACKEND_NAMES)
def core(request: pytest.FixtureRequest) -> Backend:
    """Each core in turn."""
    return backend_named(request.param)
