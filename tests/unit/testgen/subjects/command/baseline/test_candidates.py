from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from peripety.testgen.subjects.command.baseline.calls import (
    CandidateCall,
    CandidateCalls,
    CommandForm,
    Parameter,
    choose,
    find_commands,
    iterate_word_edits,
)
from peripety.testgen.subjects.command.baseline.values import SourceFunctions, find_values
from peripety.testgen.subjects.command.python_mutants import PythonModule
from peripety.testgen.subjects.command.python_program import ProgramInput, PythonCall, SurveyedCall
from peripety.testgen.subjects.command.subject import CommandSubject

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SOURCE = "def graded(value):\n    return value < 50\n\n\ndef other(value):\n    return value < 7000\n"


def candidate(name: str, *features: int) -> CandidateCall:
    result = SurveyedCall(0, b"same", {}, frozenset(features))
    return CandidateCall(ProgramInput((name,)), (), result=result)


def test_the_next_call_is_the_one_that_shows_most_that_is_new() -> None:
    calls = [candidate("a", 1), candidate("b", 1, 2, 3), candidate("c", 3, 4), candidate("d", 2, 3)]
    assert [*choose(calls)] == [1, 2]


def test_exceptions_of_one_kind_are_one_fact_and_outputs_are_not() -> None:
    def call(name: str, code: int, output: bytes) -> CandidateCall:
        given = ProgramInput(call=PythonCall("package", f"f({name!r})"))
        return CandidateCall(given, (), result=SurveyedCall(code, output, {}, frozenset()))

    errors = [call("a", 1, b"OSError: a"), call("b", 1, b"OSError: b"), call("c", 1, b"ValueError: c")]
    assert [*choose(errors)] == [0, 2]
    assert [*choose([call("a", 0, b"x: a"), call("b", 0, b"x: b")])] == [0, 1]
    commands = [replace(one, given=ProgramInput((str(index),))) for index, one in enumerate(errors)]
    assert [*choose(commands)] == [0, 1, 2]


def test_calls_without_a_result_are_not_chosen() -> None:
    assert [*choose([CandidateCall(ProgramInput(()), ())])] == []


def test_values_of_reached_functions_are_tried_in_each_place_and_with_options() -> None:
    tried: list[tuple[str, ...]] = []

    def survey(inputs: Sequence[ProgramInput]) -> list[SurveyedCall]:
        tried.extend(one.arguments for one in inputs)
        lines = {"p.py": frozenset({2})}
        return [SurveyedCall(0, b"", lines, frozenset({number})) for number, _ in enumerate(inputs)]

    number = Parameter("", is_flag=False, is_required=True, is_number=True, values=("1", "2"))
    flag = Parameter("--all", is_flag=True, is_required=False, is_number=False, values=())
    functions = SourceFunctions({"p.py": PythonModule("p.py", SOURCE.encode())})
    form = CommandForm(("grade",), (number,), (flag,))
    calls = CandidateCalls(
        [form], functions, find_values(functions, ()), {("grade",): [("33",)]}, survey
    ).find()
    assert tried[0] == ("grade", "33")
    assert {("grade", "49"), ("grade", "50"), ("grade", "51"), ("grade", "-50")} <= {*tried}
    assert ("grade", "7000") not in tried
    assert ("grade",) in tried
    assert any("--all" in arguments for arguments in tried)
    assert {one.given.arguments for one in calls} == {*tried}


def test_an_argument_like_an_option_is_separated_from_options() -> None:
    tried: list[tuple[str, ...]] = []

    def survey(inputs: Sequence[ProgramInput]) -> list[SurveyedCall]:
        tried.extend(one.arguments for one in inputs)
        return [SurveyedCall(0, b"", {}, frozenset()) for _ in inputs]

    text = Parameter("", is_flag=False, is_required=True, is_number=False, values=("-x", "-1"))
    CandidateCalls([CommandForm((), (text,))], SourceFunctions({}), (), {}, survey).find()
    assert ("--", "-x") in tried
    assert ("-1",) in tried


def test_a_choice_that_is_the_first_of_several_arguments_is_a_command() -> None:
    def argument(name: str, *choices: str) -> dict[str, object]:
        return {
            "flags": [], "name": name, "type": "str", "choices": choices, "is_flag": False,
            "is_required": True, "count": 1, "default": "",
        }  # fmt: skip

    parser = {"path": [], "is_group": False, "parameters": [argument("how", "up", "down"), argument("value")]}
    assert [form.path for form in find_commands([parser], (), ())] == [("up",), ("down",)]
    parser = {"path": [], "is_group": False, "parameters": [argument("how", "up", "down")]}
    (form,) = find_commands([parser], (), ())
    assert form.arguments[0].values == ("up", "down")


def test_files_of_the_directory_are_values_of_parameters_for_files() -> None:
    parameter = {
        "flags": ["-i", "--input"], "name": "input", "type": "FileType", "choices": [], "is_flag": False,
        "is_required": False, "count": 1, "default": "",
    }  # fmt: skip
    form, _ = find_commands([{"path": [], "is_group": False, "parameters": [parameter]}], (), ["data.csv"])
    first, *others = form.options[0].values
    assert (form.options[0].flag, first, others[-1]) == ("--input", "data.csv", "no-such-file")


def test_a_parameter_for_a_file_gets_files_and_the_values_of_the_sources_as_contents() -> None:
    tried: list[ProgramInput] = []

    def survey(inputs: Sequence[ProgramInput]) -> list[SurveyedCall]:
        tried.extend(inputs)
        lines = {"p.py": frozenset({2})}
        return [SurveyedCall(0, b"", lines, frozenset({number})) for number, _ in enumerate(inputs)]

    parser = {
        "path": [],
        "is_group": False,
        "parameters": [
            {
                "flags": [],
                "name": "filename",
                "type": "str",
                "choices": [],
                "is_flag": False,
                "is_required": True,
                "count": 1,
                "default": "",
            }
        ],
    }
    functions = SourceFunctions({"p.py": PythonModule("p.py", SOURCE.encode())})
    forms = find_commands([parser], [], ["own.cfg"])
    CandidateCalls(forms, functions, find_values(functions, ()), {}, survey).find()
    contents = {name: content for one in tried for name, content in one.files}
    assert {*contents} == {"input.txt", "input.json", "input.csv", "input.py", "empty.txt"}
    assert {("own.cfg",), ("no-such-file",), ("input.json",)} <= {one.arguments for one in tried}
    assert b"50\n" in {content for one in tried for _, content in one.files}
    assert ("50",) not in {one.arguments for one in tried}


def test_calls_that_a_survey_has_no_time_for_are_tried_at_the_end() -> None:
    tried: list[list[ProgramInput]] = []

    def survey(inputs: Sequence[ProgramInput]) -> list[SurveyedCall]:
        tried.append([*inputs])
        count = 3 if len(tried) == 3 else len(inputs)  # after usual calls, and those for unread arguments
        facts = [hash(one.arguments) for one in inputs[:count]]
        return [SurveyedCall(0, b"", {"p.py": frozenset({2})}, frozenset({fact})) for fact in facts]

    text = Parameter("", is_flag=False, is_required=True, is_number=False, values=("a", "b", "c"))
    functions = SourceFunctions({"p.py": PythonModule("p.py", SOURCE.encode())})
    calls = CandidateCalls([CommandForm((), (text, text))], functions, find_values(functions, ()), {}, survey)
    assert all(one.result is not None for one in calls.find())
    assert set(tried[2][3:]) <= {one for later in tried[3:] for one in later}
    assert ("50", "b") in {one.arguments for one in tried[3]}
    assert not {*tried[0], *tried[1], *tried[2][:3]}.intersection(
        *tried[3:]
    )  # what is known is not run again


def options(**changes: object) -> dict[str, object]:
    usual: dict[str, object] = {
        "flags": [],
        "name": "value",
        "type": "str",
        "choices": [],
        "is_flag": False,
        "is_required": False,
        "count": 1,
        "default": "",
    }
    return {**usual, **changes}


def calls_of(*parameters: dict[str, object], reads_input: bool = True) -> list[ProgramInput]:
    """Return the calls that are tried of a program whose lines depend on its input."""
    tried: list[ProgramInput] = []

    def survey(inputs: Sequence[ProgramInput]) -> list[SurveyedCall]:
        tried.extend(inputs)
        lines = {"p.py": frozenset({2})}
        facts = [hash((one.arguments, one.stdin if reads_input else b"")) for one in inputs]
        return [SurveyedCall(0, b"", lines, frozenset({fact})) for fact in facts]

    functions = SourceFunctions({"p.py": PythonModule("p.py", SOURCE.encode())})
    forms = find_commands([{"path": [], "is_group": False, "parameters": [*parameters]}], [], [])
    CandidateCalls(forms, functions, find_values(functions, ()), {}, survey).find()
    return tried


def test_any_number_of_values_is_several_ones() -> None:
    tried = calls_of(options(is_many=True))
    assert max(len(one.arguments) for one in tried) > 1


def test_a_program_without_required_arguments_may_read_its_input() -> None:
    contents = {one.stdin for one in calls_of(options()) if not one.arguments}
    assert {b"50\n", b"ab 50\n1 2.5\n"} <= contents
    contents = {one.stdin for one in calls_of(options(), reads_input=False) if not one.arguments}
    assert b"50\n" not in contents
    contents = {one.stdin for one in calls_of(options(is_required=True)) if not one.arguments}
    assert contents == {b""}


def test_values_of_the_sources_and_all_choices_are_tried_as_options() -> None:
    choices = [f"choice{number}" for number in range(12)]
    flags = options(flags=["--limit"]), options(flags=["--how"], choices=choices)
    arguments = [one.arguments for one in calls_of(options(is_required=True), *flags)]
    assert ("--limit", "50") in {one[:2] for one in arguments}
    assert {("--how", choice) for choice in choices} <= {one[:2] for one in arguments}
    assert ("--how", "50") not in {one[:2] for one in arguments}


def test_words_of_a_text_are_changed_one_at_a_time() -> None:
    edits = [*iterate_word_edits("M 10-ab", ["L", "M"])]
    assert {"L 10-ab", "m 10-ab", " 10-ab", "M 11-ab", "M 0-ab", "M 10.5-ab", "M 10--ab", "M 10ab"} <= {
        *edits
    }
    assert {"M 10-AB", "M 10-a", "M 10-", "M10-ab"} <= {*edits}
    assert "M 10-ab" not in edits
    assert [*iterate_word_edits("a", [])] == ["A", "aa"]
    assert "abcdefghijab@b.c" in {*iterate_word_edits("xy@b.c", [], ["abcdefghijab"])}
    assert {"-01", "+01"} <= {*iterate_word_edits("+01", []), *iterate_word_edits("-01", [])}


def test_patterns_that_a_program_builds_when_it_runs_give_values() -> None:
    tried: list[tuple[str, ...]] = []

    def survey(inputs: Sequence[ProgramInput]) -> list[SurveyedCall]:
        tried.extend(one.arguments for one in inputs)
        used = (("p.py", 2, r"^Q\d{3}$"),)
        lines = {"p.py": frozenset({2})}
        return [SurveyedCall(0, b"", lines, frozenset({number}), used) for number, _ in enumerate(inputs)]

    text = Parameter("", is_flag=False, is_required=True, is_number=False, values=("ab", "cd"))
    functions = SourceFunctions({"p.py": PythonModule("p.py", SOURCE.encode())})
    CandidateCalls([CommandForm((), (text,))], functions, [], {}, survey).find()
    assert {("Q111",), ("Q11",), ("Q1111",)} <= {*tried}


def test_a_command_without_arguments_may_read_its_standard_input() -> None:
    parameter = {
        "name": "shift",
        "flags": ["--shift"],
        "type": "float",
        "choices": [],
        "default": "",
        "count": 1,
    }
    parser = {
        "path": [],
        "parameters": [{**parameter, "is_flag": False, "is_required": False}],
        "is_group": False,
    }
    forms = find_commands([parser], (), ())
    assert [form.is_filter for form in forms] == [False, True]


def test_a_parameter_with_the_name_of_a_path_takes_other_texts_too() -> None:
    parameter = {"name": "path", "flags": [], "choices": [], "default": "", "count": 1}
    flags = {"is_flag": False, "is_required": True}
    parsers = [
        {"path": [], "parameters": [{**parameter, **flags, "type": kind}], "is_group": False}
        for kind in ("str", "Path")
    ]
    text, file = (form.arguments[0] for form in find_commands(parsers, (), ()) if form.arguments)
    assert text.is_file
    assert text.is_text
    assert {"ab", "input.txt"} <= {*text.values[:4]}
    assert file.is_file
    assert not file.is_text
    assert "ab" not in file.values


def test_an_option_with_several_values_is_given_all_of_them_and_arguments_around_them() -> None:
    limits = options(flags=["--range"], type="int", count=2)
    tried = [one.arguments for one in calls_of(options(is_many=True), limits)]
    assert {len(one.values) for one in find_commands([_parser(limits)], [], [])[0].options} == {12}
    given = [one for one in tried if "--range" in one]
    assert all(len(one) - one.index("--range") > 2 for one in given)
    assert ("--range", "2", "10", "2", "3", "1", "10", "11", "9") in tried


def _parser(*parameters: dict[str, object]) -> dict[str, object]:
    return {"path": [], "is_group": False, "parameters": [*parameters]}


def test_pairs_have_the_values_of_their_places_first() -> None:
    kinds = [
        Parameter("", is_flag=False, is_required=True, is_number=False, values=values)
        for values in (("2001-02-03", "2004-05-06"), ("P1M", "P2Y"))
    ]
    tried: list[tuple[str, ...]] = []

    def survey(inputs: Sequence[ProgramInput]) -> list[SurveyedCall]:
        tried.extend(one.arguments for one in inputs)
        return [SurveyedCall(0, b"", {}, frozenset({hash(one.arguments)})) for one in inputs]

    CandidateCalls([CommandForm((), tuple(kinds))], SourceFunctions({}), (), {}, survey).find()
    pairs = [("2001-02-03", "P2Y"), ("2004-05-06", "P1M"), ("P1M", "P2Y")]
    places = [tried.index(pair) for pair in pairs]
    assert max(places[:2]) < places[2]


def test_an_argument_that_a_command_does_not_read_is_not_varied() -> None:
    def tried_of(reads: slice) -> set[tuple[str, ...]]:
        tried: set[tuple[str, ...]] = set()

        def survey(inputs: Sequence[ProgramInput]) -> list[SurveyedCall]:
            tried.update(one.arguments for one in inputs)
            facts = [hash(one.arguments[reads]) for one in inputs]
            return [SurveyedCall(0, b"", {"p.py": frozenset({2})}, frozenset({fact})) for fact in facts]

        text = Parameter("", is_flag=False, is_required=True, is_number=False, values=("ab", "cd"))
        functions = SourceFunctions({"p.py": PythonModule("p.py", SOURCE.encode())})
        form = CommandForm((), (text, text))
        CandidateCalls([form], functions, find_values(functions, ()), {}, survey).find()
        return tried

    assert {"50"} == {one for arguments in tried_of(slice(1)) for one in arguments if one == "50"}
    assert all(arguments[1:2] != ("50",) for arguments in tried_of(slice(1)))
    assert any(arguments[1:2] == ("50",) for arguments in tried_of(slice(2)))


def test_each_expression_comes_before_a_second_value_of_any() -> None:
    def call(name: str, goal: str) -> CandidateCall:
        result = SurveyedCall(0, name.encode(), {}, frozenset({1}))
        return CandidateCall(ProgramInput((name,)), (), goal, result)

    goals = ["match 0 of a+", "match 1 of a+", "near miss 0 of a+", "match 0 of b+", "p.py:3 64", "p.py:3 65"]
    calls = [call(str(number), goal) for number, goal in enumerate(goals)]
    order = [*choose(calls)]
    assert order[0] == 0
    assert order[1:4] == [2, 3, 4]
    assert {*order} == {0, 1, 2, 3, 4, 5}


def test_a_fact_about_the_run_counts_more_than_a_goal() -> None:
    calls = [
        CandidateCall(ProgramInput((name,)), (), goal, SurveyedCall(0, output, {}, frozenset(facts)))
        for name, goal, output, facts in (
            ("a", "", b"one", {1}),
            ("b", "some goal", b"two", {1}),
            ("c", "", b"one", {1, 2}),
        )
    ]
    assert next(iter(choose(calls))) == 2


def test_an_expression_that_a_call_of_re_is_given_is_a_pattern(tmp_path: Path) -> None:
    text = "import re, sys\n\ndef joined(sign, value):\n    return re.sub('%s{2,}' % sign, sign, value)\n\n"
    (tmp_path / "p.py").write_text(f"{text}print(joined('-', sys.argv[1]), re.escape('x'))\n")
    program = CommandSubject([sys.executable, "p.py"], tmp_path)._program
    assert program is not None
    (call,) = program.survey_calls(program.find_interface(), [ProgramInput(("a--b",))], 20.0)
    assert call.patterns == (("p.py", 4, "-{2,}"),)
    assert call.stdout == b"a-b x\n"
