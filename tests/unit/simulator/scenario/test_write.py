from __future__ import annotations

from datetime import UTC, datetime
from textwrap import dedent

import pytest

from peripety.llmsim.script.files import ScriptBuilder, parse_script, to_toml, write_script
from peripety.llmsim.script.types import Script


def test_what_is_written_is_what_a_person_would_write() -> None:
    scenario = (
        ScriptBuilder(seed=3, clock="real", pace={"tokens_per_second": 100})
        .respond_to("login", "Username?", max_matches=1, model="m-*")
        .then('Password?\nIt is "secret".\n')
        .turn({"type": "regex", "pattern": r"^\d+$"}, failure={"type": "rate_limit", "retry_after": 2})
        .respond_to_any(
            {
                "text": "Two calls.",
                "tool_calls": [
                    {"tool": "read", "input": {"path": "a b.txt", "lines": [1, 2]}},
                    {"tool": "write", "input": {"text": None}},
                ],
            },
            tool_result={"type": "any"},
            message_index={"from": 1},
        )
        .default_response("?")
        .build()
    )
    written = write_script(scenario)
    assert written == dedent(
        '''\
        default_response = "?"
        pace = { tokens_per_second = 100.0 }
        seed = 3
        clock = "real"

        [[responses]]
        pattern = { type = "contains", text = "login", model = "m-*" }
        response = "Username?"
        max_matches = 1

        [[responses.turns]]
        expect = { type = "any" }
        response = """
        Password?
        It is "secret".
        """

        [[responses.turns]]
        expect = { type = "regex", pattern = '^\\d+$' }
        failure = { type = "rate_limit", retry_after = 2.0 }

        [[responses]]
        pattern = { type = "any", tool_result = { type = "any" }, message_index = { from = 1 } }

        [responses.response]
        text = "Two calls."
        tool_calls = [
            { tool = "read", input = { path = "a b.txt", lines = [1, 2] } },
            { tool = "write", input = { "$json" = '{"text":null}' } },
        ]
        ''',
    )
    assert parse_script(written) == scenario


def test_an_empty_scenario_is_an_empty_file() -> None:
    assert not write_script(Script())


def test_values_that_toml_does_not_have_are_refused() -> None:
    assert to_toml({"at": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)}) == "at = 2026-01-02T03:04:05+00:00\n"
    with pytest.raises(TypeError, match="TOML has no NoneType"):
        to_toml({"a": [None]})
