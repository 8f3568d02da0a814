"""The loop: answers are put together, parts that are right stay, and what was mended stays mended."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from peripety.core.concurrency import closing
from peripety.errors import InvalidArgumentError, Severity, UnavailableError
from peripety.gateway.conversations.conversation import Conversation
from peripety.gateway.types.message import ChatMessage
from peripety.gateway.types.response import Completed, Completion, StopReason
from peripety.scenario.generation.draft import SpecDraft
from peripety.scenario.generation.evaluation import SpecEvaluator
from peripety.scenario.generation.loop import RepairLoop
from peripety.scenario.generation.model_client import ModelClient
from peripety.scenario.types import (
    DraftProposed,
    DraftRevised,
    GenerationLimits,
    NumbersAdjusted,
    Progress,
    ValidationFailed,
    ValidationLevel,
)
from support.engine.specs import action, chance, siege, spec
from support.scenario.batches import WORKERS
from support.session.sessions import TOKENS, ScriptedGateway

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from peripety.gateway.types.request import GenerateRequest
    from peripety.gateway.types.response import GatewayEvent


SEED = 5
FIXED = {"seed": SEED}


@dataclass
class Wrote:
    """What came of some answers."""

    events: list[Any]
    writer: RepairLoop
    manuscript: SpecDraft
    gateway: ScriptedGateway

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def codes(self) -> list[set[str]]:
        """The codes of the findings after each answer."""
        return [{finding.code for finding in found.findings} for found in self.of(ValidationFailed)]

    def remarks(self) -> list[str]:
        return [event.message for event in self.of(Progress)]

    def told(self, question: int) -> Any:
        """What the model was told as a question, from 0."""
        return json.loads(self.gateway.requests[question].messages[-1].text)

    def ids(self, section: str = "actions") -> list[str]:
        return [entry["id"] for entry in self.manuscript.document[section]]


async def wrote(
    *answers: Any,
    level: ValidationLevel = ValidationLevel.STATIC,
    document: dict[str, Any] | None = None,
    gateway: ScriptedGateway | None = None,
    limit: int = 4,
) -> Wrote:
    """What comes of a model's answers."""
    asked = gateway or ScriptedGateway()
    asked.answers = [
        answer if isinstance(answer, str | Exception) else json.dumps(answer) for answer in answers
    ]
    manuscript = SpecDraft(SpecEvaluator(level, WORKERS), document or {}, FIXED)
    writer = RepairLoop(ModelClient(GenerationLimits(limit), SEED), Conversation(asked, "system"), manuscript)
    async with closing(writer.run({"description": "a"})) as events:
        return Wrote([event async for event in events], writer, manuscript, asked)


def bad(name: str, path: str = "state.zz", **more: Any) -> dict[str, Any]:
    """An action that names a path that is not there."""
    return {**action(name, [{"op": "inc", "path": path, "value": 1}]), **more}


async def test_parts_that_are_missing_are_supplied_by_the_next_answer() -> None:
    whole = spec()
    half = {key: whole[key] for key in ("spec_version", "id", "name", "seed", "state")}
    done = await wrote(half, {key: whole[key] for key in whole if key not in half})
    assert done.writer.is_done
    assert done.codes() == [{"MISSING_KEY"}]
    assert done.manuscript.document == {**whole, **FIXED}


async def test_only_the_parts_that_are_wrong_are_replaced() -> None:
    first = spec(actions=[action("one"), bad("two")])
    answer = {"actions": [{**action("one"), "name": "Changed"}, action("two"), action("three")]}
    done = await wrote(first, answer)
    assert done.writer.is_done
    assert done.manuscript.document["actions"] == [action("one"), action("two"), action("three")]
    (rewritten,) = done.of(DraftRevised)
    assert {edit.path for edit in rewritten.edits} == {"/actions/1", "/actions/2"}
    assert "ignored 1 change of parts without findings: /actions/one" in done.remarks()


async def test_the_model_is_told_what_was_left_out() -> None:
    first = spec(actions=[action("one"), bad("two")])
    answer = {"actions": [{**action("one"), "name": "Changed"}, bad("two", "state.yy")]}
    done = await wrote(first, answer, {"actions": [action("two")]})
    assert done.writer.is_done
    assert done.told(2)["left_out"] == ["/actions/one"]
    assert [finding["part"] for finding in done.told(2)["findings"]] == ["/actions/two"]


async def test_the_conversation_only_grows_and_system_text_and_schema_stay() -> None:
    done = await wrote(spec(actions=[bad("one")]), {"name": "Other"}, {"actions": [action("one")]})
    requests = done.gateway.requests
    assert len(requests) == 3
    for earlier, later in pairwise(requests):
        assert later.messages[: len(earlier.messages)] == earlier.messages
        assert (later.system, later.schema) == (earlier.system, earlier.schema)
    assert requests[0].schema is not None
    assert requests[0].schema.advisory


async def test_what_was_mended_and_comes_back_is_undone_part_by_part() -> None:
    loose, bound = ({"params": {"p": {"type": "string", **more}}} for more in ({}, {"enum": ["a"]}))
    first = spec(actions=[bad("one"), action("two"), {**action("three"), **loose}])
    mended = {"actions": [{**action("one"), **loose}]}
    again = {"actions": [bad("one"), {**action("three"), **bound}]}
    done = await wrote(first, mended, again, {"actions": [action("one")]})
    assert done.codes() == [{"UNKNOWN_PATH", "BAD_PARAM"}, {"BAD_PARAM"}, {"BAD_PARAM"}]
    assert done.told(3)["undone"] == ["/actions/one"]
    assert "enum" in done.manuscript.document["actions"][2]["params"]["p"]
    assert done.writer.is_done


async def test_what_comes_back_only_in_play_undoes_the_whole_answer() -> None:
    unwinnable, as_bad = (
        {"win_conditions": [{"id": "won", "when": {">": [{"var": "state.a"}, most]}}]} for most in (99, 98)
    )
    winnable = {"win_conditions": [{"id": "won", "when": {">": [{"var": "turn"}, 99]}}]}
    first = {**chance(0.2, min_fail_rate=0.9), **unwinnable}
    without = {"removed": ["/win_conditions"]}
    done = await wrote(first, without, as_bad, winnable, level=ValidationLevel.DRY_RUN)
    assert done.codes()[:3] == [
        {"UNREACHABLE_WIN", "IMPOSSIBLE_LOSS"},
        {"TOO_EASY", "REPAIR_OUT_OF_REACH", "IMPOSSIBLE_LOSS"},
        {"TOO_EASY", "REPAIR_OUT_OF_REACH", "IMPOSSIBLE_LOSS"},
    ]
    assert "win_conditions" not in done.manuscript.document
    assert done.told(3)["undone"] == [""]
    back = done.of(DraftRevised)[2]
    assert [edit.path for edit in back.edits] == ["/win_conditions/0"]
    assert back.spent is None


async def test_no_finding_comes_back_once_it_was_mended() -> None:
    swapped = [
        spec(actions=[bad("one"), action("two")]),
        {"actions": [action("one"), bad("two")]},
        {"actions": [bad("one"), action("two")]},
        {"actions": [bad("one"), bad("two")]},
    ]
    done = await wrote(*swapped)
    seen: set[tuple[str, str]] = set()
    gone: set[tuple[str, str]] = set()
    for found in done.of(ValidationFailed):
        now = {(finding.code, finding.path.split("/")[2]) for finding in found.findings}
        assert not now & gone
        gone |= seen - now
        seen |= now


async def test_findings_of_play_open_the_whole_document() -> None:
    likelier = chance(0.5)
    changed = {key: likelier[key] for key in ("random_events", "negativity_budget", "horizon")}
    done = await wrote(chance(0.2, min_fail_rate=0.9), changed, level=ValidationLevel.DRY_RUN)
    assert done.writer.is_done
    assert done.manuscript.document == {**likelier, **FIXED}


async def test_numbers_that_were_moved_are_part_of_what_the_model_goes_on_from() -> None:
    missed = {**siege(min_fail_rate=0.65), "notes": "none"}
    done = await wrote(missed, {"name": "Other"}, level=ValidationLevel.DRY_RUN)
    assert done.writer.is_done
    assert done.codes() == [{"UNKNOWN_KEY"}]
    (event,) = done.of(NumbersAdjusted)
    assert done.manuscript.evaluation is not None
    assert done.manuscript.evaluation.edits == event.edits
    moved = {edit["path"]: edit["after"] for edit in done.told(1)["moved"]}
    decay = done.manuscript.document["negativity_budget"]["decay_per_turn"]["state.a"]
    assert moved["/negativity_budget/decay_per_turn/state.a"] == decay != 0.5
    assert done.manuscript.document["name"] == "Other"


async def test_what_is_no_part_is_asked_about_and_then_a_warning_does_not_stand_in_the_way() -> None:
    noted = {**spec(), "notes": "none"}
    done = await wrote(noted, noted, limit=2)
    assert done.codes() == [{"UNKNOWN_KEY"}]
    assert done.writer.is_done
    assert [(f.code, f.severity) for f in done.writer.findings] == [("UNKNOWN_KEY", Severity.WARNING)]
    assert "notes" not in done.manuscript.document


async def test_a_document_that_passed_is_kept_although_no_further_answer_is_of_use() -> None:
    failures = (InvalidArgumentError("too long", code="CONTEXT_LENGTH_EXCEEDED"), UnavailableError("away"))
    for answer in ("Let me think.", *failures):
        done = await wrote({**spec(), "notes": "none"}, answer)
        assert done.writer.is_done
        assert done.manuscript.document == {**spec(), **FIXED}


async def test_a_document_that_passed_is_gone_back_to_where_later_answers_only_spoil_it() -> None:
    noted = {**spec(), "notes": "none"}
    done = await wrote(noted, {"actions": [bad("new")]}, {"actions": [bad("new", "state.yy")]}, limit=3)
    assert done.codes() == [{"UNKNOWN_KEY"}, {"UNKNOWN_PATH"}, {"UNKNOWN_PATH"}]
    assert done.writer.is_done
    assert done.manuscript.document == {**spec(), **FIXED}
    assert [(f.code, f.severity) for f in done.writer.findings] == [("UNKNOWN_KEY", Severity.WARNING)]
    assert json.loads(done.of(DraftRevised)[-1].document) == {**spec(), **FIXED}


async def test_why_no_answer_came_is_among_what_is_wrong_at_last() -> None:
    too_long = InvalidArgumentError("too long", code="CONTEXT_LENGTH_EXCEEDED")
    done = await wrote(too_long)
    assert [finding.code for finding in done.writer.findings] == ["CONTEXT_LENGTH_EXCEEDED"]
    done = await wrote(spec(actions=[bad("one")]), too_long)
    assert [finding.code for finding in done.writer.findings] == ["UNKNOWN_PATH", "CONTEXT_LENGTH_EXCEEDED"]


async def test_a_slip_that_was_mended_is_left_out_when_it_is_made_again() -> None:
    first = {**spec(actions=[bad("one"), bad("two")]), "notes": "none"}
    again = {"actions": [action("one")], "notes": "none"}
    done = await wrote(first, {"actions": [bad("one", "state.yy")]}, again, {"actions": [action("two")]})
    assert done.codes() == [{"UNKNOWN_KEY", "UNKNOWN_PATH"}, {"UNKNOWN_PATH"}, {"UNKNOWN_PATH"}]
    assert done.told(3)["left_out"] == ["/notes"]
    assert done.writer.is_done


async def test_an_answer_that_changes_nothing_is_not_played_again() -> None:
    noted = {**chance(0.5), "notes": "none"}
    done = await wrote(noted, {"name": chance(0.5)["name"]}, level=ValidationLevel.DRY_RUN)
    assert done.writer.is_done
    assert sum("simulating runs" in remark for remark in done.remarks()) == 1


async def test_what_is_undone_down_to_a_document_that_passed_is_not_played_again() -> None:
    good = chance(0.5)
    wrong = {"actions": [bad("wait")]}
    first = {**good, **wrong}
    done = await wrote(
        first,
        {"actions": good["actions"], "notes": 1},
        {**wrong, "memo": 1},
        level=ValidationLevel.DRY_RUN,
    )
    assert done.codes() == [
        {"UNKNOWN_PATH"},
        {"UNKNOWN_KEY", "IMPOSSIBLE_LOSS"},
        {"UNKNOWN_KEY", "IMPOSSIBLE_LOSS"},
    ]
    assert done.manuscript.document["actions"] == good["actions"]
    assert sum("simulating runs" in remark for remark in done.remarks()) == 1


class Cut(ScriptedGateway):
    """A model whose first answer reaches its length limit."""

    async def _ask(self, request: GenerateRequest) -> AsyncGenerator[GatewayEvent, None]:
        answer = str(self.answers[min(len(self.requests), len(self.answers) - 1)])
        stop = StopReason.END if self.requests else StopReason.LENGTH
        self.requests.append(request)
        message = ChatMessage.assistant(answer)
        yield Completed(Completion(message, None, TOKENS, stop, "scripted", "fake", cost=1, cache_savings=0))


async def test_of_an_answer_that_was_cut_off_whole_parts_are_kept() -> None:
    whole = spec(actions=[action("one"), action("two")])
    text = json.dumps({key: whole[key] for key in sorted(whole, key=lambda key: key == "actions")})
    begun = text[: text.index('"two"')]
    done = await wrote(begun, {"actions": [action("two")]}, gateway=Cut())
    assert done.codes() == [{"TRUNCATED"}]
    assert done.writer.is_done
    assert done.ids() == ["one", "two"]


async def test_a_document_that_is_there_is_changed_and_never_told_as_a_draft() -> None:
    done = await wrote({"actions": [action("new")]}, document=spec())
    assert done.writer.is_done
    assert done.of(DraftProposed) == []
    (rewritten,) = done.of(DraftRevised)
    assert rewritten.attempt == 1
    assert "new" in done.ids()


async def test_an_answer_without_json_changes_nothing() -> None:
    done = await wrote("Let me think.", {"name": "Other"}, document=spec())
    assert done.codes() == [{"NOT_JSON"}]
    assert done.writer.is_done
    assert done.manuscript.document["name"] == "Other"


async def test_after_an_answer_without_json_the_draft_before_it_is_still_wrong() -> None:
    done = await wrote(spec(actions=[bad("one")]), "Let me think.", {"actions": [action("one")]})
    assert done.codes() == [{"UNKNOWN_PATH"}, {"NOT_JSON", "UNKNOWN_PATH"}]
    assert [finding["code"] for finding in done.told(2)["findings"]] == ["NOT_JSON", "UNKNOWN_PATH"]
    assert done.writer.is_done


async def test_two_vain_answers_in_a_row_are_enough() -> None:
    done = await wrote("a", [], "c")
    assert len(done.gateway.requests) == 2
    assert not done.writer.is_done
    assert done.manuscript.evaluation is None
