"""Output of commands: results to standard output, progress and errors to standard error.

Text is made safe for a terminal, and is coloured only on one. An error is one paragraph and an exit code,
without a traceback.
"""

from __future__ import annotations

import json
import re
import sys
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from typing import IO, TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from peripety.api.common.v1 import common_pb2 as common
from peripety.errors import FieldViolation, InvalidArgumentError, SpecError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from peripety.api.gateway.v1 import gateway_pb2 as pb
    from peripety.errors import Finding, PeripetyError


_TABLE_WIDTH = 1_000


@cache
def result_console() -> Console:
    """Return the console of standard output. Lines are never wrapped, because the reader may be a program."""
    return Console(highlight=False, markup=False, emoji=False, soft_wrap=True)


@cache
def table_console() -> Console:
    """Return the console of standard output for tables, which may be wider than the terminal."""
    return Console(width=_TABLE_WIDTH, highlight=False, markup=False, emoji=False, soft_wrap=True)


def start_table(columns: Iterable[str], numbers: Collection[str]) -> Table:
    """Return a table without rows; columns of numbers are aligned to the right."""
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="right" if column in numbers else "left", no_wrap=True)
    return table


@cache
def error_console() -> Console:
    """Return the console of standard error."""
    return Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)


def person_console() -> Console:
    """Return the console for output that is only useful to a person: standard error if it is a terminal."""
    return Console(stderr=True, quiet=not sys.stderr.isatty(), highlight=False, markup=False, emoji=False)


@contextmanager
def progress_bar(doing: str, total: float | None) -> Iterator[Callable[[float], None]]:
    """Show a progress bar on standard error if it is a terminal; yield a function that advances it."""
    with Progress(console=error_console(), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task(doing, total=total)
        yield lambda done: bar.advance(task, done)


def require_writable(out: Path | None) -> None:
    """Check that a file can be created, before the work starts.

    Raises:
        BadParameter: the path is a folder, or its folder does not exist.
    """
    if out is not None and (out.is_dir() or not out.parent.is_dir()):
        raise typer.BadParameter(f"cannot write {out}: choose a file in an existing folder")


def save_file(content: bytes, out: Path) -> None:
    """Write a file.

    Raises:
        BadParameter: the file cannot be written.
    """
    try:
        out.write_bytes(content)
    except OSError as error:
        raise typer.BadParameter(f"cannot write {out}: {error.strerror}") from None


@contextmanager
def open_output(out: Path | None) -> Iterator[IO[bytes]]:
    """Open a file for incremental output; standard output if none is given.

    Raises:
        BadParameter: the file cannot be written.
    """
    if out is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        with out.open("wb") as file:
            yield file
    except OSError as error:
        raise typer.BadParameter(f"cannot write {out}: {error.strerror}") from None


def write_lines(lines: Sequence[str], *, style: str) -> None:
    """Write lines to standard output; on a terminal, style the first one."""
    console = result_console()
    if console.is_terminal:
        console.print(lines[0], style=style)
        for line in lines[1:]:
            console.print(line)
    else:
        # Without a terminal there is nothing to style, and the console is slower than many a check.
        sys.stdout.write("\n".join([*lines, ""]))
        sys.stdout.flush()


def write_json(value: Any) -> None:
    """Write a value to standard output as one line of JSON, in UTF-8 for any locale."""
    write_bytes(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def write_bytes(line: bytes) -> None:
    """Write a line of bytes to standard output unchanged."""
    sys.stdout.flush()
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


MAX_INPUT_BYTES = 1024 * 1024

_PRINTED_CONTROLS = "\t\n"
_CONTROL = {
    code: "\N{REPLACEMENT CHARACTER}"
    for code in [*range(32), *range(127, 160)]
    if chr(code) not in _PRINTED_CONTROLS
}


def printable(text: str) -> str:
    """Replace control characters: untrusted text must not control the terminal."""
    return text.translate(_CONTROL)


def one_line(text: str) -> str:
    """Replace control characters and line breaks: untrusted text must not imitate other output lines."""
    return " ".join(printable(text).splitlines())


def read_text_argument(given: str, name: str) -> str:
    """Return the text of an argument: itself, or standard input for `-`.

    Args:
        given: the argument.
        name: its name on the command line.

    Raises:
        InvalidArgumentError: the text is not UTF-8, or exceeds the size limit.
    """
    content = (
        sys.stdin.buffer.read(MAX_INPUT_BYTES + 1) if given == "-" else given.encode(errors="surrogateescape")
    )
    if len(content) > MAX_INPUT_BYTES:
        raise _bad_text_error(name, "is longer than 1 MiB; the limit is 100 KiB")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise _bad_text_error(
            name,
            f"is not UTF-8 (byte {error.start + 1}); save or convert it as UTF-8",
        ) from None


def _bad_text_error(name: str, reason: str) -> InvalidArgumentError:
    violation = FieldViolation(name, reason)
    return InvalidArgumentError(f"{name} {reason}", code="BAD_TEXT", violations=[violation])


EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130
_MAX_FINDINGS = 20


# The field of a request that a message of a service begins with, such as `session_id: unknown session`.
_FIELD = re.compile(r"^([a-z]+(?:[_.][a-z_.0-9]+)+)(:?) ")
# The group of commands that lists the existing objects, by the reason of an error about an unknown one.
_LISTS = {
    "UNKNOWN_SESSION": "sessions",
    "UNKNOWN_RUN": "runs",
    "SCENARIO_NOT_FOUND": "scenarios",
    "POLICY_NOT_FOUND": "policy",
}
_OWN_LISTS = frozenset({"agent", "testgen"})  # of runs
_SCRIPT_INVALID = "SCENARIO_INVALID"  # its fields are keys of a file
_PLAIN_FIELD = re.compile(r"[a-z][a-z0-9_.\[\]]*")


def explain_error(error: PeripetyError) -> int:
    """Print an error to standard error and return the exit code. Fields of requests are named by words."""
    console = error_console()
    # `session_id: unknown session` names the field again; `call.arguments is not JSON` does not.
    message = _FIELD.sub(lambda found: "" if found[2] else f"{_name_field(found[1])} ", error.message)
    console.print(f"error: {printable(message)} ({error.code})", style="red")
    if isinstance(error, SpecError):
        details: Iterable[str] = finding_lines(error.findings, lines=shown_lines())
    else:
        name_field = str if error.code == _SCRIPT_INVALID else _name_field
        details = [
            f"  {printable(name_field(v.field))}: {printable(v.reason)}".replace("  : ", "  ")
            for v in error.violations
            if v.reason not in error.message
        ]
    for line in details:
        console.print(line)
    if error.code in _LISTS:
        group = "".join(sys.argv[1:2])
        console.print(f"  see: peripety {group if group in _OWN_LISTS else _LISTS[error.code]} list")
    if error.retry_after is not None:
        console.print(f"  retry in {error.retry_after:g} s")
    return (
        EXIT_USAGE
        if isinstance(error, InvalidArgumentError) and not isinstance(error, SpecError)
        else EXIT_FAILED
    )


def _name_field(field: str) -> str:
    """Return the words of the last segment of a field; options, variables and JSON Pointers as they are."""
    is_plain = _PLAIN_FIELD.fullmatch(field) is not None
    return field.rpartition(".")[2].replace("_", " ") if is_plain else field


SHOWS_EVERYTHING = "This shows everything, including what players are not meant to know."
"""First line of what describes a whole scenario."""


def finding_lines(
    findings: Sequence[Finding],
    total: int | None = None,
    *,
    indent: str = "  ",
    lines: Callable[[str], int | None] | None = None,
    remedies: Mapping[str, str] | None = None,
) -> list[str]:
    """Format findings as lines, with one remedy per kind. A long list is truncated, with a note.

    Args:
        findings: the findings, or the first of them.
        total: the number of all findings, if it is larger.
        indent: the prefix of each line.
        lines: returns the line of the file for the JSON Pointer of a finding.
        remedies: remedies by code that replace those of the catalogue.
    """
    written = []
    told = set()
    for found in findings[:_MAX_FINDINGS]:
        number = lines(found.path) if lines is not None else None
        place = f"{f'line {number} ' if number else ''}{one_line(found.path) or '/'}"
        written.append(f"{indent}{found.severity.value} {found.code} {place}: {one_line(found.message)}")
        remedy = (remedies or {}).get(found.code, found.remedy)
        if remedy and found.code not in told:
            written.append(f"{indent}  fix: {remedy}")
        told.add(found.code)
    left = max(total or 0, len(findings)) - min(len(findings), _MAX_FINDINGS)
    return written if left <= 0 else [*written, f"{indent}... and {left} more"]


_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")
_shown: list[Callable[[str], int | None]] = []


def show_lines_of(document: bytes) -> None:
    """Let errors of this process about a specification name the lines of this document."""
    _shown[:] = [document_lines(document)]


def shown_lines() -> Callable[[str], int | None] | None:
    """Return the lines of the document that was read last; None without one."""
    return _shown[0] if _shown else None


def document_lines(document: bytes) -> Callable[[str], int | None]:
    """Return a function from a JSON Pointer to the line of a document, from 1.

    Where the pointer leads nowhere, the line is that of what is around it; None if the document is one line.
    """
    numbers: dict[str, int] = {}

    def find(pointer: str) -> int | None:
        if not numbers:
            numbers.update(_index_lines(document.decode(errors="replace")))
        while pointer and pointer not in numbers:
            pointer = pointer.rpartition("/")[0]
        return numbers.get(pointer) if len(set(numbers.values())) > 1 else None

    return find


def _index_lines(text: str) -> dict[str, int]:
    """Return the line of every value of a document, by its pointer, up to the first error."""
    numbers: dict[str, int] = {}
    containers: list[tuple[str, bool]] = []  # each with its pointer; True for an array
    positions: list[int | str | None] = []
    line, read = 1, 0
    for token in _TOKEN.finditer(text):
        line += text.count("\n", read, token.start())
        read = token.start()
        word = token.group()
        if word in {"}", "]"}:
            del containers[-1:], positions[-1:]
        elif word == ",":
            if containers:
                last = positions[-1]
                positions[-1] = last + 1 if isinstance(last, int) else None
        elif word == ":":
            continue
        elif containers and positions[-1] is None:
            positions[-1] = _segment(word)
            numbers[f"{containers[-1][0]}/{positions[-1]}"] = line
        else:
            pointer = f"{containers[-1][0]}/{positions[-1]}" if containers else ""
            numbers.setdefault(pointer, line)
            if word in {"{", "["}:
                containers.append((pointer, word == "["))
                positions.append(0 if word == "[" else None)
    return numbers


def _segment(key: str) -> str:
    """Return a key in quotes as a segment of a pointer."""
    text = _ESCAPE.sub(_unescape, key[1:-1])
    return text.replace("~", "~0").replace("/", "~1")


def _unescape(found: re.Match[str]) -> str:
    code = found[1]
    if code.startswith("u") and len(code) > 1:
        return chr(int(code[1:], 16))
    return {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}.get(code, code)


def finding_fields(finding: Finding) -> dict[str, str]:
    """Return a finding as JSON fields, the same for every command."""
    return {
        "code": finding.code,
        "path": finding.path,
        "message": finding.message,
        "severity": finding.severity.value,
        "remedy": finding.remedy,
    }


_PICO = 10**12
_MARGIN_SECONDS = 60.0
_LONGEST_CALL_SECONDS = 86_400.0


def make_budget(
    *,
    calls: int = 0,
    tokens: int = 0,
    dollars: float = 0.0,
    seconds: float = 0.0,
) -> common.Budget:
    """Return a budget; 0 means no limit."""
    written = common.Budget(max_calls=calls, max_tokens=tokens)
    if dollars:
        written.max_cost.currency_code = "USD"
        written.max_cost.pico_units = round(dollars * _PICO)
    if seconds:
        written.max_time.FromTimedelta(timedelta(seconds=seconds))
    return written


def deadline_of(budget: common.Budget) -> float:
    """Return the deadline of a call in seconds: behind the budget's own time limit, or a day without one."""
    limit = budget.max_time.ToTimedelta().total_seconds() if budget.HasField("max_time") else 0.0
    return limit + _MARGIN_SECONDS if limit else _LONGEST_CALL_SECONDS


def format_usage(completion: pb.Completion) -> str:
    """Format the usage of an answer: tokens, prompt cache result and forecast, cost."""
    usage = completion.usage
    words = [f"{usage.input_tokens:,} in"]
    if usage.cache_read_tokens or usage.cache_write_tokens or completion.cache_plan.breakpoints:
        plan = completion.cache_plan
        words[0] += (
            f" ({usage.cache_read_tokens:,} cached, {usage.cache_write_tokens:,} written;"
            f" expected {plan.predicted_read_tokens:,}, {plan.predicted_write_tokens:,})"
        )
    words.append(_format_output(usage))
    if completion.HasField("cost"):
        words.append(_format_cost(completion.cost, completion.cache_savings))
    words.append(f"{completion.provider}/{completion.model}")
    if completion.from_response_cache:
        words.append("stored answer")
    return " · ".join(words)


def format_model_usage(used: common.ModelUsage) -> str:
    """Format the usage of several calls, with the share of cached input."""
    tokens = used.tokens
    share = tokens.cache_read_tokens / max(tokens.input_tokens, 1)
    words = [
        f"{used.calls:,} call{'' if used.calls == 1 else 's'}",
        f"{tokens.input_tokens:,} in ({tokens.cache_read_tokens:,} cached, {share:.0%})",
        _format_output(tokens),
    ]
    if used.HasField("cost"):
        words.append(_format_cost(used.cost, used.cache_savings))
    return " · ".join(words)


def format_dollars(pico_units: int) -> str:
    """Format an amount in pico-dollars (10^-12), with more decimal places for small amounts."""
    amount = abs(pico_units)
    places = 2 if amount >= _PICO or not amount else 6
    return f"{'-' if pico_units < 0 else ''}${amount / _PICO:,.{places}f}"


def _format_output(usage: common.TokenUsage) -> str:
    reasoning = f" ({usage.reasoning_tokens:,} reasoning)" if usage.reasoning_tokens else ""
    return f"{usage.output_tokens:,} out{reasoning}"


def _format_cost(cost: common.Money, savings: common.Money) -> str:
    saved = f" (cache saved {format_dollars(savings.pico_units)})" if savings.pico_units else ""
    return f"{format_dollars(cost.pico_units)}{saved}"
