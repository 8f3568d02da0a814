"""Number of generated examples for each property, by Hypothesis profile.

The default profile `fast` gives the same result every time. `--hypothesis-profile=all` runs the full
number of examples from fresh random seeds, and `--hypothesis-profile=short` a quarter of it.
`PERIPETY_EXAMPLES` replaces the number in every profile.
"""

from __future__ import annotations

import os

from hypothesis import settings

FAST_EXAMPLES = 25
_SHORT_SHARE = 1 / 4


def register_profiles() -> None:
    """Register the profiles `fast`, `short` and `all`, and load `fast`."""
    settings.register_profile(
        "fast",
        derandomize=True,
        max_examples=FAST_EXAMPLES,
        database=None,
        deadline=None,
    )
    settings.register_profile("all", derandomize=False, database=None, deadline=None, print_blob=True)
    settings.register_profile("short", settings.get_profile("all"), max_examples=int(100 * _SHORT_SHARE))
    settings.load_profile("fast")


def example_count(full: int, times: float = 1) -> int:
    """Return how many examples a property runs.

    Args:
        full: the number in the profile `all`, unless `PERIPETY_EXAMPLES` sets another.
        times: a factor for properties that are much cheaper or much more expensive than others.
    """
    given = os.environ.get("PERIPETY_EXAMPLES")
    count = max(1, int(int(given or full) * times))
    profile = settings.get_current_profile_name()
    if given or profile == "all":
        return count
    return min(count, FAST_EXAMPLES) if profile == "fast" else max(1, int(count * _SHORT_SHARE))
