"""Number of generated examples for each property, by Hypothesis profile.

The default profile is short and gives the same result every time. `--hypothesis-profile=all` runs the full
number of examples from fresh random seeds. `PERIPETY_EXAMPLES` replaces the number in both profiles.
"""

from __future__ import annotations

import os

from hypothesis import settings

FAST_EXAMPLES = 25


def register_profiles() -> None:
    """Register the profiles `fast` and `all`, and load `fast`."""
    settings.register_profile(
        "fast",
        derandomize=True,
        max_examples=FAST_EXAMPLES,
        database=None,
        deadline=None,
    )
    settings.register_profile("all", derandomize=False, database=None, deadline=None, print_blob=True)
    settings.load_profile("fast")


def is_full_run() -> bool:
    """Return True if the profile `all` is loaded."""
    return settings.get_current_profile_name() == "all"


def example_count(full: int, times: float = 1) -> int:
    """Return how many examples a property runs.

    Args:
        full: the number in the profile `all`, unless `PERIPETY_EXAMPLES` sets another.
        times: a factor for properties that are much cheaper or much more expensive than others.
    """
    given = os.environ.get("PERIPETY_EXAMPLES")
    count = max(1, int(int(given or full) * times))
    return count if given or is_full_run() else min(count, FAST_EXAMPLES)
