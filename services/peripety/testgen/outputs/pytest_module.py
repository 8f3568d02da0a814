"""A run as a pytest module that needs nothing beside it.

Tests on scenarios and policies run on the engine that is installed; tests on a command run that command. What
cannot be run, or looks at nothing, is skipped, with its words as the reason: it never passes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.testgen.model import TestStatus
from peripety.testgen.outputs import texts
from peripety.testgen.subjects.command.hidden import SHORTEST, is_secret
from peripety.testgen.subjects.subject import SubjectKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.testgen.model import TestCase
    from peripety.testgen.outputs.suite import Outcome, Source, Suite

__all__ = ["write"]

_NO_USE = frozenset({"STUB", "TAUTOLOGY"})
_NOT_RUN = frozenset({TestStatus.UNSTABLE, TestStatus.NOT_EXECUTABLE})
_LONGEST_REASON = 2_000
_ON_ENGINE = """\
# What the tests were made for. Another document of the same kind can take its place.
SUBJECT = checking.{kind}(
    {document}
)
"""
_ON_COMMAND = '''\
ARGV = {argv!r}
DIRECTORY = {directory!r}  # copied for each test; None for an empty one
ENVIRONMENT = {environment!r}  # names of variables that are passed on, where they are set
TIMEOUT_SECONDS = {timeout!r}


def run(place, arguments, stdin):
    """Run the command in a directory of its own: its exit code, and what it wrote to standard output."""
    work = place / "work"
    if DIRECTORY is None:
        work.mkdir()
    else:
        shutil.copytree(DIRECTORY, work, symlinks=True)
    environment = {{"PATH": "/usr/local/bin:/usr/bin:/bin", "PYTHONHASHSEED": "0"}}
    environment |= {{name: os.environ[name] for name in ENVIRONMENT if name in os.environ}}
    done = subprocess.run(
        [*ARGV, *arguments],
        input=stdin.encode(errors="surrogateescape"),
        stdout=subprocess.PIPE,
        cwd=work,
        env=environment,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    return done.returncode, {stdout}.decode(errors="replace").rstrip()
'''
_ON_VARIABLES = '''

def without_values(output):
    """What was written with `$NAME` for what a variable holds, as it stands in the tests."""
    held = {{os.environ[name]: name for name in ENVIRONMENT if name in os.environ}}
    hidden = [value for value in held if len(value) >= {shortest} or (value and held[value] in {secret!r})]
    if not hidden:
        return output
    hidden.sort(key=len, reverse=True)  # a longer one may hold a shorter one
    pattern = b"|".join(re.escape(os.fsencode(value)) for value in hidden)
    return re.sub(pattern, lambda found: b"$" + held[os.fsdecode(found[0])].encode(), output)
'''


def write(suite: Suite) -> bytes:
    """The module."""
    skipped = {test.test_id: _why_not(test, suite) for test in suite.tests}
    runs = suite.tested if suite.tested is not None and not all(skipped.values()) else None
    names = texts.names([_named(test) for test in suite.tests])
    blocks = [
        "\n".join(_head(suite)),
        *_imports(runs, skips=any(skipped.values())),
        *([] if runs is None else [_subject(runs)]),
    ]
    head = "\n\n".join(block.rstrip("\n") for block in blocks)
    functions = [
        "\n".join(_function(name, test, suite, skipped[test.test_id]))
        for name, test in zip(names, suite.tests, strict=True)
    ]
    return ("\n\n\n".join([head, *functions]) + "\n").encode(errors="backslashreplace")


def _head(suite: Suite) -> Iterator[str]:
    yield '"""Tests that peripety wrote; docs/testgen.md says how to read them."""'
    yield ""
    yield f"# Run {texts.in_one_line(suite.run_id)}, for this task:"
    yield from texts.comment(suite.order.description)


def _imports(tested: Source | None, *, skips: bool) -> Iterator[str]:
    """Groups of imports, in order."""
    if tested is not None and tested.command is not None:
        names = ["os", *(["re"] if tested.command.environment else []), "shutil", "subprocess"]
        yield "\n".join(f"import {name}" for name in names)
    others = ["import pytest"] if skips else []
    if tested is not None and tested.document is not None:
        others.append("from peripety.testgen import checking")
    if others:
        yield "\n".join(others)


def _subject(tested: Source) -> str:
    command = tested.command
    if command is None:
        document = texts.json_literal(tested.document, 4)
        return _ON_ENGINE.format(kind=tested.kind.value, document=document)
    names = [*command.environment]
    run = _ON_COMMAND.format(
        argv=[*command.argv],
        directory=command.working_directory,
        environment=names,
        timeout=command.timeout_seconds,
        stdout="without_values(done.stdout)" if names else "done.stdout",
    )
    if not names:
        return run
    return run + _ON_VARIABLES.format(shortest=SHORTEST, secret=[*filter(is_secret, names)])


def _why_not(test: TestCase, suite: Suite) -> str:
    """Why a test is not run; empty where it is."""
    outcome = suite.outcomes.get(test.test_id)
    if suite.tested is None or test.body is None:
        return _in_words("in words alone", test)
    if outcome is not None:
        for finding in outcome.findings:
            if finding.code in _NO_USE or outcome.status in _NOT_RUN:
                return f"{finding.code}: {finding.message}"
    if suite.tested.kind is SubjectKind.COMMAND and not _expects(test):
        return _in_words("expects neither output nor an exit code", test)
    return ""


def _in_words(why: str, test: TestCase) -> str:
    expected = "" if test.expected_output is None else f"; expected: {test.expected_output}"
    return f"{why}: {test.input}{expected}"[:_LONGEST_REASON]


def _expects(test: TestCase) -> bool:
    return test.expected_output is not None or (test.body or {}).get("exit_code") is not None


def _named(test: TestCase) -> str:
    """What a test is called: its id, which mostly begins with its category."""
    return test.test_id if test.test_id.startswith(test.category) else f"{test.category}_{test.test_id}"


def _function(name: str, test: TestCase, suite: Suite, skipped: str) -> Iterator[str]:
    is_command = suite.tested is not None and suite.tested.kind is SubjectKind.COMMAND
    yield f"def {name}({'tmp_path' if is_command and not skipped else ''}):"
    for line in _told(test, suite.outcomes.get(test.test_id)):
        yield f"    {line}"
    if skipped:
        yield f"    pytest.skip({skipped!r})"
    elif is_command:
        yield from _command_lines(test)
    else:
        yield f"    SUBJECT.check(\n        {texts.json_literal(test.body, 8)}\n    )"


def _told(test: TestCase, outcome: Outcome | None) -> Iterator[str]:
    """Comments that say what a test is about."""
    yield from texts.comment(test.reasoning)
    if outcome is not None and outcome.status is TestStatus.FAILED:
        yield from texts.comment(f"It failed when it was made: {outcome.observed}")


def _command_lines(test: TestCase) -> Iterator[str]:
    body = test.body or {}
    exit_code, expected = body.get("exit_code"), test.expected_output
    arguments = [*map(str, body.get("arguments") or ())]
    names = f"{'_' if exit_code is None else ''}exit_code, {'_' if expected is None else ''}stdout"
    yield f"    {names} = run(tmp_path, {arguments!r}, {body.get('stdin') or ''!r})"
    if exit_code is not None:
        yield f"    assert exit_code == {exit_code!r}"
    if expected is not None:
        yield f"    assert stdout == {expected.rstrip()!r}"
