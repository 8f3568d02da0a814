"""Claims about people and things: alive or dead, present or elsewhere, and who has what."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from peripety.session.narration.claims.english import (
    SPOKEN,
    alternatives,
    drop_reported,
    is_negative,
    is_unsure,
    number_forms,
    present_forms,
    split_clauses,
    verb_forms,
)
from peripety.session.narration.claims.record import Contradiction
from peripety.session.state_facts import to_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from peripety.session.narration.claims.record import TurnFacts


_SPEECH = """say reply answer ask whisper shout murmur mutter speak talk tell call cry yell argue agree insist explain greet
 thank warn beg demand order promise refuse""".split()
_DEEDS = """nod smile grin laugh frown shrug sigh walk step run stride come enter arrive join follow lead return approach
 turn look stare glance gaze watch wait stand sit kneel rise lean bend point wave gesture reach take give hand hold grab
 pull push open close lift raise lower pick put place throw fold touch shake pat hug kiss breathe wake blink hesitate
 pause listen notice help offer show write eat drink sleep accept decide begin continue try work move jump climb crawl
 share tilt clear press squeeze pass bring carry pour light set wipe cough scratch rub beckon salute bow wink chuckle
 exhale inhale snort scowl""".split()
_ADVERB = r"(?:\s+(?:\w+ly|then|now|just|still|only|also|both|even|at last|at once|again))?"
_HIDDEN_BEFORE = re.compile(
    r"\b(?:that|how|what|when|where|why|which|who|whom|because|whose|like|than|of|for|to|from|about|without|with|at|by|on|toward|towards|after|behind)\s+(?:the\s+)?$",
    re.IGNORECASE,
)
_SUBORDINATE = re.compile(
    r"\b(?:that|how|what|when|whenever|where|why|which|who|whom|whose)\b", re.IGNORECASE
)
_REMOTE = re.compile(
    r"\b(?:phone|telephone|radio|letter|message|screen|speaker|video|recording|call(?:s|ed|ing)? (?:from|out from)|voice (?:of|from|comes|crackles)|"
    r"somewhere|elsewhere|far|distant|meanwhile|miles|other end|line)\b",
    re.IGNORECASE,
)
_NOT_DEATH = r"(?!\s+(?:tired|serious|set|weight|certain|wrong|drunk|asleep|quiet|silent|calm|ahead|against|sure|still|center|end|of laughter|down|away|out|for|to|last|on (?:his|her|their) feet))"
_GET = """take grab pocket steal snatch seize receive accept catch get fetch pick|up collect keep own hold have carry wear grip clutch
 clasp clench possess""".split()
_GIVE = ("give", "hand", "pass", "throw", "toss", "slip", "return", "lend", "sell", "send", "slide")
_NEAR = r"\b(?:you|your|here|beside|next to|side|in front of|across)\b"


class PeopleClaims:
    """Checker of claims about the entities of a scenario and the things they hold.

    Args:
        facts: the turn.
        is_past: True if the story is told in the past tense.
    """

    def __init__(self, facts: TurnFacts, *, is_past: bool = False) -> None:
        self._facts = facts
        self._is_past = is_past
        after = facts.after
        self._you = after.you
        self._others = {entity: names for entity, names in after.names.items() if entity != after.you}
        self._name = {
            entity: rf"(?:{alternatives(names)})(?![\w'\u2019-])" for entity, names in after.names.items()
        }
        self._speech, self._deeds = self._forms(_SPEECH), self._forms([*_SPEECH, *_DEEDS])
        self._gerunds = alternatives(verb_forms(verb)[4] for verb in [*_SPEECH, *_DEEDS])
        self._here = facts.places_of(self._you)
        self._places = {
            place: rf"(?:the\s+)?(?:{alternatives(number_forms(to_words(place)))})\b"
            for place in facts.before.known_places | after.known_places
        }
        things = {*facts.before.holders, *after.holders}
        self._things = {thing: rf"(?:{alternatives([thing])})(?![\w'\u2019-])" for thing in things}
        self.words = frozenset(
            word.lower()
            for word in [*(name for names in after.names.values() for name in names), *things, *self._places]
        )

    def _forms(self, verbs: Iterable[str]) -> str:
        """Return a pattern of the forms that tell a deed in the tense of the story."""
        forms = {verb_forms(verb)[1] for verb in verbs} | {verb_forms(verb)[0] for verb in verbs}
        if self._is_past:
            forms = {verb_forms(verb)[2] for verb in verbs}
        return alternatives(forms)

    def check(self, sentence: str) -> Iterator[Contradiction]:
        """Yield the claims of a sentence that contradict the record."""
        told = drop_reported(sentence)
        yield from self._check_lives(sentence, told)
        if self._here and not _REMOTE.search(sentence):
            yield from self._check_presence(sentence, told)
        for clause in split_clauses(told):
            yield from self._check_where(sentence, clause)
            yield from self._check_holders(sentence, clause)

    def _named(self, text: str) -> list[str]:
        """Return the other entities whose names occur in a text."""
        lower = text.lower()
        return [
            entity for entity, names in self._others.items() if any(name.lower() in lower for name in names)
        ]

    def check_speaker(self, entity: str, utterance: str, narrative: str) -> Contradiction | None:
        """Return the contradiction of a line of dialogue by a dead or absent entity, if there is one."""
        name = self._facts.after.name_of(entity)
        if self._facts.is_alive(entity) is False:
            return Contradiction("life", utterance, f"{name} is dead")
        if self._is_elsewhere(entity) and not _REMOTE.search(narrative):
            return Contradiction("presence", utterance, f"{name} is in {self._place_of(entity)}")
        return None

    # --- life ---

    def _check_lives(self, sentence: str, told: str) -> Iterator[Contradiction]:
        for entity in self._named(sentence):
            is_alive = self._facts.is_alive(entity)
            name = self._facts.after.name_of(entity)
            if is_alive is False and (
                self._acts(entity, sentence, told, self._deeds) or self._lives(entity, told)
            ):
                yield Contradiction("life", sentence.strip(), f"{name} is dead")
            elif is_alive is True and self._dies(entity, told):
                yield Contradiction("life", sentence.strip(), f"{name} is alive")

    def _acts(self, entity: str, sentence: str, told: str, verbs: str) -> bool:
        """Return True if a sentence says that an entity does something in the scene."""
        name = self._name[entity]
        # A line of speech has its speaker before or behind the verb.
        if re.search(rf"{SPOKEN},?\s+(?:{self._speech})\s+{name}", sentence, re.IGNORECASE):
            return True
        acting = re.compile(
            rf"\b{name}(?:,[^,]{{1,40}},)?(?:\s+and\s+\w+)?{_ADVERB}\s+(?:(?:{verbs})\b|(?:is|are){_ADVERB}\s+(?:{self._gerunds})\b)",
            re.IGNORECASE,
        )
        for found in acting.finditer(told):
            before = told[: found.start()]
            clause = re.split(r"[;:]|,\s+(?:and|then|but)\s", before)[-1]
            is_hidden = _HIDDEN_BEFORE.search(before) or _SUBORDINATE.search(clause)
            behind = told[found.start() : found.end() + 12]
            if (
                not is_hidden
                and not is_unsure(clause)
                and not re.search(r"\b(?:never|not)\b", behind, re.IGNORECASE)
            ):
                return True
        return bool(
            re.search(rf"\b(?:you|[A-Z]\w+)\s+and\s+{name}\s+(?:{verbs})\b", told)
            or re.search(rf"\bwith you\s+(?:stands|sits|waits|is|comes)\s+{name}", told, re.IGNORECASE)
        )

    def _lives(self, entity: str, told: str) -> bool:
        if is_negative(told) or is_unsure(told):
            return False
        name = self._name[entity]
        found = re.search(
            rf"\b{name}(?:\s+(?:is|looks|feels){_ADVERB}\s+(?:alive|well|awake|conscious|breathing|healthy|unharmed|fine)\b"
            rf"|\s+(?:comes?|came|is brought|is)\s+back(?:\s+to life|\s+from the dead|\s*$)|\s+(?:has\s+)?survive[sd]?\b|\s+lives?\b)",
            told,
            re.IGNORECASE,
        )
        return found is not None and not _HIDDEN_BEFORE.search(told[: found.start()])

    def _dies(self, entity: str, told: str) -> bool:
        name = self._name[entity]
        if re.search(
            rf"\b{name}\s+(?:is|are)\s+(?:no longer alive|not alive|gone for good)\b", told, re.IGNORECASE
        ):
            return True
        if is_negative(told) or is_unsure(told) or re.search(r"\bcould\b", told):
            return False
        found = re.search(
            rf"\b{name}(?:{_ADVERB}\s+(?:is|lies|falls|drops|collapses)(?:\s+\w+ly|\s+now)?\s+(?:dead|lifeless){_NOT_DEATH}"
            rf"|{_ADVERB}\s+dies\b{_NOT_DEATH}|\s+(?:has|have)\s+died\b{_NOT_DEATH}|\s+(?:is|was|has been|gets)\s+(?:killed|slain|murdered)\b"
            rf"|\b[^.;]*\bbreath and dies\b)"
            rf"|\b(?:corpse|dead body|lifeless body|grave)\s+of\s+{name}|\bbody of\s+{name}\s+(?:is|lies)\b[^.;]*\b(?:cold|still|lifeless|dead)\b"
            rf"|\b{name.replace('(?![', '(?!(?!.)[')}['\u2019]s\s+(?:lifeless|dead|cold)?\s*(?:corpse|(?<=lifeless )body|(?<=dead )body)|\bbur(?:y|ies|ied)\s+{name}",
            told,
            re.IGNORECASE,
        )
        return found is not None and not _SUBORDINATE.search(told[: found.start()])

    # --- presence ---

    def _is_elsewhere(self, entity: str) -> bool:
        places = self._facts.places_of(entity)
        return bool(places) and bool(self._here) and places.isdisjoint(self._here)

    def _place_of(self, entity: str) -> str:
        return f"the {to_words(self._facts.after.places[entity])}"

    def _check_presence(self, sentence: str, told: str) -> Iterator[Contradiction]:
        for entity in self._others:
            name = self._facts.after.name_of(entity)
            is_named = entity in self._named(sentence)
            if not is_named and not re.search(r"\balone\b", told, re.IGNORECASE):
                continue
            if is_named and self._is_elsewhere(entity) and self._facts.is_alive(entity) is not False:
                if self._names_place(sentence, self._facts.places_of(entity)):
                    continue
                is_near = (
                    re.search(_NEAR, sentence, re.IGNORECASE)
                    or self._names_place(sentence, self._here)
                    or self._names_present(sentence)
                )
                acts = self._acts(entity, sentence, told, self._deeds if is_near else self._speech)
                if acts or self._is_here(entity, told):
                    yield Contradiction(
                        "presence", sentence.strip(), f"{name} is in {self._place_of(entity)}"
                    )
            elif self._is_with_you(entity) and self._is_away(entity, told):
                yield Contradiction(
                    "presence", sentence.strip(), f"{name} is in {self._place_of(entity)}, as you are"
                )

    def _is_with_you(self, entity: str) -> bool:
        return (
            self._facts.places_of(entity) == self._here
            and len(self._here) == 1
            and self._facts.is_alive(entity) is not False
        )

    def _names_place(self, sentence: str, places: set[str]) -> bool:
        pattern = "|".join(
            self._places[to_words(place)] for place in places if to_words(place) in self._places
        )
        return bool(pattern) and re.search(rf"\b(?:{pattern})", sentence, re.IGNORECASE) is not None

    def _names_present(self, sentence: str) -> bool:
        return any(self._is_with_you(entity) for entity in self._named(sentence))

    def _is_here(self, entity: str, told: str) -> bool:
        if is_negative(told) or is_unsure(told):
            return False
        name = self._name[entity]
        found = re.search(
            rf"\b{name}{_ADVERB}\s+(?:is|stands|sits|waits|stays){_ADVERB}\s+(?:here|with you|at your side|by your side|beside you|next to you|in front of you|close to you)\b"
            rf"|\b{name}{_ADVERB}\s+(?:walks|comes|steps|storms|strides)\s+in\b|\b{name}{_ADVERB}\s+(?:enters|arrives)\b",
            told,
            re.IGNORECASE,
        )
        seen = re.search(
            rf"\byou\s+(?:see|meet|face|find)\s+{name}(?=\s+(?:on|at|by|in|sitting|standing|waiting|here)\b|\s*$|[.,])",
            told,
            re.IGNORECASE,
        )
        return any(one is not None and not _SUBORDINATE.search(told[: one.start()]) for one in (found, seen))

    def _is_away(self, entity: str, told: str) -> bool:
        name = self._name[entity]
        if re.search(rf"\bnot alone\b|n[\u2019']t alone", told, re.IGNORECASE) or is_unsure(told):
            return False
        return bool(
            re.search(
                rf"\b{name}\s+(?:(?:is|isn['\u2019]t|are)\s+(?:not here|n['\u2019]t here|here no longer|no longer here|nowhere to be (?:seen|found)|missing|absent|gone(?!\s+for good))|isn['\u2019]t here"
                rf"|has\s+(?:left|gone|disappeared|vanished)\b(?!\s+(?:the|a|his|her|its|nothing|no)\s+(?:mark|trace|note|bag)))",
                told,
                re.IGNORECASE,
            )
            or re.search(
                r"\byou\s+are\s+(?:all\s+|now\s+|quite\s+)?alone\b(?!\s+(?:with|in your|in this))(?:\s+in\b.*)?$",
                told.strip(" .!\n"),
                re.IGNORECASE,
            )
        )

    def _check_where(self, sentence: str, clause: str) -> Iterator[Contradiction]:
        if is_negative(clause) or is_unsure(clause):
            return
        be = r"(?:is|are|stand|stands|wait|waits|sit|sits|kneel|kneels|stay|stays|remain|remains|lie|lies|work|works)"
        for place, pattern in self._places.items():
            if not re.search(rf"\b{pattern}", clause, re.IGNORECASE):
                continue
            where = rf"(?:\s+\w+ing)?{_ADVERB}\s+(?:in|at|inside|on)\s+{pattern}"
            moved = rf"\s+(?:have\s+|has\s+)?(?:reach|reaches|reached|arrive (?:at|in)|arrives (?:at|in)|arrived (?:at|in)|enter|enters|entered|step into|walk into|come into)\s+{pattern}"
            for entity in (self._you, *self._named(clause)):
                subject = r"\b(?:you|I)" if entity == self._you else rf"\b{self._name[entity]}"
                places = {to_words(one) for one in self._facts.places_of(entity)}
                found = re.search(rf"{subject}(?:\s+{be}{where}|{moved})", clause, re.IGNORECASE)
                if found and places and place not in places and not self._is_hidden(clause[: found.start()]):
                    name = self._facts.after.name_of(entity)
                    verb = "are" if entity == self._you else "is"
                    yield Contradiction(
                        "presence", sentence.strip(), f"{name} {verb} in {self._place_of(entity)}"
                    )

    def _is_hidden(self, before: str) -> bool:
        return bool(_HIDDEN_BEFORE.search(before) or _SUBORDINATE.search(before))

    # --- possession ---

    def _check_holders(self, sentence: str, clause: str) -> Iterator[Contradiction]:
        for thing, pattern in self._things.items():
            if thing not in clause.lower():
                continue
            holders = self._facts.holders_of(thing)
            claimed, denied = self._claimed_holder(clause, pattern)
            current = self._facts.after.holders.get(thing)
            wrong = claimed is not None and claimed not in holders
            if wrong or (denied is not None and denied == current and len(holders) == 1):
                holder = (
                    "you have" if current == self._you else f"{self._facts.after.name_of(current or '')} has"
                )
                yield Contradiction("possession", sentence.strip(), f"{holder} the {thing}")

    def _claimed_holder(self, clause: str, thing: str) -> tuple[str | None, str | None]:
        """Return the entity that has a thing after a clause, and the entity that does not have it any more."""
        people = {entity: rf"\b{self._name[entity]}" for entity in self._named(clause)}
        people[self._you] = (
            rf"\b(?:you|I|{alternatives(self._facts.after.names.get(self._you, ()))})(?![\w'\u2019-])"
        )
        the = rf"(?:both\s+)?(?:(?:the|that|this)\s+)?(?:\w+\s+and\s+the\s+)?{thing}(?!\s+(?:in sight|in mind|in view|close|away from))"
        for entity, subject in people.items():
            owner = rf"(?:{subject}['\u2019]s|(?:{subject}))" if entity != self._you else r"\b(?:your|my)"
            if re.search(
                rf"{subject}\s+(?:no longer (?:have|has|holds?|carr(?:y|ies)|owns?)|(?:have|has)\s+lost|loses?|lost)\s+{the}|\b{thing}\s+is\s+no longer\s+(?:yours|{owner}|with\s+{subject})",
                clause,
                re.IGNORECASE,
            ) and not re.search(r"\b(?:not|never|nearly|almost)\b", clause, re.IGNORECASE):
                return None, entity
        if (
            is_negative(clause)
            or is_unsure(clause)
            or re.search(r"\b(?:tr(?:y|ies) to|reach(?:es)? for|almost|nearly)\b", clause, re.IGNORECASE)
        ):
            return None, None
        get = alternatives(form for verb in _GET if "|" not in verb for form in self._tense_forms(verb))
        pick = alternatives(self._tense_forms("pick"))
        store = alternatives(
            form for verb in ("put", "tuck", "slip", "stow", "stuff") for form in self._tense_forms(verb)
        )
        give = alternatives(form for verb in _GIVE for form in self._tense_forms(verb))
        lift = alternatives(form for verb in ("lift", "raise") for form in self._tense_forms(verb))
        for entity, subject in people.items():
            mine = (
                r"(?:your|my)"
                if entity == self._you
                else rf"(?:{self._name[entity].replace('(?![', '(?!(?!.)[')}['\u2019]s|his|her|their)"
            )
            to = r"\b(?:you|me)\b" if entity == self._you else rf"\b{self._name[entity]}"
            yours = (
                r"(?:yours|mine)"
                if entity == self._you
                else rf"{self._name[entity].replace('(?![', '(?!(?!.)[')}['\u2019]s"
            )
            gap = r"(?:\s+\w+ly|\s+now|\s+still|\s+then|\s+also)?"
            if re.search(
                rf"\b(?:{give})\s+(?:up\s+)?(?:{to}\s+{the}|{the}\s+(?:over\s+)?(?:to|at)\s+{to})"
                rf"|\b{thing}\s+(?:is|lies|rests|sits|hangs)\s+(?:now\s+|safe\s+|safely\s+)?(?:{yours}(?!\w)|with\s+{to}|(?:in|on|from|at|around|under)\s+{mine}\s+(?:hands?|pockets?|bag|belt|neck|fist|palm|possession|coat|grip|arms?|shoulder))"
                rf"|\b{thing}\s+belongs\s+to\s+{to}"
                rf"|\b{mine}\s+(?:fingers?|hands?|fist|palm)\s+(?:close|closes|closed|wrap|wraps|tighten|tightens)\s+(?:around|on|over)\s+{the}"
                rf"|\bwith\s+{the}\s+in\s+{mine}\s+(?:hands?|pocket|bag)",
                clause,
                re.IGNORECASE,
            ):
                return entity, None
        for entity, subject in people.items():
            gap = r"(?:\s+\w+ly|\s+now|\s+still|\s+then|\s+also|\s+both)?"
            found = re.search(
                rf"{subject}(?:\s+(?:is|are))?{gap}\s+(?:(?:{get}|holding|carrying|wearing|keeping|gripping|clutching)(?:\s+(?:up|on to|onto|out))?\s+{the}(?!\s+(?:to|over to|at)\s+\w)"
                rf"|(?:{pick})\s+(?:up\s+)?{the}|(?:{store})\s+{the}\s+(?:away|in\b|into\b|under\b|inside\b)|(?:{lift})\s+{the}\b.*\bkeeps?\s+it)",
                clause,
                re.IGNORECASE,
            )
            if found:
                return entity, None
        return None, None

    def _tense_forms(self, verb: str) -> tuple[str, ...]:
        forms = verb_forms(verb)
        return (forms[2],) if self._is_past else forms[:2]
