from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.cores import CORE_NAMES, core_named

if TYPE_CHECKING:
    from peripety.sim._core import Core


@pytest.fixture(params=CORE_NAMES)
def core(request: pytest.FixtureRequest) -> Core:
    """Each core in turn."""
    return core_named(request.param)
