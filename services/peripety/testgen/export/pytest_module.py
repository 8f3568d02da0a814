"""Export as a self-contained pytest module.

Tests of scenarios and policies run on the installed engine; tests of a command run that command. A test
that is not executable, or that detects nothing, is skipped with a reason, so that it never passes.
Untrusted text is embedded safely in the source.
"""

from __future__ import annotations

import json
import re
import textwrap
from typing import TYPE_CHECKING, Any

from peripety.testgen.subjects.command.subject import MIN_REDACTED_LENGTH, is_secret_name
from peripety.testgen.subjects.subject import SubjectKind
from peripety.testgen.types import TestStatus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.testgen.export.suite import ExportedOutcome, ExportedSubject, ExportedSuite
    from peripety.testgen.types import TestCase


_LINE_WIDTH = 95
_MAX_COMMENT_LENGTH = 600
_MAX_FUNCTION_NAME_LENGTH = 60


def to_one_line(text: str) -> str:
    """Return a text without line breaks and invisible characters."""
    return "".join(
        one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in " ".join(text.split())
    )


def comment_lines(text: str) -> list[str]:
    """Return the lines of a comment, without indentation; a long text is shortened."""
    shown = textwrap.shorten(to_one_line(text), _MAX_COMMENT_LENGTH, placeholder=" ...")
    return [f"# {line}" for line in textwrap.wrap(shown, _LINE_WIDTH)]


def to_json_literal(value: Any, indent: int) -> str:
    """Return a raw string literal with a value as JSON.

    JSON never contains three quotes in a row, because quotes inside strings are escaped.

    Args:
        value: the value.
        indent: spaces before each line.
    """
    written = _layout_json(value, _LINE_WIDTH - indent)
    # Invisible characters, and those that UTF-8 cannot encode, become JSON escapes.
    written = "".join(one if one.isprintable() or one == "\n" else json.dumps(one)[1:-1] for one in written)
    return f'r"""\n{textwrap.indent(written, " " * indent)}\n{" " * indent}"""'


def _layout_json(value: Any, width: int) -> str:
    """Return JSON with each value on one line if it fits, or else with its parts on separate lines."""
    line = json.dumps(value, ensure_ascii=False)
    if len(line) <= width or not value or not isinstance(value, dict | list):
        return line
    if isinstance(value, dict):
        heads = [f"{json.dumps(key, ensure_ascii=False)}: " for key in value]
        parts, (opened, closed) = [*value.values()], "{}"
    else:
        heads, parts, (opened, closed) = [""] * len(value), value, "[]"
    told = (head + _layout_json(part, width - 2 - len(head)) for head, part in zip(heads, parts, strict=True))
    inner = textwrap.indent(",\n".join(told), "  ")
    return f"{opened}\n{inner}\n{closed}"


def list_names(texts: list[str]) -> list[str]:
    """Return a unique test function name for each text."""
    made: dict[str, None] = {}
    for text in texts:
        base = (
            re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_").lower()[:_MAX_FUNCTION_NAME_LENGTH]
            or "unnamed"
        )
        name, number = f"test_{base}", 1
        while name in made:
            number += 1
            name = f"test_{base}_{number}"
        made[name] = None
    return [*made]


_WORTHLESS_CODES = frozenset({"STUB", "TAUTOLOGY"})
_SKIPPED_STATUSES = frozenset({TestStatus.UNSTABLE, TestStatus.NOT_EXECUTABLE})
_MAX_REASON_LENGTH = 2_000
_ENGINE_TEMPLATE = """\
# The subject of the tests. It can be replaced by another document of the same kind.
SUBJECT = checking.{kind}(
    {document}
)
"""
_COMMAND_TEMPLATE = '''\
ARGV = {argv!r}
DIRECTORY = {directory!r}  # copied for each test; None for an empty one
ENVIRONMENT = {environment!r}  # names of variables to pass on, if set
TIMEOUT_SECONDS = {timeout!r}


def run(place, arguments, stdin):
    """Run the command in a separate directory; return its exit code and standard output."""
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
_REDACTION_TEMPLATE = '''

def without_values(output):
    """Return the output with `$NAME` in place of values of variables, as in the tests."""
    held = {{os.environ[name]: name for name in ENVIRONMENT if name in os.environ}}
    hidden = [value for value in held if len(value) >= {shortest} or (value and held[value] in {secret!r})]
    if not hidden:
        return output
    hidden.sort(key=len, reverse=True)  # a longer one may hold a shorter one
    pattern = b"|".join(re.escape(os.fsencode(value)) for value in hidden)
    return re.sub(pattern, lambda found: b"$" + held[os.fsdecode(found[0])].encode(), output)
'''


def write_pytest(suite: ExportedSuite) -> bytes:
    """Return the module."""
    skipped = {test.test_id: _skip_reason(test, suite) for test in suite.tests}
    runs = suite.tested if suite.tested is not None and not all(skipped.values()) else None
    names = list_names([_function_base(test) for test in suite.tests])
    blocks = [
        "\n".join(_module_head(suite)),
        *_import_groups(runs, skips=any(skipped.values())),
        *([] if runs is None else [_subject_source(runs)]),
    ]
    head = "\n\n".join(block.rstrip("\n") for block in blocks)
    functions = [
        "\n".join(_function_lines(name, test, suite, skipped[test.test_id]))
        for name, test in zip(names, suite.tests, strict=True)
    ]
    return ("\n\n\n".join([head, *functions]) + "\n").encode(errors="backslashreplace")


def _module_head(suite: ExportedSuite) -> Iterator[str]:
    yield '"""Tests generated by peripety; see docs/how-to/generate-tests.md."""'
    yield ""
    yield f"# Run {to_one_line(suite.run_id)}, task:"
    yield from comment_lines(suite.order.description)


def _import_groups(tested: ExportedSubject | None, *, skips: bool) -> Iterator[str]:
    """Yield groups of imports, in order."""
    if tested is not None and tested.command is not None:
        names = ["os", *(["re"] if tested.command.environment else []), "shutil", "subprocess"]
        yield "\n".join(f"import {name}" for name in names)
    others = ["import pytest"] if skips else []
    if tested is not None and tested.document is not None:
        others.append("from peripety.testgen import checking")
    if others:
        yield "\n".join(others)


def _subject_source(tested: ExportedSubject) -> str:
    command = tested.command
    if command is None:
        document = to_json_literal(tested.document, 4)
        return _ENGINE_TEMPLATE.format(kind=tested.kind.value, document=document)
    names = [*command.environment]
    run = _COMMAND_TEMPLATE.format(
        argv=[*command.argv],
        directory=command.working_directory,
        environment=names,
        timeout=command.timeout_seconds,
        stdout="without_values(done.stdout)" if names else "done.stdout",
    )
    if not names:
        return run
    return run + _REDACTION_TEMPLATE.format(
        shortest=MIN_REDACTED_LENGTH,
        secret=[*filter(is_secret_name, names)],
    )


def _skip_reason(test: TestCase, suite: ExportedSuite) -> str:
    """Return the reason for skipping a test, or an empty text."""
    outcome = suite.outcomes.get(test.test_id)
    if suite.tested is None or test.body is None:
        return _describe_test("only described in words", test)
    if outcome is not None:
        for finding in outcome.findings:
            if finding.code in _WORTHLESS_CODES or outcome.status in _SKIPPED_STATUSES:
                return f"{finding.code}: {finding.message}"
    if suite.tested.kind is SubjectKind.COMMAND and not _has_expectation(test):
        return _describe_test("no expected output or exit code", test)
    return ""


def _describe_test(why: str, test: TestCase) -> str:
    expected = "" if test.expected_output is None else f"; expected: {test.expected_output}"
    return f"{why}: {test.input}{expected}"[:_MAX_REASON_LENGTH]


def _has_expectation(test: TestCase) -> bool:
    return test.expected_output is not None or (test.body or {}).get("exit_code") is not None


def _function_base(test: TestCase) -> str:
    """Return the name of a test: its id, prefixed with its category if the id does not contain it."""
    return test.test_id if test.test_id.startswith(test.category) else f"{test.category}_{test.test_id}"


def _function_lines(name: str, test: TestCase, suite: ExportedSuite, skipped: str) -> Iterator[str]:
    is_command = suite.tested is not None and suite.tested.kind is SubjectKind.COMMAND
    yield f"def {name}({'tmp_path' if is_command and not skipped else ''}):"
    for line in _test_comments(test, suite.outcomes.get(test.test_id)):
        yield f"    {line}"
    if skipped:
        yield f"    pytest.skip({skipped!r})"
    elif is_command:
        yield from _command_lines(test)
    else:
        yield f"    SUBJECT.check(\n        {to_json_literal(test.body, 8)}\n    )"


def _test_comments(test: TestCase, outcome: ExportedOutcome | None) -> Iterator[str]:
    """Yield comments about a test."""
    yield from comment_lines(test.reasoning)
    if test.source:
        yield from comment_lines(f"Source: {test.source}")
    elif test.body is not None:
        yield "# It describes what the subject does today."
    if outcome is not None and outcome.status is TestStatus.FAILED:
        yield from comment_lines(f"It failed in the run: {outcome.observed}")


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
