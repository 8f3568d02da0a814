"""Context of a measured policy: facts that are computed once for any number of suites."""

from __future__ import annotations

from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

from peripety.policies.analysis.comparing import compare_windows
from peripety.policies.analysis.verdicts import Undecided
from peripety.policies.mutating.changes import window
from peripety.policies.mutating.operators import mutations
from peripety.policies.verifying.exploring import explore
from peripety.policies.verifying.targets import aims

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from peripety.policies.analysis.verdicts import Reach, Verdict
    from peripety.policies.mutating.changes import Mutation
    from peripety.policies.verifying.targets import Aim
    from peripety.sim import Policy

__all__ = ["OutOfTimeError", "Subject"]

_BLOCK = 1000


class OutOfTimeError(Exception):
    """The time limit of the measurement is reached."""


class Subject:
    """A policy to measure, with cached mutants, coverage targets and verdicts.

    Args:
        policy: the policy.
        is_late: returns True once the time limit is reached; called between steps.

    Attributes:
        policy: the policy.
    """

    def __init__(self, policy: Policy, is_late: Callable[[], bool] = lambda: False) -> None:
        self.policy = policy
        self._is_late = is_late
        self._verdicts: dict[str, Verdict] = {}
        self._reached: dict[str, Reach] = {}

    @cached_property
    def mutations(self) -> tuple[Mutation, ...]:
        """All mutants of the policy."""
        return tuple(mutations(self.policy))

    @cached_property
    def aims(self) -> tuple[Aim, ...]:
        """All coverage targets of the policy."""
        return aims(self.policy)

    def go_on(self) -> None:
        """Return if there is time left.

        Raises:
            OutOfTimeError: the time limit is reached.
        """
        if self._is_late():
            raise OutOfTimeError

    def verdicts(self, made: Sequence[Mutation]) -> list[Verdict]:
        """Return the comparison of each mutant with the policy.

        Raises:
            OutOfTimeError: the time limit is reached.
        """
        # A verdict that was undecided among many may be decided among few.
        new = iter([one for one in made if isinstance(self._verdicts.get(one.mutant_id), Undecided | None)])
        rules = self.policy.rules
        while block := [*islice(new, _BLOCK)]:
            self.go_on()
            found = compare_windows(self.policy, [window(rules, mutation) for mutation in block])
            self._verdicts |= zip((mutation.mutant_id for mutation in block), found, strict=True)
        return [self._verdicts[mutation.mutant_id] for mutation in made]

    def explored(self, missed: Sequence[Aim]) -> list[Reach]:
        """Return the result of the search for each coverage target.

        Raises:
            OutOfTimeError: the time limit is reached.
        """
        new = [aim for aim in missed if isinstance(self._reached.get(aim.path), Undecided | None)]
        if new:
            self.go_on()
            self._reached |= zip((aim.path for aim in new), explore(self.policy, new), strict=True)
        return [self._reached[aim.path] for aim in missed]
