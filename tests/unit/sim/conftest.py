from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.cores import CORE_NAMES, core_named

if TYPE_CHECKING:
    from peripety.engine.backend_protocol import Backend


@pytest.fixture(params=CORE_NAMES)
def core(request: pytest.FixtureRequest) -> Backend:
    """Each core in turn."""
    return core_named(request.param)
