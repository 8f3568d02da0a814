"""The enum of error reasons, the code that raises them and the page that explains them agree."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from peripety.api.common.v1.error_reason_pb2 import ErrorReason
from peripety.errors import current_code, load_catalog
from support.repo.error_reasons import raised_reasons
from support.repo.repository import ROOT

PREFIX = "ERROR_REASON_"
PAGE = ROOT / "docs/reference/error-reasons.md"
CATALOGUED = {value.name.removeprefix(PREFIX) for value in ErrorReason.DESCRIPTOR.values} - {"UNSPECIFIED"}
FINDINGS = {code for kinds in load_catalog().values() for code in kinds}
ENGINE = ("peripety.engine.", "peripety.engine.")
# The core raises these itself; the code in front of it passes its reason on.
FROM_THE_CORE = {"ROLL_INVALID", "RUN_ENDED", "SNAPSHOT_INVALID", "UNKNOWN_ACTION"}
IN_STREAM_EVENTS = {
    *("BUDGET_EXHAUSTED", "MODEL_UNAVAILABLE", "NARRATOR_FAILED", "NARRATOR_TIMEOUT", "OUTCOME_INVALID"),
    *("NOT_UNDERSTOOD", "RUN_ENDED", "SERVER_SHUTTING_DOWN", "SESSION_DELETED", "TOO_SLOW"),
}


def raised() -> set[str]:
    """Return the reasons in the code, without codes of findings that the engine passes on."""
    return {
        reason
        for reason, modules in raised_reasons().items()
        if reason not in FINDINGS or not all(module.startswith(ENGINE) for module in modules)
    }


@pytest.mark.slow(reason="reads the syntax tree of every module")
def test_every_reason_in_the_code_is_in_the_enum_and_every_value_is_used() -> None:
    assert raised() | FROM_THE_CORE | IN_STREAM_EVENTS == CATALOGUED


@pytest.mark.parametrize("reason", sorted(FROM_THE_CORE | IN_STREAM_EVENTS))
def test_a_reason_outside_of_errors_is_in_the_code(reason: str) -> None:
    roots = (ROOT / "services/peripety", ROOT / "simcore/python/peripety")
    sources = (path for root in roots for path in root.rglob("*.py") if "api" not in path.parts)
    assert any(f'"{reason}"' in path.read_text(encoding="utf-8") for path in sources)


@pytest.mark.slow(reason="reads the syntax tree of every module")
def test_the_collector_sees_defaults_constants_and_helpers() -> None:
    found = raised_reasons()
    assert "peripety.errors" in found["NOT_FOUND"]
    assert {"ANSWER_INVALID", "PATCH_UNFIT", "PROVIDER_UNREACHABLE", "PHASE_NOT_REACHED"} <= found.keys()


def test_a_stored_reason_of_an_earlier_version_is_read_by_its_present_name() -> None:
    assert current_code("TURN_TAKEN_BACK") == "TURN_REWOUND"
    assert current_code("NOT_FOUND") == "NOT_FOUND"
    renamed = {
        *("BUDGET_USED_UP", "GOING_DOWN", "OUTPUT_TAKEN", "RISK_KEPT", "RUN_GOES_ON", "SEATS_ACT_TOGETHER"),
        *("STOPPING", "TIME_IS_UP", "TOOLS_NOT_TAKEN", "TURNS_USED_UP", "TURN_TAKEN", "TURN_TAKEN_BACK"),
        "TURN_TOO_EARLY",
    }
    assert {current_code(code) for code in renamed} <= CATALOGUED | FINDINGS
    assert not renamed & (CATALOGUED | FINDINGS)


def test_the_page_explains_every_reason() -> None:
    headings = re.findall(r"^### `(\w+)`$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert sorted(headings) == sorted(CATALOGUED)


def test_the_page_is_up_to_date() -> None:
    script = ROOT / "protos/error_reasons.py"
    subprocess.run([sys.executable, script, "--check"], check=True)
