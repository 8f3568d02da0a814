"""Parts of sentences that no rule can see: their rules deny or escalate, whatever a model proposes later."""

from __future__ import annotations

from typing import Any

from peripety.errors import Severity
from peripety.policy.types import DiscardedScenario, ScenarioOrigin
from support.policy.models import (
    FINE,
    POLICY,
    RIGHT,
    SATISFIED,
    Ran,
    Script,
    below,
    blames,
    generated_scenario,
    ran,
    rule,
)

RATE = "Below /open/often at most 5 calls per hour are allowed."
TEXT = f"{POLICY} {RATE}"
LIMITED = {**rule("rate", "escalate", arguments=below("/open/often")), "principle": RATE}
ANSWER: dict[str, Any] = {
    "rules": [LIMITED, *RIGHT],
    "unexpressed": [{"sentence": RATE, "part": "at most 5 per hour", "rules": ["rate"]}],
}
OFTEN = generated_scenario("often", "allow", at="/open/often/x")
BY_HAND = generated_scenario("often", "allow", source=ScenarioOrigin.HANDWRITTEN, at="/open/often/x")


async def run(*patches: Any, answer: dict[str, Any] = ANSWER, **changed: Any) -> Ran:
    script = Script(
        rules=(answer,),
        scenarios=((*FINE, OFTEN),),
        judgements=(blames("often", "rule"), SATISFIED),
        patches=patches or ((),),
    )
    return await ran(script, constitution=TEXT, **changed)


async def test_a_policy_with_such_a_part_fails_before_a_scenario_is_written() -> None:
    done = await run(allow_partial=False)
    (found,) = done.failed.findings
    assert (found.code, found.severity) == ("SENTENCE_IN_PART", Severity.ERROR)
    assert "at most 5 per hour" in found.message
    assert len(done.model.requests) == 1


async def test_it_is_stored_in_part_and_a_scenario_that_opens_it_is_discarded() -> None:
    done = await run()
    assert "SENTENCE_IN_PART" in [one.code for one in done.compiled.findings]
    (thrown,) = {one.scenario.description: one for one in done.decided(DiscardedScenario)}.values()
    assert (thrown.scenario.description, thrown.rule) == ("often", "rate")


async def test_no_patch_opens_it() -> None:
    delete = [{"op": "delete", "rule_id": "rate"}]
    loosened = {**LIMITED, "then": "allow"}
    update = [{"op": "update", "rule_id": "rate", "rule": loosened}]
    bypass = [{"op": "add", "rule_id": "b", "rule": rule("b", "allow", arguments=below("/open/often/x"))}]
    for patch in (delete, update, bypass):
        done = await run(patch, handwritten=(BY_HAND,))
        assert done.failed.findings
        assert [one["id"] for one in done.rules] == ["rate", "open"]
        assert done.rules[0]["then"] == "escalate"


async def test_a_policy_whose_sentences_are_all_enforced_passes_the_strict_check() -> None:
    done = await ran(allow_partial=False)
    assert done.compiled.findings == ()
