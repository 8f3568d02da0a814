from __future__ import annotations

import ast
import os
import sys
from typing import TYPE_CHECKING, Any

import pytest

from peripety.core.mutation_testing import MutantOutcome
from peripety.errors import InvalidArgumentError
from peripety.testgen.subjects.command.python_mutants import PythonModule, change_pattern
from peripety.testgen.subjects.command.sandbox import MAX_PROGRAM_MUTANTS, order_mutants
from peripety.testgen.subjects.command.subject import CommandSubject
from peripety.testgen.types import DraftTest, TestCase, TestStatus

if TYPE_CHECKING:
    from pathlib import Path


PROGRAM = '''\
"""Says how a number compares."""
import sys


def compared(number: int) -> str:
    if number < 10:
        return "less"
    return "more"


if __name__ == "__main__":
    print(compared(int(sys.argv[1])))
'''


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "compare.py").write_text(PROGRAM)
    return tmp_path


@pytest.fixture
def subject(directory: Path) -> CommandSubject:
    return CommandSubject([sys.executable, "-S", "compare.py"], directory)


def case(
    *arguments: str,
    expected: str | None = None,
    exit_code: int | None = None,
    stdin: str = "",
) -> TestCase:
    body: dict[str, Any] = {"arguments": [*arguments], "stdin": stdin, "exit_code": exit_code}
    return TestCase("t", "boundary", "i", expected, body=body)


def shell(script: str, **limits: Any) -> CommandSubject:
    return CommandSubject(["sh", "-c", script], **limits)


def test_output_and_exit_code_are_held_against_what_is_expected(subject: CommandSubject) -> None:
    assert subject.run(case("3", expected="less", exit_code=0)).status is TestStatus.PASSED
    wrong = subject.run(case("3", expected="more", exit_code=1))
    assert wrong.status is TestStatus.FAILED
    assert [finding.code for finding in wrong.findings] == ["EXPECTATION_NOT_MET"] * 2
    assert wrong.observed == "exit code 0\nstdout: less"


def test_a_run_covers_the_lines_that_it_executes(subject: CommandSubject) -> None:
    assert {target.path for target in subject.targets} >= {"/compare.py/6", "/compare.py/7", "/compare.py/8"}
    covered = subject.run(case("3", expected="less")).covered
    assert "line:/compare.py/7" in covered
    assert "line:/compare.py/8" not in covered


def test_a_test_at_the_border_kills_what_one_far_from_it_does_not(subject: CommandSubject) -> None:
    mutants = {mutant.mutant_id for mutant in subject.mutants}
    far, near = (subject.kills(case(given, expected="more"), mutants) for given in ("90", "10"))
    assert far < near
    assert {mutant.outcome for mutant in subject.mutants} == {MutantOutcome.SURVIVED}
    assert "change_comparison:6:7:0" in near - far


def test_a_mistake_in_a_later_line_of_a_statement_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text("SIZES = [\n    1,\n    2,\n    3,\n]\nprint(sum(SIZES))\n")
    subject = CommandSubject([sys.executable, "p.py"], tmp_path)
    everything = [mutant.mutant_id for mutant in subject.mutants]
    assert "shift_number:3:4:0" in subject.kills(case(expected="6"), everything)


def test_a_mutant_that_compiles_to_the_same_code_is_equivalent(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text("def f():\n    'doc'\n    return 1\n    return 2\nprint(f())\n")
    subject = CommandSubject([sys.executable, "p.py"], tmp_path)
    same = subject.equivalent([mutant.mutant_id for mutant in subject.mutants])
    assert "drop_result:4:4:0" in same
    assert "drop_result:3:4:0" not in same


def test_what_is_written_to_standard_error_is_not_changed_since_no_test_looks_at_it() -> None:
    source = b"""\
import sys
print("a", file=sys.stderr)
sys.stderr.write("b")
print("c", file=sys.stdout)
"""
    module = PythonModule("p.py", source)
    assert {module.mutant(one).path for one in module.mutant_ids} == {"/p.py/4"}


def test_each_run_finds_the_directory_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "seen").write_text("0")
    subject = CommandSubject(["sh", "-c", "cat seen; echo 1 > seen; ls"], tmp_path)
    for _ in range(2):
        assert subject.run(case(expected="0seen")).status is TestStatus.PASSED
    assert (tmp_path / "seen").read_text() == "0"


@pytest.mark.parametrize("is_link", [True, False], ids=["by_link", "by_whole_path"])
def test_a_program_that_is_called_outside_of_the_copy_stays_as_it_is(
    directory: Path,
    *,
    is_link: bool,
) -> None:
    program, link = directory / "compare.py", directory / "link.py"
    link.symlink_to(program)
    subject = CommandSubject([sys.executable, "-S", "link.py" if is_link else str(program)], directory)
    test = case("3", expected="less", exit_code=0)
    assert subject.run(test).status is TestStatus.PASSED
    assert "drop_result:7:8:0" in subject.kills(test, [mutant.mutant_id for mutant in subject.mutants])
    assert program.read_text() == PROGRAM


def test_a_command_that_does_not_end_is_ended_with_all_that_it_started() -> None:
    ran = shell("sleep 600 & sleep 600", timeout_seconds=0.3).run(case(exit_code=0))
    assert ran.status is TestStatus.FAILED
    assert [finding.code for finding in ran.findings] == ["TIMEOUT"]


def test_a_command_has_no_network() -> None:
    asked = "import socket; socket.create_connection(('127.0.0.1', 1))"
    ran = CommandSubject([sys.executable, "-c", asked]).run(case(exit_code=1))
    assert "unreachable" in ran.observed


def test_a_command_gets_no_more_memory_than_it_may_have() -> None:
    subject = CommandSubject([sys.executable, "-c", "x = bytearray(2**30)"], memory_bytes=2**28)
    assert "MemoryError" in subject.run(case(exit_code=1)).observed


def test_a_command_has_no_more_processes_than_it_may_have() -> None:
    asked = "import resource; print(*resource.getrlimit(resource.RLIMIT_NPROC))"
    ran = CommandSubject([sys.executable, "-c", asked]).run(case(expected="256 256"))
    assert ran.status is TestStatus.PASSED


def test_a_command_sees_no_variable_that_it_was_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY_OF_THE_SERVER", "canary")
    ran = shell("env", environment={"GIVEN": "yes"}).run(case(exit_code=0))
    assert "GIVEN=yes" in ran.observed
    assert "canary" not in ran.observed
    assert "yes" not in str(shell("env", environment={"GIVEN": "yes"}).material)


def test_a_command_that_is_not_there_is_not_executable() -> None:
    ran = CommandSubject(["no-such-program"]).run(case(exit_code=0))
    assert ran.status is TestStatus.NOT_EXECUTABLE
    assert "cannot be started" in ran.findings[0].message


def test_a_file_that_is_no_program_is_not_executable(tmp_path: Path) -> None:
    (tmp_path / "words").write_text("words")
    subject = CommandSubject(["./words"], tmp_path)
    assert subject.run(case(exit_code=126)).status is TestStatus.NOT_EXECUTABLE


def test_nothing_is_expected_of_a_command_that_cannot_be_started(tmp_path: Path) -> None:
    (tmp_path / "words").write_text("words")
    for program in ("no-such-program", "./words"):
        assert [*CommandSubject([program], tmp_path).baseline_tests()] == []


def test_a_program_that_says_where_it_failed_is_stable(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text("print(1)\nraise ValueError\n")
    subject = CommandSubject([sys.executable, "p.py"], tmp_path)
    one, other = (subject.run(case(exit_code=1)) for _ in range(2))
    assert 'File "./p.py", line 2' in one.observed
    assert one == other


def test_two_runs_of_a_stable_command_leave_the_same_trace() -> None:
    assert len({shell("echo a").run(case(expected="a")).trace for _ in range(2)}) == 1
    assert len({shell("echo $$; date +%N").run(case(exit_code=0)).trace for _ in range(2)}) == 2


def test_a_test_that_expects_nothing_is_a_stub(subject: CommandSubject) -> None:
    assert [finding.code for finding in subject.soundness(case("3"))] == ["STUB"]
    assert subject.soundness(case("3", exit_code=0)) == ()
    assert subject.soundness(case("3", expected="")) == ()


def test_the_same_input_is_the_same_whatever_is_expected(subject: CommandSubject) -> None:
    one, other = case("3", exit_code=0).body, case("3", exit_code=1).body
    assert one is not None
    assert other is not None
    assert subject.same_input(one) == subject.same_input(other)


def test_an_argument_that_no_process_takes_is_a_problem(subject: CommandSubject) -> None:
    (finding,) = subject.problems({"arguments": ["a", "b\0"], "stdin": "", "exit_code": None})
    assert finding.path == "/arguments/1"
    (finding,) = subject.problems({"arguments": ["x" * 70_000], "stdin": "", "exit_code": None})
    assert finding.code == "TOO_MANY_ARGUMENTS"


@pytest.mark.slow(reason="calls a program some hundred times")
def test_the_floor_expects_what_the_command_does_now(subject: CommandSubject) -> None:
    for draft in subject.baseline_tests():
        test = TestCase(draft.name, draft.category or "", draft.input, draft.expected_output, body=draft.body)
        assert subject.run(test).status is TestStatus.PASSED
        assert subject.soundness(test) == ()


def test_a_program_in_another_language_has_nothing_to_measure_by() -> None:
    subject = shell("echo a")
    assert (subject.targets, subject.mutants) == ((), ())
    assert subject.kills(case(expected="a"), ["x"]) == frozenset()


def test_a_directory_that_cannot_be_copied_for_each_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="does not exist"):
        CommandSubject(["true"], tmp_path / "gone")
    with (tmp_path / "large").open("wb") as file:
        file.truncate(17 * 1024 * 1024)
    with pytest.raises(InvalidArgumentError, match="copied for each run"):
        CommandSubject(["true"], tmp_path)


def test_a_directory_with_what_is_no_file_is_refused_before_anything_is_run(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(PermissionError, match="'pipe' cannot be read"):
        CommandSubject(["true"], tmp_path)


def test_of_a_long_program_a_sample_is_taken_that_its_text_decides(tmp_path: Path) -> None:
    for name in ("p", "q"):
        text = "".join(f"{name}{number} = {number} + 1\n" for number in range(100))
        (tmp_path / f"{name}.py").write_text(f"import q\n{text}" if name == "p" else text)
    one, other = (CommandSubject([sys.executable, "p.py"], tmp_path).mutants for _ in range(2))
    assert len(one) == MAX_PROGRAM_MUTANTS
    assert one == other
    assert {mutant.path.split("/")[1] for mutant in one} == {"p.py", "q.py"}


def test_each_function_and_each_line_has_a_mutant_before_any_has_two() -> None:
    lines = [f"{name}:{line}:{number}" for name, line in ("a2", "a3", "b6", "b7") for number in range(9)]
    texts = [f"change_text:b:9:{number}" for number in range(2)]
    places = {one: ("p.py", ord(one[0]), int(one.split(":")[1])) for one in lines}
    places |= {one: ("p.py", ord("b"), 7) for one in texts}
    order = order_mutants(places)
    assert {*order} == places.keys()
    assert {places[one][1] for one in order[:2]} == {ord("a"), ord("b")}
    assert len({places[one] for one in order[:4]}) == 4
    assert len({places[one] for one in order[4:8]}) == 4
    assert {*order[-2:]} == {*texts}


def test_beyond_a_sample_there_are_further_mutants(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text("".join(f"p{number} = {number} + 1\n" for number in range(100)))
    subject = CommandSubject([sys.executable, "p.py"], tmp_path)
    known = {one.mutant_id for one in subject.mutants}
    assert len({one.path for one in subject.mutants}) == 100
    further = {one.mutant_id for one in subject.further_mutants(len(known), 50)}
    assert len(further) == 50
    assert not further & known
    assert not subject.further_mutants(10_000, 50)


def test_the_text_of_a_mutant_is_written_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    written = []

    def unparse(tree: ast.AST) -> str:
        written.extend([tree] if isinstance(tree, ast.Module) else [])
        return "a program"

    source = b"".join(b"a%d = %d + 1\n" % (number, number) for number in range(50))
    monkeypatch.setattr(ast, "unparse", unparse)
    program = PythonModule("p.py", source)
    some = program.mutant_ids[0]
    before = len(written)
    assert before < 2
    assert program.source_of(some) == b"a program"
    assert len(written) == before + 1


def test_the_target_of_a_mutant_is_the_statement_around_it() -> None:
    source = b"""\
def limited(
    value=1,
):
    if value > (
        2
    ):
        return [
            value,
            3,
        ]
"""
    program = PythonModule("p.py", source)
    places = {(mutant.path, mutant.target) for mutant in map(program.mutant, program.mutant_ids)}
    assert places >= {("/p.py/2", "/p.py/1"), ("/p.py/5", "/p.py/4"), ("/p.py/9", "/p.py/7")}
    assert {target for _, target in places} <= {f"/p.py/{line}" for line in program.lines}


def test_two_changes_at_the_same_place_are_two_mutants() -> None:
    program = PythonModule("p.py", b"print(3 + 2 - 1)\n")
    changed = {program.source_of(one) for one in program.mutant_ids if "arithmetic" in one}
    assert changed == {b"print(3 + 2 + 1)", b"print(3 - 2 - 1)"}
    assert len({*program.mutant_ids}) == len(program.mutant_ids)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (r"^a+$", ["a+$", "^a*$", "^a+"]),
        (r"\d{1,3}", [r"\D{1,3}", r"\d{0,3}", r"\d{2,3}", r"\d{1,4}"]),
        (r"[^\]a-f]{2,}?", [r"[^a-f]{2,}?", r"[^\]]{2,}?", r"[^\]a-f]{1,}?", r"[^\]a-f]{3,}?"]),
        (r"(?!x)(?P<a>y*?)", ["(?=x)(?P<a>y*?)", "(?!x)(?P<a>y+?)"]),
        (r"(?:\.\w)?", [r"(?:\.\W)?", r"(?:\.\w)"]),
        ("^[", ["["]),  # a part of a pattern
        ("(?<=a)b", ["(?<!a)b"]),
        *((text, []) for text in ("", "two words", "really? [a/b]", "usage: [-h] FILE+", "%d of %s", "a^b")),
    ],
)
def test_a_regular_expression_has_near_misses(pattern: str, expected: list[str]) -> None:
    assert [*change_pattern(pattern)] == expected


def test_a_near_miss_of_a_regular_expression_is_detected_by_a_test_at_its_limit(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text("import re, sys\nprint(bool(re.fullmatch(r'(?:a){2}-?', sys.argv[1])))\n")
    subject = CommandSubject([sys.executable, "p.py"], tmp_path)
    near = {one.mutant_id for one in subject.mutants if one.operator == "change_pattern"}
    assert len(near) == 3
    far, least, whole = (subject.kills(case(text, expected=shown), near) for text, shown in _PATTERN_RUNS)
    assert (len(far), len(least), len(whole)) == (0, 1, 1)
    assert len(least | whole) == 2


_PATTERN_RUNS = (("b", "False"), ("a", "False"), ("aa", "True"))


def test_excerpts_are_the_functions_around_the_places_that_fit(tmp_path: Path) -> None:
    lines = [
        "import sys\x0c",
        *(f"A{number} = {number}" for number in range(40)),
        "def f():",
        "    return 1",
        "",
    ]
    long = ["def g():", *(f"    x{number} = '{'y' * 60}'" for number in range(150)), "    return 2"]
    (tmp_path / "p.py").write_text("\n".join([*lines, *long, "print(f())"]))
    subject = CommandSubject([sys.executable, "p.py"], tmp_path)
    shown = subject.excerpts(["/p.py/43", "/p.py/42", "/p.py/100", "/other.py/1"])
    assert [(one["file"], one["line"], len(one["text"].splitlines())) for one in shown] == [
        ("p.py", 42, 2),
        ("p.py", 88, 25),
    ]
    assert shown[0]["text"] == "def f():\n    return 1"
    everything = subject.excerpts([target.path for target in subject.targets])
    assert 8_000 < sum(len(one["text"]) for one in everything) <= 12_000
    assert subject.excerpts([]) == shell("echo a").excerpts(["/p.py/1"]) == []


def test_a_program_that_cannot_be_written_out_again_has_lines_and_no_mutants() -> None:
    for value in (b" + ".join([b"'a'"] * 1_000), b"0x" + b"f" * 5_000):
        program = PythonModule("p.py", b"print(" + value + b")\n")
        assert (program.lines, program.mutant_ids) == ((1,), ())


def test_the_lines_of_a_program_are_those_that_its_language_counts() -> None:
    program = PythonModule("p.py", b"a = 1\n\x0c\nb = '\xe2\x80\xa8'\r\nc = 3\n")
    assert [program.line_text(number)[:1] for number in program.lines] == ["a", "b", "c"]


def test_a_baseline_test_expects_no_address_and_nothing_about_this_machine() -> None:
    release = os.uname().release
    with_address = shell("echo '<Tool object at 0x7f238d4c9e90>'")
    of_machine = shell(f"echo 'kernel {release}'; exit 3")
    assert [*with_address.baseline_tests()] == []
    drafts = [*of_machine.baseline_tests()]
    assert [(one.expected_output, (one.body or {})["exit_code"]) for one in drafts] == [(None, 3)] * 3


@pytest.mark.parametrize(
    ("statement", "is_expected"),
    [
        ("print(undefined)", False),
        ("{}['key']", False),
        ("None.strip()", False),
        ("int('x')", True),
        ("raise KeyError('key')", True),
        ("print('\\0')", False),
        ("import sys; sys.stdout.buffer.write(bytes([255]))", False),
        ("print('\\x1b[1mtext\\x1b[0m')", True),
    ],
)
def test_neither_a_defect_nor_an_unreadable_output_is_expected(
    statement: str, is_expected: bool, tmp_path: Path
) -> None:
    (tmp_path / "p.py").write_text(f"{statement}\n")
    subject = CommandSubject([sys.executable, "-S", "p.py"], tmp_path)
    draft = DraftTest("run", "[]", body={"arguments": [], "stdin": "", "exit_code": None})
    assert bool([*subject._described(draft)]) is is_expected


def test_an_output_that_nobody_reads_is_not_expected() -> None:
    draft = DraftTest("run", "[]", body={"arguments": [], "stdin": "", "exit_code": None})
    (described,) = shell("printf '%01000d' 0")._described(draft)
    assert described.expected_output is None
    assert (described.body or {})["exit_code"] == 0
    (short,) = shell("printf '%0100d' 0")._described(draft)
    assert short.expected_output == "0" * 100


def test_mutants_leave_out_what_only_readers_and_type_checkers_read() -> None:
    source = b"""
from typing import TYPE_CHECKING, Optional, TypeAlias, TypeVar
__all__ = ["a"]
__version__ = "1.0"
__all__ += ["b"]
__all__.append("c")
T = TypeVar("T", bound="str")
Name: TypeAlias = "str"
Maybe = Optional["str"]
if TYPE_CHECKING:
    LIMIT = 1
try:
    __author__ = "a"
except ImportError:
    pass
LOG.info("a %d", 1)
self.logger.warning("a")
"""
    assert PythonModule("p.py", source).mutant_ids == ()
    read = b'__version__ = "1.0"\nprint(__version__)\nclass A:\n    __all__ = "a"\n'
    lines = {one.split(":")[1] for one in PythonModule("p.py", read).mutant_ids}
    assert lines == {"1", "2", "4"}
    choices = b'Name: TypeAlias = Literal["a", "b"]\nCHOICES = get_args(Name)\n'
    assert PythonModule("p.py", choices).mutant_ids
