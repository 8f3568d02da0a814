"""Grammar: groups of words, the clauses of a sentence, and what pronouns stand for."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from peripety.session.narration.claims.clauses import (
    Group,
    ProseClause,
    Sentence,
    read_groups,
    resolve_pronouns,
)
from peripety.session.narration.claims.english import (
    BASE,
    GERUND,
    PARTICIPLE,
    PAST,
    THIRD,
    ProseWord,
    load_toml,
    words,
    words_of,
)
from peripety.session.narration.claims.tagger import tag_tokens

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from peripety.session.narration.claims.english import NameTable


_UNREAL = load_toml("vocabulary.toml")["unreal"]
_SAYING = frozenset(
    [
        "say",
        "think",
        "ask",
        "cry",
        "whisper",
        "murmur",
        "mutter",
        "suppose",
        "reckon",
        "swear",
        "claim",
        "tell",
        "wonder",
        "go",
        "answer",
        "reply",
        "call",
        "shout",
        "add",
        "write",
        "insist",
        "believe",
    ]
)
_UNREAL_VERBS, _FACTIVE, _REAL_VERBS, _UNREAL_ADVERBS = (
    frozenset(_UNREAL[name].split()) for name in ("verbs", "factive", "reality", "adverbs")
)
_CONTENT = _UNREAL_VERBS | _FACTIVE
_UNREAL_SENTENCE = re.compile(_UNREAL["sentence"], re.IGNORECASE)
_HABIT = re.compile(_UNREAL["habit"], re.IGNORECASE)
_INVERTED = re.compile(
    r"^\W*(?:had|were|should)\s+[^,;.]+,[^;.]*?(?:\b(?:would|might|could)\b|['\u2019]d\b)", re.IGNORECASE
)
_COMPARED = re.compile(r"\bas (?:though|if)\b", re.IGNORECASE)
_HARD = words("break")
_SENSING = words("see watch hear feel notice")
_TOPICAL = words("think speak talk dream hear read sing")
_MODALS = words("could would may might should must ought will shall 'll 'd")
_CONDITIONS = words("one another a an")
_TIMES = frozenset(
    [
        "moment",
        "minute",
        "minutes",
        "hour",
        "hours",
        "day",
        "days",
        "night",
        "time",
        "morning",
        "evening",
        "noon",
        "dawn",
        "dusk",
        "second",
        "seconds",
        "while",
    ]
)


def read_sentence(
    text: str,
    names: NameTable,
    you: str = "you",
    context: Sequence[ProseWord] = (),
    *,
    is_third: bool = False,
    is_strict: bool = False,
) -> Sentence:
    """Return the clauses of a sentence without speech.

    Args:
        text: the sentence.
        names: what it may name.
        you: the id of the player.
        context: the tokens of the sentence before.
        is_third: True if the story speaks of the player in the third person.
        is_strict: True if the sentence before decides only who `he` and `she` are.
    """
    tokens = tag_tokens(text, names)
    resolve_pronouns(tokens, you, context, is_third=is_third, is_strict=is_strict)
    reader = _ClauseReader(tokens)
    clauses = reader.read()
    found = _UNREAL_SENTENCE.search(text) or _HABIT.search(text)
    for clause in clauses if found is not None else ():
        # `In the picture` belongs to the clause around it, and at the beginning to the whole part.
        places = [one.start() for one in _UNREAL_SENTENCE.finditer(text)] or [0]
        is_first = clause.part == 0 and any(place < clauses[0].verb_start for place in places)
        # `You dream: Delta comes in.`
        is_first |= ":" in text[places[0] : clause.verb_start]
        if (
            is_first
            or _HABIT.search(text)
            or any(clause.span[0] <= place < clause.span[1] for place in places)
        ):
            clause.is_asserted = False
    if _INVERTED.search(text) is not None:
        # `Had the x started, you would be there now.`
        for clause in clauses:
            clause.is_asserted = False
    for compared in _COMPARED.finditer(text):
        later = [clause for clause in clauses if clause.verb_start > compared.start()]
        for clause in later:
            clause.is_asserted &= clause.part != later[0].part
    return Sentence(
        text, tokens, clauses, reader.groups, found is not None and not clauses, reader.attributed
    )


class _ClauseReader:
    """Reader of the clauses of tagged tokens."""

    def __init__(self, tokens: Sequence[ProseWord]) -> None:
        self._items, self.groups = read_groups(tokens)
        for first, word, group, verb in zip(
            self._items, self._items[1:], self._items[2:], self._items[3:], strict=False
        ):
            # `nobody is there, for Delta has gone`
            if not (
                isinstance(first, ProseWord) and isinstance(word, ProseWord) and isinstance(group, Group)
            ):
                continue
            is_verb = isinstance(verb, ProseWord) and verb.tag in words("verb be have do modal")
            if word.word == "for" and is_verb and first.tag in {"comma", "break"}:
                word.tag = "conj"
        self.attributed = 0

    def read(self) -> list[ProseClause]:
        """Return the clauses in order."""
        items = self._items
        clauses: list[ProseClause] = []
        starts = self._find_verbs()
        part = 0
        for number, (first, last, main) in enumerate(starts):
            left = starts[number - 1][1] + 1 if number else 0
            region = items[left:first]
            stop = starts[number + 1][0] if number + 1 < len(starts) else len(items)
            part += any(isinstance(one, ProseWord) and one.tag in _HARD for one in region) if number else 0
            clause = self._make_clause(items[first : last + 1], main, first, last)
            clause.part, clause.verb_start = part, _first(items[first]).start
            self._add_subject(clause, region, clauses, first)
            self._add_rest(clause, items[last + 1 : stop], is_last=stop == len(items))
            begin = max(
                (
                    n
                    for n, one in enumerate(region)
                    if isinstance(one, ProseWord) and one.tag in words("break comma conj sub speech")
                ),
                default=-1,
            )
            if number == 0 and not any(isinstance(one, ProseWord) and one.tag == "break" for one in region):
                begin = -1
            spanned = [*region[begin + 1 :], *items[first : last + 1]]
            ends = [*(token.end for token in clause.rest), *(_last(one).end for one in spanned)]
            clause.span = (min((_first(one).start for one in spanned), default=0), max(ends, default=0))
            clauses.append(clause)
        self._assert_all(clauses)
        return clauses

    # --- verbs ---

    def _find_verbs(self) -> list[tuple[int, int, ProseWord]]:
        """Return the first item, the last item and the main verb of each verb group."""
        items, found, place = self._items, [], 0
        verbal = words("verb be have do modal to")
        while place < len(items):
            item = items[place]
            if not isinstance(item, ProseWord) or item.tag not in verbal:
                place += 1
                continue
            if item.tag == "to" and not self._is_infinitive(place):
                place += 1
                continue
            last, main = place, item
            step = place + 1
            is_done = item.tag == "verb"
            while step < len(items) and not is_done:
                one = items[step]
                if (
                    not isinstance(one, ProseWord)
                    or one.tag not in {*verbal, "adv", "neg"}
                    or one.tag == "to"
                ):
                    break
                if one.tag == "modal" and main.tag != "modal":
                    break
                if one.tag in words("verb be have do modal"):
                    last, main = step, one
                    is_done = one.tag == "verb"
                step += 1
            found.append((place, last, main))
            place = last + 1
        return found

    def _is_infinitive(self, place: int) -> bool:
        for item in self._items[place + 1 : place + 4]:
            if not isinstance(item, ProseWord):
                return False
            if item.tag in {"be", "have", "do"} or (
                item.tag == "verb" and item.reading is not None and item.reading.form == BASE
            ):
                return True
            if item.tag not in {"adv", "neg"}:
                return False
        return False

    def _make_clause(
        self, items: Sequence[ProseWord | Group], main: ProseWord, first: int, last: int
    ) -> ProseClause:
        tokens = [item for item in items if isinstance(item, ProseWord)]
        aux = [token for token in tokens if token is not main and token.tag in words("be have do modal to")]
        reading = main.reading if main.tag == "verb" else None
        verb = (
            reading.lemma
            if reading is not None
            else {"be": "be", "have": "have", "do": "do"}.get(main.tag, "")
        )
        form = reading.form if reading is not None else _form_of(main.word)
        before = self._items[first - 1] if first else None
        clause = ProseClause(
            verb, reading.senses if reading is not None else words("stative"), form, None, first, last
        )
        told = {token.word for token in aux}
        tags = [token.tag for token in aux]
        clause.modal = next((token.word for token in aux if token.tag == "modal"), "")
        clause.is_infinitive = "to" in tags or (
            form == GERUND and not aux and isinstance(before, ProseWord) and before.tag == "prep"
        )
        clause.is_perfect = ("have" in tags and form == PARTICIPLE) or (
            "have" in tags and main.tag in {"be", "have"}
        )
        clause.is_progressive = form == GERUND
        has_be = "be" in tags
        clause.is_passive = (
            form == PARTICIPLE and has_be and verb not in words("go come arrive return vanish")
        )
        past_words = words("was were had did")
        clause.is_past = bool(told & past_words) or (not aux and (form == PAST or main.word in past_words))
        if form == PARTICIPLE and has_be and not clause.is_passive:
            clause.is_perfect = True
        clause.has_any_tense = not aux and main.word == verb and verb in words_of("verbs", "unchanging")
        clause.is_negative = any(token.tag == "neg" for token in tokens) or clause.modal == "cannot"
        clause.adverbs = {token.word for token in tokens if token.tag == "adv" or token.word == "never"}
        if (
            form == PARTICIPLE
            and isinstance(before, ProseWord)
            and before.tag == "verb"
            and before.word in words_of("function", "get")
        ):
            clause.is_passive = True
        place = first - 1
        while place >= 0:
            item = self._items[place]
            if not isinstance(item, ProseWord) or item.tag not in {"adv", "neg"}:
                break
            clause.is_negative |= item.tag == "neg"
            clause.adverbs.add(item.word)
            place -= 1
        return clause

    # --- subjects and objects ---

    def _add_subject(
        self,
        clause: ProseClause,
        region: Sequence[ProseWord | Group],
        clauses: Sequence[ProseClause],
        first: int,
    ) -> None:
        """Find the subject in the items between the verb before and this one."""
        previous = clauses[-1] if clauses else None
        cut = max(
            (
                n
                for n, one in enumerate(region)
                if isinstance(one, ProseWord) and one.tag in words("break comma conj sub speech")
            ),
            default=-1,
        )
        hard = max(
            (n for n, one in enumerate(region) if isinstance(one, ProseWord) and one.tag == "break"),
            default=-1,
        )
        for token in region[hard + 1 :]:
            if isinstance(token, ProseWord) and token.tag == "sub":
                clause.subordinator = token.word
            if isinstance(token, ProseWord) and token.tag in {"adv", "neg"}:
                clause.adverbs.add(token.word)
                clause.is_negative |= token.word in {"never", "neither", "nor"}
        joint = max(
            (
                n
                for n, one in enumerate(region)
                if isinstance(one, ProseWord) and one.tag in words("break conj sub speech")
            ),
            default=-1 if previous is None else cut,
        )
        for item, after in zip(region[joint + 1 :], region[joint + 2 :], strict=False):
            is_fronted = previous is None or cut >= 0
            if is_fronted and isinstance(item, ProseWord) and item.tag == "prep" and isinstance(after, Group):
                clause.fronted.append((item.word, after))
        has_boundary = cut >= 0
        if clause.is_infinitive:
            clause.governor = previous
            clause.subject = previous.subject if previous is not None else None
            clause.copied_subject = True
            return
        own = self._subject_in(region[cut + 1 :])
        if own is not None:
            clause.subject = own
            clause.is_negative |= own.is_negated
            if previous is not None and not has_boundary:
                clause.governor = previous
            if clause.subordinator and previous is not None and hard < 0:
                clause.governor = previous
            if previous is not None and previous.is_infinitive and len(clauses) == 1:
                clause.governor = None
            if own.word in {"who", "which"}:
                earlier = self._items[:first]
                groups = [one for one in earlier if isinstance(one, Group) and one is not own]
                clause.subject = groups[-1] if groups else None
            elif clause.subordinator in {"which", "that", "whom"} and hard < 0:
                place = max(
                    n for n, one in enumerate(region) if isinstance(one, ProseWord) and one.tag == "sub"
                )
                before = [one for one in region[max(0, place - 2) : place] if isinstance(one, Group)]
                if before and (
                    clause.subordinator != "that" or not (previous is not None and previous.base in _CONTENT)
                ):
                    clause.objects.append(before[-1])
            return
        # `Delta, pale and tired, puts …`: the subject is before the first comma.
        if previous is None or hard >= 0:
            chunk = region[hard + 1 :]
            starts = [
                0,
                *(
                    n + 1
                    for n, one in enumerate(chunk)
                    if isinstance(one, ProseWord) and one.tag in {"comma", "speech"}
                ),
            ]
            for start in starts:
                found = self._subject_in(chunk[start:], is_first=True)
                if found is not None:
                    clause.subject = found
                    return
        is_relative = any(
            isinstance(one, ProseWord) and one.word == "that" and one.tag == "sub" for one in region[-1:]
        )
        if is_relative:
            groups = [one for one in self._items[:first] if isinstance(one, Group)]
            clause.subject = groups[-1] if groups else None
            return
        # `"…," says Delta` has its subject behind the verb.
        speech = any(isinstance(one, ProseWord) and one.tag == "speech" for one in region[-1:])
        follow = self._items[clause.end + 1] if clause.end + 1 < len(self._items) else None
        if speech and isinstance(follow, Group):
            clause.subject = follow
            clause.is_fronted = True
            return
        if previous is not None:
            clause.subject = previous.subject
            clause.copied_subject = True
            joins = [
                one.word for one in region if isinstance(one, ProseWord) and one.tag in {"comma", "conj"}
            ]
            if (
                joins[-2:] in ([",", "and"], [",", "but"])
                and previous.governor is not None
                and previous.subordinator
            ):
                clause.subject = previous.governor.subject
            if clause.form == GERUND or (not has_boundary and clause.form in {BASE, PARTICIPLE}):
                groups = [one for one in region if isinstance(one, Group)]
                if groups and not has_boundary:
                    clause.subject = groups[-1]
                    clause.copied_subject = False
                clause.governor = previous
            elif clause.subordinator:
                clause.governor = previous
        elif (clause.is_a("sit") or clause.base in words("hang dangle gleam glint come")) and self._follows(
            clause.end
        ):
            clause.subject = self._follows(clause.end)
            clause.is_fronted = True
        elif clause.form in {GERUND, PARTICIPLE}:
            last = region[-1] if region else None
            if isinstance(last, Group):
                clause.subject = last
                return
            clause.subject = self._next_subject(clause.end)
            clause.copied_subject = True

    def _follows(self, place: int) -> Group | None:
        """Return the group with a name directly behind a verb: `with you stands Delta`."""
        item = self._items[place + 1] if place + 1 < len(self._items) else None
        return item if isinstance(item, Group) and item.head.refs else None

    def _next_subject(self, place: int) -> Group | None:
        """Return the subject of the main clause behind a participle: `Grinning, you …`."""
        items = self._items[place + 1 :]
        cut = next(
            (n for n, one in enumerate(items) if isinstance(one, ProseWord) and one.tag == "comma"), None
        )
        if cut is None:
            return None
        return next((one for one in items[cut + 1 :] if isinstance(one, Group)), None)

    def _subject_in(self, items: Sequence[ProseWord | Group], *, is_first: bool = False) -> Group | None:
        """Return the group without a preposition: `row by row the guests`."""
        after_preposition = False
        found = None
        for item in items:
            if isinstance(item, ProseWord):
                if item.tag in {"prep", "to"}:
                    after_preposition = True
                elif item.tag in {"comma", "break", "speech"} and is_first:
                    return found
                continue
            if (
                not after_preposition
                and not _is_time(item)
                and (found is None or item.tokens[0].tag == "det")
            ):
                found = item
            after_preposition = False
        return found

    def _add_rest(self, clause: ProseClause, items: Sequence[ProseWord | Group], *, is_last: bool) -> None:
        """Add the objects and phrases between this verb and the next clause."""
        stop = len(items)
        for place, item in enumerate(items):
            if isinstance(item, ProseWord) and item.tag in {"break", "sub"}:
                stop = place
                break
        if not is_last and stop == len(items):
            cuts = [
                n
                for n, one in enumerate(items)
                if isinstance(one, ProseWord) and one.tag in {"comma", "conj", "speech"}
            ]
            if cuts:
                stop = cuts[-1]
        preposition = ""
        for item in items[:stop]:
            if isinstance(item, Group):
                if preposition:
                    clause.phrases.append((preposition, item))
                elif _is_time(item) and item.tokens[0].word in words("all this that every each"):
                    # `burns all night`
                    pass
                elif not clause.is_fronted or item is not clause.subject:
                    clause.objects.append(item)
                preposition = ""
                clause.rest += _tokens_of(item)
                clause.is_negative |= item.word in {"nothing", "nobody", "none"} and item is clause.subject
            else:
                if item.tag in {"prep", "to"}:
                    preposition = item.word
                elif item.tag in {"comma", "conj"}:
                    preposition = ""
                elif item.tag == "adv":
                    # In `to almost nothing`, the adverb belongs to the group behind it.
                    if not (preposition and item.word in _UNREAL_ADVERBS):
                        clause.adverbs.add(item.word)
                elif item.tag == "neg":
                    place = next(n for n, one in enumerate(items) if one is item)
                    following = items[place + 1] if place + 1 < len(items) else None
                    before = items[place - 1] if place else None
                    # `is in the x, not here`, `an x and not a y`, `the x not three feet away`
                    is_listed = isinstance(before, ProseWord) and before.tag in {"comma", "conj"}
                    is_listed |= (
                        isinstance(before, Group)
                        and isinstance(following, Group)
                        and following.tokens[0].number is not None
                    )
                    contrasts = item.word == "not" and is_listed
                    compares = (
                        isinstance(following, Group)
                        and following.tokens[0].tag == "adj"
                        and following.head.tag == "adj"
                        and item.word == "no"
                    )
                    compares |= (
                        isinstance(following, Group)
                        and item.word == "no"
                        and following.tokens[0].word.endswith("er")
                    )
                    compares |= (
                        isinstance(following, ProseWord)
                        and item.word == "no"
                        and following.tag in {"adv", "noun"}
                    )
                    clause.is_negative |= (item.word in {"not", "never", "n't"} and not contrasts) or compares
                clause.rest.append(item)
        first = clause.rest[0].word if clause.rest else ""
        if (
            first in words("up out off away back over")
            and clause.phrases
            and clause.phrases[0][0] == first
            and "motion" not in clause.senses
            and clause.base not in words("look go come be")
        ):
            clause.objects.insert(0, clause.phrases[0][1])
        particles = [one.word for one in clause.rest[:1] if one.tag in {"prep", "adv"}]
        for particle in particles:
            if particle in words("up down out off away in back over on through"):
                joined = f"{clause.verb}-{particle}"
                if any(joined in words_of("verbs", one) for one in load_toml("vocabulary.toml")["verbs"]):
                    clause.verb = joined
                    if (
                        clause.phrases
                        and clause.phrases[0][0] == particle
                        and particle in words("up down out off away back over")
                        and not clause.phrases[0][1].keys("entity")
                    ):
                        clause.objects.insert(0, clause.phrases.pop(0)[1])

    # --- what is asserted ---

    def _assert_all(self, clauses: Sequence[ProseClause]) -> None:
        """Set which clauses the narrator asserts."""
        for before, clause in pairwise(clauses):
            is_bare = clause.form == BASE and not clause.modal and not clause.copied_subject
            is_seen = before.base in _SENSING and before.part == clause.part and before.end < clause.start
            if is_bare and is_seen and clause.governor is None and not clause.subordinator:
                # `had once seen her dance`
                clause.governor = before
            is_shared = clause.form == BASE and clause.copied_subject and clause.part == before.part
            if before.modal in _MODALS and is_shared and not (clause.is_infinitive or clause.subordinator):
                # `would stand there and say nothing`
                clause.modal = clause.modal or before.modal
            if before.is_infinitive and is_shared and not clause.is_infinitive and _is_third(clause.subject):
                # `used to come in and stand there`
                clause.is_infinitive, clause.governor = True, before.governor
        is_conditional: dict[int, bool] = {}
        for clause in clauses:
            if clause.subordinator in {"if", "unless"} and not self._is_as(clause):
                is_conditional[clause.part] = True
        for clause in clauses:
            clause.is_asserted = self._is_asserted(clause) and not is_conditional.get(clause.part, False)
        for clause in clauses:
            if self._is_attribution(clause):
                for one in clauses:
                    one.is_asserted &= one is clause or one.part > clause.part
                self.attributed = max(self.attributed, clause.verb_start)
        for before, clause in pairwise(clauses):
            thought = [group for word, group in before.phrases if word in {"of", "about"}]
            if before.base in _TOPICAL and clause.subject is not None and clause.subject in thought:
                # `You think of Delta, who laughs, singing`
                later = [one for one in clauses if one.start >= clause.start and one.part == clause.part]
                for one in later:
                    one.is_asserted &= one.subject is not clause.subject
        for clause in clauses:
            future = clause.modal and clause.modal not in {"can", "cannot", "could"}
            if clause.subordinator in words("when whenever once after wherever where") and any(
                one.modal
                and one.part == clause.part
                and one is not clause
                and one.modal not in {"can", "cannot"}
                for one in clauses
            ):
                clause.is_asserted = False
            if future:
                clause.is_asserted = False
            governor = clause.governor
            if (
                governor is not None
                and clause.form in {BASE, GERUND}
                and governor.is_perfect
                and governor.is_past
            ):
                clause.is_perfect = clause.is_past = True
        if self._is_condition(clauses):
            for clause in clauses:
                clause.is_asserted = False
        for before, clause in pairwise(clauses):
            # `Delta took a picture, squinting`
            if clause.form == GERUND and clause.copied_subject and clause.part == before.part:
                clause.is_asserted &= before.is_asserted or before.is_infinitive or bool(before.modal)
                clause.is_past |= before.is_past and not before.is_perfect

    def _is_condition(self, clauses: Sequence[ProseClause]) -> bool:
        """Return True for `one more hour like this and you lose`: nouns that only mean an `if`."""
        first = self._items[0] if self._items else None
        if not clauses or not isinstance(first, Group) or first.tokens[0].word not in _CONDITIONS:
            return False
        subject = clauses[0].subject
        if subject is None or subject is first:
            return False
        before = [
            one.word
            for one in self._items
            if isinstance(one, ProseWord) and one.start < subject.tokens[0].start
        ]
        return before[-1:] == ["and"]

    def _is_attribution(self, clause: ProseClause) -> bool:
        """Return True for `…, Delta says` behind words that have no quotes."""
        if (
            clause.base in _SAYING - {"tell", "ask", "answer", "reply", "call"}
            and clause.form in {PAST, PARTICIPLE, THIRD}
            and clause.start
        ):
            first, after = (
                self._items[clause.start - 1],
                self._items[min(clause.end + 1, len(self._items) - 1)],
            )
            is_open = isinstance(first, ProseWord) and first.word in {",", "?", "!"}
            if is_open and isinstance(after, Group) and (after.head.refs or after.tokens[0].tag == "det"):
                clause.subject = after
                return True
        if (
            clause.base not in _SAYING
            or clause.copied_subject
            or clause.subordinator
            or clause.is_negative
            or clause.modal
        ):
            return False
        place = clause.start
        before = self._items[place - 1] if place else None
        if isinstance(before, Group):
            place -= 1
            before = self._items[place - 1] if place else None
        return (
            isinstance(before, ProseWord)
            and before.tag in {"comma", "break"}
            and before.word in {",", "?", "!"}
            and not any(
                one.word not in words("you me him her") and one is not clause.subject
                for one in clause.objects
            )
        )

    def _is_as(self, clause: ProseClause) -> bool:
        tokens = [one for one in self._items[: clause.start] if isinstance(one, ProseWord)]
        told = [token.word for token in tokens]
        return (
            "if" in told
            and told.index("if") > 0
            and told[told.index("if") - 1] in words_of("sets", "asking_if")
        )

    def _is_asserted(self, clause: ProseClause) -> bool:
        if clause.modal in _MODALS:
            return False
        if clause.modal in {"can", "cannot"} and not clause.is_negative:
            return False
        if clause.adverbs & _UNREAL_ADVERBS:
            return False
        if self._is_unreal_subordinator(clause):
            return False
        governor = clause.governor
        if governor is not None and governor is not clause:
            if clause.is_infinitive:
                return self._is_real_infinitive(clause, governor)
            is_content = (
                clause.subordinator in {"when", "where"} and self._is_relative(clause)
            ) or clause.subordinator in {"", "that", "how", "what", "whether", "why", "where", "who", "which"}
            if is_content and not clause.copied_subject and governor.base in _UNREAL_VERBS:
                return False
            if is_content and clause.form in {GERUND, BASE} and governor.base in _UNREAL_VERBS:
                return False
            if governor.verb == "have" and clause.form == PARTICIPLE:
                return True
            if governor.verb == "have" and clause.form == GERUND and not clause.copied_subject:
                # `they have her dancing`: it is their story.
                return False
            if governor.base == "get" and clause.is_passive:
                clause.is_negative |= governor.is_negative
                clause.is_past = governor.is_past
                return governor.is_asserted
            if not governor.is_asserted and governor.part == clause.part and is_content:
                return False
            if (
                governor.is_negative
                and is_content
                and clause.subordinator in {"that", ""}
                and not clause.copied_subject
                and clause.form != GERUND
            ):
                return governor.base in _FACTIVE
        if governor is None and clause.is_infinitive:
            return False
        if clause.copied_subject and governor is None and clause.form == GERUND:
            return True
        return True

    def _is_relative(self, clause: ProseClause) -> bool:
        """Return True for `the day when …`."""
        place = next(
            (n for n in range(clause.start - 1, 0, -1) if getattr(self._items[n], "tag", "") == "sub"), 0
        )
        return place > 0 and isinstance(self._items[place - 1], Group)

    def _is_unreal_subordinator(self, clause: ProseClause) -> bool:
        word = clause.subordinator
        return word in words("if unless whether whenever until till before lest than") or (
            word == "as" and self._is_as(clause)
        )

    def _is_real_infinitive(self, clause: ProseClause, governor: ProseClause) -> bool:
        """Return True for `manages to …`, but not for `wants to …`."""
        if not governor.is_asserted or governor.is_negative:
            return False
        before = self._items[clause.start - 1] if clause.start else None
        is_gerund = clause.form == GERUND and isinstance(before, ProseWord)
        if is_gerund:
            return isinstance(before, ProseWord) and before.word in {"by", "upon", "after"}
        return governor.base in _REAL_VERBS


def _first(item: ProseWord | Group) -> ProseWord:
    return item if isinstance(item, ProseWord) else item.tokens[0]


def _last(item: ProseWord | Group) -> ProseWord:
    return item if isinstance(item, ProseWord) else item.tokens[-1]


def _form_of(word: str) -> str:
    return {
        "being": GERUND,
        "having": GERUND,
        "doing": GERUND,
        "been": PARTICIPLE,
        "be": BASE,
        "done": PARTICIPLE,
    }.get(word, PAST if word in words("was were had did") else "third")


def _is_third(group: Group | None) -> bool:
    """Return True for one person or thing, whose present ends in s."""
    if group is None or group.joined or group.head.tag == "pron":
        return group is not None and group.word in {"he", "she", "it"}
    return group.head.tag == "name" and any(kind == "entity" for kind, _ in group.head.refs)


def _is_time(group: Group) -> bool:
    return (
        group.word in _TIMES
        and len(group.tokens) > 1
        and group.tokens[0].word in words("this that a one every each the all for")
    )


def _tokens_of(group: Group) -> Iterable[ProseWord]:
    yield from group.tokens
    if group.of is not None:
        yield from _tokens_of(group.of)
    for one in group.joined:
        yield from _tokens_of(one)
