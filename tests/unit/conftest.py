from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def made_up() -> Callable[[int, int], list[str]]:
    """Return `made_up(count, seed)`, which makes words of no language, distinct from real text."""
    return _made_up


def _made_up(count: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    words: dict[str, None] = {}
    while len(words) < count:
        words["".join(rng.choice("bdgkprtvz") + rng.choice("aou") for _ in range(4))] = None
    return list(words)
