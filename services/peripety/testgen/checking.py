"""Runtime of exported pytest modules: checks of a document by the same subject as in the run.

Example::

    SUBJECT = checking.policy('{"tools": ...}')

    def test_something():
        SUBJECT.check('{"server_name": ...}')

Exported modules import this module by its name, so its name and functions are part of the export format.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from peripety import engine
from peripety.testgen.subjects.policy import PolicySubject
from peripety.testgen.subjects.scenario.subject import ScenarioSubject
from peripety.testgen.types import TestCase, TestStatus

if TYPE_CHECKING:
    from peripety.testgen.subjects.subject import Subject


class DocumentChecks:
    """Checks of a document.

    Args:
        subject: the compiled document.
    """

    def __init__(self, subject: Subject) -> None:
        self._subject = subject

    def check(self, body: str) -> None:
        """Run a test.

        Args:
            body: the test as JSON, in the form of its subject.

        Raises:
            AssertionError: the test fails or cannot be run; the message contains the reason and the observed
                result.
        """
        __tracebackhide__ = True  # hide this frame in failure reports
        test = TestCase("", "", "", body=json.loads(body))
        problems = self._subject.problems(test.body or {})
        ran = None if problems else self._subject.run(test)
        if ran is not None and ran.status is TestStatus.PASSED:
            return
        found = problems if ran is None else ran.findings
        told = [f"{one.code} {one.path or '/'}: {one.message}" for one in found]
        raise AssertionError("\n".join([*told, *([ran.observed] if ran and ran.observed else [])]))


def scenario(document: str) -> DocumentChecks:
    """Return checks of a scenario.

    Raises:
        SpecError: the document is not a valid scenario.
    """
    return DocumentChecks(ScenarioSubject(engine.compile(document)))


def policy(document: str) -> DocumentChecks:
    """Return checks of a policy.

    Raises:
        SpecError: the document is not a valid policy.
    """
    return DocumentChecks(PolicySubject(engine.compile_policy(document)))
