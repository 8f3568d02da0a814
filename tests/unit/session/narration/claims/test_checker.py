"""Claims of prose are compared with the record of the turn: contradictions are found, true stories pass."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from peripety.engine import Change, Status
from peripety.session.events import (
    ActionResolved,
    DialogueSpoken,
    NarrativeChunk,
    NarrativeRetracted,
    encode_value,
)
from peripety.session.narration.claims.checker import ClaimChecker, ClaimFilter, is_checkable
from peripety.session.narration.claims.english import (
    SentenceBuffer,
    parse_numeral,
    split_sentences,
    verb_table,
)
from peripety.session.narration.claims.record import TurnFacts
from peripety.session.state_facts import read_facts
from peripety.session.types import NarratorStats, Resolution
from support.engine.specs import action, document, never
from support.session.claims import (
    SEALED_NARRATORS,
    SEALED_TURNS,
    cases,
    corpus,
    honest_turns,
    more_narrators,
    paraphrases,
)
from support.session.sessions import outcome, played, scene_of

CAUGHT, FALSE_ALARMS = 0.85, 0.01
# The least weights of what rules find let 2 of 136 more pass than before, for fewer false alarms.
CAUGHT_PARAPHRASES = 0.88
# By the author of the last changes, before them: similes, speech, negation, memories and what only might be.
COUNTER_FALSE_ALARMS = 0.0
# Of the narrations of whole turns, by the author of the checks, before their false alarms were read 3.6 %.
HONEST_ALARMS = 0.0
# Of ten narrators, by the author of the last changes. Before them 45.3 % were caught. Of 381 ordinary true
# turns 1.8 % were withheld when they were new, and of 427 true sentences that look like claims 8 %.
CAUGHT_NARRATORS, NARRATORS_FALSE_ALARMS = 0.62, 0.0
CAUGHT_LITERARY, LITERARY_FALSE_ALARMS = 0.485, 0.0
# By an author who knew neither the checks nor the other texts; sealed until the checks were done.
CAUGHT_UNSEEN, UNSEEN_FALSE_ALARMS = 0.37, 0.007
# By further authors: false and true sentences, or whole honest turns. The sealed ones were never read. Since
# rules need a least weight, fewer contradictions are caught, and half as many honest turns are withheld.
CAUGHT_MORE = {
    "first": ((1, 2), 0.355, 0.0),
    "situations of others": ((5, 6, 7, 8), 0.54, 0.003),
    "own situations": ((11, 12, 13), 0.49, 0.0),
    "sealed": (SEALED_NARRATORS, 0.405, 0.01),
    "honest turns": ((15, 16, *range(19, 28), 29, 30, 32, 33), 0.0, 0.014),
    "sealed turns": (SEALED_TURNS, 0.0, 0.041),
}
# By the author of the checks, before the checks were changed. The false alarms of the sealed half were read
# later.
CAUGHT_TUNING, TUNING_FALSE_ALARMS = 0.71, 0.0
CAUGHT_SEALED, SEALED_FALSE_ALARMS = 0.63, 0.007


def checker_of(kind: str = "amount") -> ClaimChecker:
    """Return a checker of the first situation: seven supplies, once nine, and four people."""
    return ClaimChecker(next(case.facts for case in cases("honest") if case.kind == kind))


def rate(name: str) -> float:
    checkers: dict[int, ClaimChecker] = {}
    found: Counter[bool] = Counter()
    for case in cases(name):
        if not case.is_tuning:
            checker = checkers.get(id(case.facts)) or ClaimChecker(case.facts)
            checkers[id(case.facts)] = checker
            found[bool(checker.check(case.prose))] += 1
    return found[True] / found.total()


def test_sealed_contradictions_are_caught() -> None:
    assert rate("contradictions") >= CAUGHT


def test_sealed_honest_sentences_pass() -> None:
    assert rate("honest") <= FALSE_ALARMS


def test_a_sign_of_the_program_in_a_text_of_the_scenario_may_be_repeated() -> None:
    facts = next(case.facts for case in cases("honest"))
    own = replace(facts, spec={**facts.spec, "opening": "The sign says **closed** today."})
    assert [one.kind for one in ClaimChecker(facts).check("The sign says **closed** today.")] == ["words"]
    assert ClaimChecker(own).check("The sign says **closed** today.") == []


ENDINGS = (
    "'You tried,' she says, and goes. You know the way, and how long you have. You have said it before all.",
    "The lamp goes out. Beta leaves the hall.",
)


@pytest.mark.parametrize(
    ("prose", "is_claim"),
    [
        ("She says nothing.", False),
        ("He goes back to the window, and she goes to the door.", False),
        ("You go down the stairs.", False),
        ("You say it aloud.", False),
        ("'And the lamp, you know, is where I hit my shoulder.'", False),
        ("You know the way.", True),
        ("Beta leaves the hall.", True),
    ],
)
def test_only_what_a_message_tells_of_its_ending_is_an_ending(prose: str, is_claim: bool) -> None:
    facts = next(case.facts for case in cases("honest"))
    losses = [{"id": f"end_{at}", "when": {"<": [1, 0]}, "message": text} for at, text in enumerate(ENDINGS)]
    checker = ClaimChecker(replace(facts, spec={**facts.spec, "loss_conditions": losses}))
    assert [one.kind for one in checker.check(prose)] == ["ending"] * is_claim


def test_who_makes_a_statement_in_a_turn_may_be_where_the_player_is() -> None:
    facts = next(case.facts for case in cases("honest"))
    statements = {"claim": {"by": "gamma", "text": "Never.", "true": True}}
    prose, line = "Gamma sits down beside you.", {"entity_id": "gamma", "utterance": "Never."}
    asked = replace(facts, spec={**facts.spec, "statements": statements})
    assert [one.kind for one in ClaimChecker(asked).check(prose, [line])] == ["presence", "presence"]
    made = Change("state.statements.claim", "set", None, "Never.", "action:open_gate")
    assert ClaimChecker(replace(asked, changes=[*facts.changes, made])).check(prose, [line]) == []
    call = ActionResolved("open_gate", {"who": "gamma"}, accepted=True, reasons=(), changes=(), log=())
    assert ClaimChecker(replace(asked, actions=[*facts.actions, call])).check(prose, [line]) == []


def test_a_verb_of_any_turn_in_a_description_is_no_deed() -> None:
    facts = next(case.facts for case in cases("honest"))
    meet = {**action("meet", []), "name": "Hold an open meeting", "description": "Say the same words to all."}
    checker = ClaimChecker(replace(facts, spec={**facts.spec, "actions": [*facts.spec["actions"], meet]}))
    assert checker.find_likely("You say the word, and hold out the pen.") == []
    assert [one.kind for one in checker.check("You hold the meeting at noon.")] == ["action"]


def test_what_the_reached_ending_tells_is_not_the_claim_of_another_ending() -> None:
    facts = next(case.facts for case in cases("honest"))
    won, lost = (
        "Both sides have closed it, and know what they closed.",
        "Both sides have closed it in the dark.",
    )
    spec = {
        **facts.spec,
        "loss_conditions": [{"id": "lost", "when": {"<": [1, 0]}, "message": lost}],
        "win_conditions": [{"id": "won", "when": {"<": [1, 0]}, "message": won}],
    }
    checker = ClaimChecker(replace(facts, spec=spec, status=Status("won", "won", won)))
    assert checker.check(won) == []
    assert checker.check("By evening both sides have closed it.") == []
    assert [one.kind for one in checker.check(lost)] == ["ending"]


def test_an_ending_that_befalls_the_player_is_no_act_upon_oneself() -> None:
    facts = next(case.facts for case in cases("honest"))
    caught = {"id": "caught", "when": {"<": [1, 0]}}
    checker = ClaimChecker(replace(facts, spec={**facts.spec, "loss_conditions": [caught]}))
    assert checker.check("You catch yourself listening for the rain.") == []
    assert [one.kind for one in checker.check("They have caught you.")] == ["ending"]


def test_an_action_that_answers_a_question_has_no_part_of_the_question_as_its_object() -> None:
    facts = next(case.facts for case in cases("honest"))
    name = "Find out what leads the others to the hidden key"
    spec = {**facts.spec, "actions": [*facts.spec["actions"], {**action("settle", []), "name": name}]}
    assert ClaimChecker(replace(facts, spec=spec)).check("You have brought the hidden key.") == []


def test_the_narrator_may_repeat_a_text_that_the_audience_has_been_given() -> None:
    facts = next(case.facts for case in cases("honest") if case.kind == "amount")
    told = "Beta says that only four supplies are left, and draws them on a napkin."
    given = replace(facts, texts=[told])
    repeated = "Only four supplies are left, and draws them."
    assert ClaimChecker(facts).check(repeated) != []
    assert ClaimChecker(given).check(repeated) == []
    assert ClaimChecker(given).check("There are only four supplies.") != []


@pytest.mark.parametrize(
    "prose",
    [
        "Gamma wipes the table.",
        "Gamma laughs, and goes on.",
        "One more hour like this and you lose.",
        "Here ends the floor and begins the mud.",
        "You had once seen Delta dance.",
        "You dream for a moment with open eyes: Delta comes in and sits down.",
        "In the west room you would at least be able to sit.",
        "Beta does not wake.",
        "It was over, and nobody spoke.",
        "There are nine supplies of his own in it.",
    ],
)
def test_only_what_is_certain_is_withheld(prose: str) -> None:
    assert checker_of().check(prose) == []


@pytest.mark.parametrize(
    ("prose", "kind"),
    [
        ("They take Beta off.", "presence"),
        ("Beta looks up from the south yard.", "presence"),
        ("Gamma watches from the west room. His hand comes up and waves at you.", "presence"),
        ("You order them to repair the signal.", "action"),
        ("Nine supplies stand along the wall.", "amount"),
        ("You have dropped the seal.", "possession"),
        ("They have shot Beta.", "life"),
    ],
)
def test_what_is_only_likely_is_found_and_not_withheld(prose: str, kind: str) -> None:
    checker = checker_of()
    assert checker.check(prose) == []
    assert [one.kind for one in checker.find_likely(prose)] == [kind]


@pytest.mark.parametrize(
    ("prose", "kind"),
    [
        ("The marker was under Beta's coat.", "possession"),
        ("The seal is burned to ash.", "possession"),
        ("They have hanged Beta's friend, and they bury Beta.", "life"),
        ("You keep the gate shut and do nothing to it.", "action"),
        ("There is not a single supply in the box.", "amount"),
        ("The supplies are all but gone.", "amount"),
        ("You have used up every last supply.", "amount"),
        ("Not a supply has been touched.", "amount"),
        ("The pressure has never been lower.", "amount"),
        ("There are sixteen supplies now, and you sit down.", "amount"),
        ("Beta has stopped breathing.", "life"),
    ],
)
def test_new_wordings_of_certain_claims_are_withheld(prose: str, kind: str) -> None:
    assert kind in [one.kind for one in checker_of().check(prose)]


@pytest.mark.parametrize(
    "prose",
    [
        "In the beginning there were nine supplies.",
        "You do not repair the signal.",
        "Gamma is in the west room.",
        "You think of Delta, who always laughed.",
        "Beta takes the badge off and puts it on again.",
        "They would have taken Beta off.",
    ],
)
def test_nothing_is_likely_in_honest_prose(prose: str) -> None:
    checker = checker_of()
    assert checker.check(prose) == checker.find_likely(prose) == []


def test_an_action_may_take_the_player_to_a_place_and_back() -> None:
    facts = next(case.facts for case in cases("honest") if case.kind == "amount")
    rule = action("visit") | {"name": "Look into the west room"}
    tried = ActionResolved("visit", {}, accepted=True, reasons=(), changes=(), log=())
    spec = {**facts.spec, "actions": [*facts.spec["actions"], rule]}
    told = "You walk into the west room."
    assert ClaimChecker(facts).check(told) != []
    assert ClaimChecker(replace(facts, spec=spec, actions=[*facts.actions, tried])).check(told) == []


def test_a_regular_past_is_read_beside_an_irregular_one() -> None:
    assert {"burned", "burnt", "backed"} <= verb_table().keys()


def test_turns_of_an_honest_narrator_pass() -> None:
    turns = honest_turns()
    assert sum(bool(ClaimChecker(facts).check(text)) for facts, text in turns) <= HONEST_ALARMS * len(turns)


def test_other_honest_prose_passes() -> None:
    assert rate("counter") <= COUNTER_FALSE_ALARMS


def test_freer_wordings_are_caught_and_true_ones_pass() -> None:
    checker = checker_of()
    told = paraphrases("false")
    assert sum(bool(checker.check(prose)) for prose in told) >= CAUGHT_PARAPHRASES * len(told)
    assert [prose for prose in paraphrases("true") if checker.check(prose)] == []


@pytest.mark.slow(reason="reads a thousand texts")
@pytest.mark.parametrize(
    ("name", "least_caught", "most_alarms"),
    [
        ("literary", CAUGHT_LITERARY, LITERARY_FALSE_ALARMS),
        ("unseen", CAUGHT_UNSEEN, UNSEEN_FALSE_ALARMS),
        ("scenes_tuning", CAUGHT_TUNING, TUNING_FALSE_ALARMS),
        ("scenes_sealed", CAUGHT_SEALED, SEALED_FALSE_ALARMS),
        ("narrators", CAUGHT_NARRATORS, NARRATORS_FALSE_ALARMS),
    ],
)
def test_the_documented_share_of_prose_by_other_authors_is_caught(
    name: str, least_caught: float, most_alarms: float
) -> None:
    checkers: dict[int, ClaimChecker] = {}
    found: Counter[tuple[str, bool]] = Counter()
    for facts, label, _, text in corpus(name):
        checker = checkers.get(id(facts)) or ClaimChecker(facts)
        checkers[id(facts)] = checker
        found[label, bool(checker.check(text))] += 1
    caught, missed, alarms, passed = (
        found[label, is_found] for label in ("false", "true") for is_found in (True, False)
    )
    assert caught >= least_caught * (caught + missed)
    assert alarms <= most_alarms * (alarms + passed)


@pytest.mark.slow(reason="reads two thousand texts")
@pytest.mark.parametrize("part", CAUGHT_MORE)
def test_the_documented_share_of_prose_by_further_authors_is_caught(part: str) -> None:
    authors, least_caught, most_alarms = CAUGHT_MORE[part]
    checkers: dict[int, ClaimChecker] = {}
    found: Counter[tuple[str, bool]] = Counter()
    for facts, label, _, text in more_narrators(*authors):
        checker = checkers.setdefault(id(facts), ClaimChecker(facts))
        found[label, bool(checker.check(text))] += 1
    assert found["false", True] >= least_caught * (found["false", True] + found["false", False])
    assert found["true", True] <= most_alarms * (found["true", True] + found["true", False])


@pytest.mark.parametrize(
    "text",
    [
        "You had two supplies carried up, and they eat well.",
        "The supplies are down to seven and the list on the wall is down to four.",
        "No new supply, then.",
    ],
)
def test_a_sentence_with_the_right_number_is_not_withheld(text: str) -> None:
    assert checker_of().check(text) == []


@pytest.mark.parametrize(
    ("label", "text"),
    [
        ("action", "You repaired a harder signal than that in your sleep."),
        ("life", "You think of Delta, who laughs at everyone."),
        ("life", "Delta used to bring you bread and sit by the gate."),
    ],
)
def test_what_is_only_thought_of_or_compared_is_no_claim(label: str, text: str) -> None:
    assert [one.kind for one in checker_of().check(text)] == [], label


@pytest.mark.parametrize(
    ("kind", "prose", "expected"),
    [
        ("amount", "Only four supplies are left.", "supplies is 7 (before the turn 9)"),
        ("life", "Delta smiles at you.", "Delta is dead"),
        ("presence", "Gamma stands beside you.", "Gamma is in the west room"),
        ("possession", "Beta has the seal.", "you have the seal"),
        ("ending", "You have won.", "the run has not ended"),
        ("action", "You repair the signal.", "the action 'Repair the signal' was refused"),
        ("action", "You search the store.", "the action 'Search the store' is not an action of this turn"),
        ("words", "The action open_gate was accepted.", "a story has no words of the program"),
    ],
)
def test_a_contradiction_names_the_sentence_and_the_fact(kind: str, prose: str, expected: str) -> None:
    (found,) = checker_of().check(f"The air is still. {prose} A bell rings.")
    assert (found.kind, found.quotation, found.expected) == (kind, prose, expected)


@pytest.mark.parametrize(
    ("prose", "kind"),
    [
        ("In the west room you sit down on a crate.", "presence"),
        ("In the west room the lamp is lit, and you pull up a stool.", "presence"),
        ("Here in the west room the air is stale.", "presence"),
        ("In the west room the wind tries the edges of your coat.", "presence"),
        ("There is no Beta.", "presence"),
        ("Beta has not come.", "presence"),
        ("You are on your own in here.", "presence"),
        ("Gamma comes in and wipes the table.", "presence"),
        ("They carry Gamma's body past.", "life"),
        ("With Gamma dead, the rest is easy.", "life"),
        ("Gamma has been dead for two hours.", "life"),
        ("You swing the badge on its string.", "possession"),
        ("You close your fingers over the badge.", "possession"),
        ("Four supplies left.", "amount"),
        ("You leave the gate alone.", "action"),
        ("You never touch the gate.", "action"),
        ("At last you have made it.", "ending"),
        ("You drag the crate into the west room.", "presence"),
        ("You put your back to the wall in the west room.", "presence"),
        ("You wade through the west room.", "presence"),
        ("The seal's in Beta's pocket.", "possession"),
        ("Nobody holds the seal.", "possession"),
        ("You will not hand over the badge.", "possession"),
        ("You do not even try to open the gate.", "action"),
        ("Nobody opens the gate.", "action"),
        ("The repair goes off without a hitch.", "action"),
        ("Your repair of the signal is a complete success.", "action"),
        ("Beta dies a little after the bell.", "life"),
        ("Beta is dead in the east room.", "life"),
        ("Beta's neck is broken.", "life"),
        ("Beta is gone from the east room.", "presence"),
        ("Beta is no longer in the east room.", "presence"),
        ("From the west room you watch the rain.", "presence"),
        ("There are four supplies left in the box, and you count them.", "amount"),
        ("Four supplies is all you have.", "amount"),
        ("Two dozen supplies are left.", "amount"),
        ("Not a supply remains.", "amount"),
        ("You never put a hand on the gate.", "action"),
        ("No one goes near the gate.", "action"),
        ("The gate was never touched.", "action"),
    ],
)
def test_a_sentence_is_read_as_a_scene(prose: str, kind: str) -> None:
    assert [found.kind for found in checker_of().check(prose)] == [kind]


@pytest.mark.parametrize(
    "prose",
    [
        "In the west room you can hear a bell.",
        "Above you, Gamma knocks once on the floor.",
        "It is as though Gamma were standing beside you.",
        "Gamma wipes a table down in the west room.",
        "Beta swings the badge on its string.",
        "You tap the badge on Beta's coat.",
        "You polish Beta's badge.",
        "There is no one like Beta.",
        "Seven supplies left.",
        "It is a bargain, and you have made it: no one is to learn of it.",
        "You searched the store once, long ago.",
        "The repair comes to nothing.",
        "You drag the crate through the east room.",
        "You will not hand over the seal.",
        "Nobody holds the lamp.",
        "After Gamma and before the rain she comes back to you.",
        "Gamma is no help to you.",
        "Beta leaves you a place on the bench.",
        "Beta hardly breathes.",
        "One wrong step, and you are lost.",
        "You are sure that you have lost.",
        "Gamma is in the west room, not here.",
        "Had Gamma come in, you would have heard it.",
        "Some nights you still hear Delta humming.",
        "Beta is dead on his feet.",
        "Nobody had buried Beta yet.",
        "Beta leaves you with the seal.",
        "There is nobody in the east room who can count.",
        "You have a rope and not a badge.",
        "Seven supplies, two the fewer.",
        "You long for the day, and after Delta had gone you lost it.",
        "No one has touched the gate but you.",
        "You made it eight planks wide.",
        "Nothing adds a supply, not today.",
    ],
)
def test_a_scene_that_agrees_with_the_record_passes(prose: str) -> None:
    assert checker_of().check(prose) == []


@pytest.mark.parametrize(
    ("prose", "is_wrong"),
    [
        ("There are still nine hours before the bell.", True),
        ("You have nine hours left.", True),
        ("There are still four hours before the bell.", False),
        ("You slept for nine hours before the bell.", False),
        ("There are not nine hours left.", False),
    ],
)
def test_time_that_is_left_is_an_amount(prose: str, *, is_wrong: bool) -> None:
    spec = {"labels": {"state.time": {"name": "hours until the bell"}}}
    facts = read_facts(spec, {"time": 4}, None)
    assert bool(ClaimChecker(TurnFacts(spec, facts, facts)).check(prose)) is is_wrong


@pytest.mark.parametrize(
    "prose",
    [
        '"Only four supplies are left," Beta lies.',
        "Are only four supplies left?",
        "If only four supplies were left, you would know.",
        "Beta thinks that only four supplies are left.",
        "You have not won.",
        "You remember how Delta smiled at you.",
        "Delta will never smile again, Beta thinks.",
        "In your dream Delta walks beside you.",
        "All supplies are gone, says Beta, and grins.",
        "Whenever Delta comes in, you wake.",
        "Soon you will search the store.",
    ],
)
def test_speech_questions_conditions_and_plans_are_no_claims(prose: str) -> None:
    assert checker_of().check(prose) == []


@pytest.mark.parametrize(
    ("prose", "is_wrong"),
    [
        ("The gate stands open.", True),
        ("The gate is not locked.", True),
        ("The gate is locked.", False),
        ("The gate is not open.", False),
        ("You wish the gate were open.", False),
        ("The pane is broken.", True),
        ("The pane is whole.", False),
    ],
)
def test_the_states_of_things_are_claims(prose: str, is_wrong: bool) -> None:
    spec = {"entities": [{"id": "alpha", "playable": True}], "actions": []}
    facts = read_facts(spec, {"gate_locked": True, "pane_broken": False}, None)
    assert bool(ClaimChecker(TurnFacts(spec, facts, facts)).check(prose)) is is_wrong


def test_with_several_players_you_is_no_holder() -> None:
    spec = {"entities": [{"id": name, "playable": True} for name in ("alpha", "beta")], "actions": []}
    facts = read_facts(spec, {"items": {"seal": {"holder": "alpha"}}}, None)
    checker = ClaimChecker(TurnFacts(spec, facts, facts))
    assert checker.check("You hold the seal.") == []
    assert [found.kind for found in checker.check("Beta holds the seal.")] == ["possession"]


def test_the_dead_and_the_absent_do_not_speak() -> None:
    checker = checker_of()
    said = [{"entity_id": entity, "utterance": "Here."} for entity in ("alpha", "beta", "gamma", "delta")]
    assert [found.kind for found in checker.check("It is quiet.", said)] == ["presence", "life"]
    assert [found.kind for found in checker.check("The phone rings.", said)] == ["life"]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("seven", 7),
        ("twenty-one", 21),
        ("a hundred and five", 105),
        ("1,500", 1500),
        ("2.5", 2.5),
        ("half a dozen", 6),
    ],
)
def test_numerals(text: str, number: float) -> None:
    assert parse_numeral(text) == number


def test_a_sentence_does_not_end_inside_speech() -> None:
    text = '"Stay. Now!" Beta says. You wait.\nThen 2.5 hours pass'
    assert split_sentences(text) == ['"Stay. Now!" Beta says. ', "You wait.\n", "Then 2.5 hours pass"]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        (
            "She waits.\n\n'Go. And don't wait,' he says.",
            ["She waits.\n\n", "'Go. And don't wait,' he says."],
        ),
        ("'It is all there is. I counted.' He sits.", ["'It is all there is. I counted.' ", "He sits."]),
        ("She says 'eleven' twice. It's cold.", ["She says 'eleven' twice. ", "It's cold."]),
        ("\u2018Stay. Now.\u2019 The gate opens.", ["\u2018Stay. Now.\u2019 ", "The gate opens."]),
        ("'Twas late. He ran.", ["'Twas late. ", "He ran."]),
    ],
)
def test_a_sentence_does_not_end_inside_speech_in_single_marks(text: str, sentences: list[str]) -> None:
    assert split_sentences(text) == sentences
    buffer = SentenceBuffer()
    streamed = [sentence for letter in text for sentence in buffer.feed(letter)]
    assert [*streamed, buffer.finish()] == sentences


def test_the_filter_holds_back_from_the_first_word_of_a_claim() -> None:
    prose = ClaimFilter(checker_of())
    assert prose.feed("The light is thin and fou") == "The light is thin and fou"
    assert prose.feed("r sup") == "r "
    assert prose.feed("plies are left.") == ""
    assert prose.feed(" You wait.") == ""
    assert prose.has_contradiction
    assert prose.finish() == ""


def test_the_filter_releases_a_true_sentence_as_a_whole() -> None:
    prose = ClaimFilter(checker_of())
    text = "Dust falls. Seven supplies are left. You wait"
    released = "".join(prose.feed(character) for character in text)
    assert released + prose.finish() == text
    assert not prose.has_contradiction


@pytest.mark.parametrize(
    ("prose", "language", "checkable"),
    [
        ("The light is thin and you wait.", None, True),
        ("Das Licht ist schwach, und du wartest auf die anderen.", None, False),
        ("The light is thin.", "fr", False),
        ("The light is thin.", "en-GB", True),
    ],
)
def test_only_english_is_checked(prose: str, language: str | None, checkable: bool) -> None:
    assert is_checkable(prose, language) is checkable


COUNTED = document(
    state={"supply": 9},
    actions=[action("act", [{"op": "dec", "path": "state.supply", "value": 2}])],
    loss_conditions=[never("first"), never("second")],
)
FALSE, TRUE = "The light is thin. Four supplies are left.", "The light is thin. Seven supplies are left."


def chunks(events: list[object]) -> str:
    return "".join(event.text for event in events if isinstance(event, NarrativeChunk))


async def test_a_contradiction_is_withheld_and_asked_again() -> None:
    events, gateway = await played(list(outcome(FALSE)), outcome(TRUE), about=scene_of(COUNTED))
    assert events[-1].resolution is Resolution.REPAIRED
    assert events[-1].narrative == TRUE
    assert "supplies are" not in chunks(events).partition("Seven")[0]
    assert any(isinstance(event, NarrativeRetracted) for event in events)
    assert events[-1].stats == NarratorStats(refused_answers=1, contradictions=1)
    assert "supply is 7" in gateway.requests[1].messages[-1].text


async def test_a_second_contradiction_ends_in_the_fallback_narration() -> None:
    events, _ = await played(outcome(FALSE), outcome(FALSE), about=scene_of(COUNTED))
    assert events[-1].resolution is Resolution.SERVER_RESOLVED
    assert events[-1].stats.contradictions == 2
    assert "are left" not in chunks(events)


async def test_prose_in_another_language_is_counted_as_not_checked() -> None:
    told = outcome("Das Licht ist schwach. Es sind noch vier da, und du wartest auf die anderen.")
    events, _ = await played(told, about=scene_of(COUNTED))
    assert events[-1].resolution is Resolution.NARRATED
    assert events[-1].stats == NarratorStats(unchecked_answers=1)


async def test_a_dead_person_does_not_speak_in_the_dialogue() -> None:
    about = scene_of(
        document(
            entities=[{"id": "p", "playable": True}, {"id": "beta", "name": "Beta"}],
            state={"a": 1, "beta_alive": False},
        ),
    )
    said = outcome(visible_dialogue=[{"entity_id": "beta", "utterance": "Wait."}])
    events, _ = await played(said, outcome(), about=about)
    assert not any(isinstance(event, DialogueSpoken) for event in events)
    assert events[-1].stats.contradictions == 1


def test_counts_that_older_records_do_not_have_are_written_only_if_set() -> None:
    assert "contradictions" not in encode_value(NarratorStats())
    assert encode_value(NarratorStats(contradictions=2))["contradictions"] == 2
