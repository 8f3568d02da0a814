"""Grammar: groups of told_words, the clauses of a sentence, and what pronouns stand for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from peripety.session.narration.claims.told_words import Token

from peripety.session.narration.claims.clauses import Clause, Group, Sentence
from peripety.session.narration.claims.english import load_toml
from peripety.session.narration.claims.tagger import tag_tokens
from peripety.session.narration.claims.verbs import BASE, GERUND, PARTICIPLE, PAST, words, words_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from peripety.session.narration.claims.told_words import NameTable, Ref


_PERSONS = words("he she him her his himself herself")
_FIRST = words("i me my we us our myself ourselves")
_SECOND = words("you your yourself yours")
_THINGS = words("it them they its which")
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
_GROUP_TAGS = words("det poss num adj noun name pron own")
_HARD = words("break")
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


def resolve_pronouns(
    tokens: Sequence[Token],
    you: str,
    context: Sequence[Token] = (),
    *,
    is_third: bool = False,
) -> None:
    """Let pronouns name what they stand for, if only one person or thing can be meant.

    Args:
        tokens: the tokens of a sentence.
        you: the id of the player.
        context: the tokens of the sentence before.
        is_third: True if the story speaks of the player in the third person.
    """
    people = list(
        dict.fromkeys(
            key
            for token in context
            for kind, key in token.refs
            if kind == "entity" and (key != you or is_third)
        )
    )
    things = next(
        (
            token.refs
            for token in reversed(context)
            if any(kind in {"thing", "quantity", "object"} for kind, _ in token.refs)
        ),
        (),
    )
    has_own = False
    for token in tokens:
        if token.tag in {"pron", "poss"}:
            if token.word in _SECOND or token.word in _FIRST:
                token.refs = (("entity", you),)
            elif (
                token.word in _PERSONS
                and len(people) == 1
                and (
                    not is_third
                    or token.word in {"him", "himself"}
                    or (token.tag == "pron" and token.word == "her")
                    or people[0] == you
                )
            ):
                token.refs = (("entity", people[0]),)
            elif (token.word in _PERSONS and not people and is_third) or (
                token.word in {"they", "them", "their"} and is_third and not things
            ):
                token.refs = (("entity", you),)
            elif token.word in _THINGS:
                token.refs = tuple(one for one in things if one[0] in {"thing", "quantity", "object"})
            continue
        for kind, key in token.refs:
            if kind == "entity" and (key != you or is_third):
                people = [*(people if has_own else ()), *([] if key in people and has_own else [key])]
                has_own = True
            elif kind in {"thing", "quantity", "object"}:
                things = token.refs


def read_sentence(
    text: str, names: NameTable, you: str = "you", context: Sequence[Token] = (), *, is_third: bool = False
) -> Sentence:
    """Return the clauses of a sentence without speech.

    Args:
        text: the sentence.
        names: what it may name.
        you: the id of the player.
        context: the tokens of the sentence before.
        is_third: True if the story speaks of the player in the third person.
    """
    tokens = tag_tokens(text, names)
    resolve_pronouns(tokens, you, context, is_third=is_third)
    reader = _ClauseReader(tokens)
    clauses = reader.read()
    found = _UNREAL_SENTENCE.search(text)
    for clause in clauses if found is not None else ():
        # `You remember` is a clause of its own; `in the picture` belongs to the clause around it.
        if any(clause.span[0] <= one.start() < clause.span[1] for one in _UNREAL_SENTENCE.finditer(text)):
            clause.is_asserted = False
    return Sentence(
        text, tokens, clauses, reader.groups, found is not None and not clauses, reader.attributed
    )


class _ClauseReader:
    """Reader of the clauses of tagged tokens."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self.groups: list[tuple[str, Group]] = []
        self.attributed = 0
        self._items = self._chunk()

    def _chunk(self) -> list[Token | Group]:
        """Return the tokens with those of groups joined."""
        items: list[Token | Group] = []
        current: list[Token] = []
        negated = False

        def close() -> None:
            if current:
                items.append(_make_group(current))
                items[-1].is_negated = negated  # type: ignore[union-attr]  # a group
                current.clear()

        for token in self._tokens:
            if token.tag not in _GROUP_TAGS or (current and _begins_group(current, token)):
                close()
            if token.tag in _GROUP_TAGS:
                if not current:
                    before = items[-1] if items else None
                    negated = (
                        isinstance(before, Token)
                        and before.tag == "neg"
                        and before.word in words("no not neither nor")
                    )
                current.append(token)
            else:
                items.append(token)
        close()
        joined = self._join(items)
        before = ""
        for item in joined:
            if isinstance(item, Group):
                self.groups.append((before, item))
                self.groups += [("of", item.of)] if item.of is not None else []
            before = item.word if isinstance(item, Token) and item.tag in {"prep", "to"} else ""
        return joined

    def _join(self, items: Sequence[Token | Group]) -> list[Token | Group]:
        """Join groups with `of`, and lists of groups with `and`."""
        out: list[Token | Group] = []
        place = 0
        while place < len(items):
            item = items[place]
            after = items[place + 1] if place + 1 < len(items) else None
            is_of = isinstance(item, Token) and item.word == "of" and isinstance(after, Group)
            if is_of and out and isinstance(out[-1], Group):
                assert isinstance(after, Group)
                last = out[-1]
                while last.of is not None:
                    last = last.of
                last.of = after
                place += 2
                continue
            out.append(item)
            place += 1
        result: list[Token | Group] = []
        place = 0
        while place < len(out):
            item = out[place]
            after = out[place + 1] if place + 1 < len(out) else None
            is_and = isinstance(item, Token) and item.word == "and" and isinstance(after, Group)
            if is_and and result and isinstance(result[-1], Group) and self._is_list(result, out, place):
                assert isinstance(after, Group)
                result[-1].joined.append(after)
                place += 2
                continue
            result.append(item)
            place += 1
        return result

    def _is_list(self, result: Sequence[Token | Group], out: Sequence[Token | Group], place: int) -> bool:
        """Return True if `and` joins two groups, and not two clauses."""
        following = out[place + 2] if place + 2 < len(out) else None
        is_verb = isinstance(following, Token) and (following.tag in words("verb be have do modal adv neg"))
        before = result[-2] if len(result) > 1 else None
        starts = before is None or (
            isinstance(before, Token) and before.tag in words("break comma speech sub conj adv")
        )
        # `You take x and y nods` has a verb before the first group; `x and y nod` does not.
        return starts if is_verb else True

    def read(self) -> list[Clause]:
        """Return the clauses in order."""
        items, clauses = self._items, []
        starts = self._find_verbs()
        part = 0
        for number, (first, last, main) in enumerate(starts):
            left = starts[number - 1][1] + 1 if number else 0
            region = items[left:first]
            stop = starts[number + 1][0] if number + 1 < len(starts) else len(items)
            part += any(isinstance(one, Token) and one.tag in _HARD for one in region) if number else 0
            clause = self._make_clause(items[first : last + 1], main, first, last)
            clause.part = part
            self._add_subject(clause, region, clauses, first, left)
            self._add_rest(clause, items[last + 1 : stop], is_last=stop == len(items))
            begin = max(
                (
                    n
                    for n, one in enumerate(region)
                    if isinstance(one, Token) and one.tag in words("break comma conj sub speech")
                ),
                default=-1,
            )
            if number == 0 and not any(isinstance(one, Token) and one.tag == "break" for one in region):
                begin = -1
            spanned = [*region[begin + 1 :], *items[first : last + 1]]
            ends = [*(token.end for token in clause.rest), *(_last(one).end for one in spanned)]
            clause.span = (min((_first(one).start for one in spanned), default=0), max(ends, default=0))
            clauses.append(clause)
        self._assert_all(clauses)
        return clauses

    # --- verbs ---

    def _find_verbs(self) -> list[tuple[int, int, Token]]:
        """Return the first item, the last item and the main verb of each verb group."""
        items, found, place = self._items, [], 0
        verbal = words("verb be have do modal to")
        while place < len(items):
            item = items[place]
            if not isinstance(item, Token) or item.tag not in verbal:
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
                if not isinstance(one, Token) or one.tag not in {*verbal, "adv", "neg"} or one.tag == "to":
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
            if not isinstance(item, Token):
                return False
            if item.tag in {"be", "have", "do"} or (
                item.tag == "verb" and item.reading is not None and item.reading.form == BASE
            ):
                return True
            if item.tag not in {"adv", "neg"}:
                return False
        return False

    def _make_clause(self, items: Sequence[Token | Group], main: Token, first: int, last: int) -> Clause:
        tokens = [item for item in items if isinstance(item, Token)]
        aux = [token for token in tokens if token is not main and token.tag in words("be have do modal to")]
        reading = main.reading if main.tag == "verb" else None
        verb = (
            reading.lemma
            if reading is not None
            else {"be": "be", "have": "have", "do": "do"}.get(main.tag, "")
        )
        form = reading.form if reading is not None else _form_of(main.word)
        before = self._items[first - 1] if first else None
        clause = Clause(
            verb, reading.senses if reading is not None else words("stative"), form, None, first, last
        )
        told_words = {token.word for token in aux}
        tags = [token.tag for token in aux]
        clause.modal = next((token.word for token in aux if token.tag == "modal"), "")
        clause.is_infinitive = "to" in tags or (
            form == GERUND and not aux and isinstance(before, Token) and before.tag == "prep"
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
        clause.is_past = bool(told_words & past_words) or (
            not aux and (form == PAST or main.word in past_words)
        )
        if form == PARTICIPLE and has_be and not clause.is_passive:
            clause.is_perfect = True
        clause.is_negative = any(token.tag == "neg" for token in tokens) or clause.modal == "cannot"
        clause.adverbs = {token.word for token in tokens if token.tag == "adv" or token.word == "never"}
        if (
            form == PARTICIPLE
            and isinstance(before, Token)
            and before.tag == "verb"
            and before.word in words_of("function", "get")
        ):
            clause.is_passive = True
        place = first - 1
        while place >= 0:
            item = self._items[place]
            if not isinstance(item, Token) or item.tag not in {"adv", "neg"}:
                break
            clause.is_negative |= item.tag == "neg"
            clause.adverbs.add(item.word)
            place -= 1
        return clause

    # --- subjects and objects ---

    def _add_subject(
        self,
        clause: Clause,
        region: Sequence[Token | Group],
        clauses: Sequence[Clause],
        first: int,
        left: int,
    ) -> None:
        """Find the subject in the items between the verb before and this one."""
        previous = clauses[-1] if clauses else None
        cut = max(
            (
                n
                for n, one in enumerate(region)
                if isinstance(one, Token) and one.tag in words("break comma conj sub speech")
            ),
            default=-1,
        )
        hard = max(
            (n for n, one in enumerate(region) if isinstance(one, Token) and one.tag == "break"), default=-1
        )
        for token in region[hard + 1 :]:
            if isinstance(token, Token) and token.tag == "sub":
                clause.subordinator = token.word
            if isinstance(token, Token) and token.tag in {"adv", "neg"}:
                clause.adverbs.add(token.word)
                clause.is_negative |= token.word in {"never", "neither", "nor"}
        joint = max(
            (
                n
                for n, one in enumerate(region)
                if isinstance(one, Token) and one.tag in words("break conj sub speech")
            ),
            default=-1 if previous is None else cut,
        )
        for item, after in zip(region[joint + 1 :], region[joint + 2 :], strict=False):
            if previous is None or cut >= 0:
                if isinstance(item, Token) and item.tag == "prep" and isinstance(after, Group):
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
            nothing_else = all(
                not isinstance(one, Token) or one.tag in {"adv", "neg", "det"} for one in region
            )
            if previous is not None and (not has_boundary and (clause.subordinator or nothing_else or True)):
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
                place = max(n for n, one in enumerate(region) if isinstance(one, Token) and one.tag == "sub")
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
                    if isinstance(one, Token) and one.tag in {"comma", "speech"}
                ),
            ]
            for start in starts:
                found = self._subject_in(chunk[start:], is_first=True)
                if found is not None:
                    clause.subject = found
                    return
        is_relative = any(
            isinstance(one, Token) and one.word == "that" and one.tag in {"sub"} for one in region[-1:]
        )
        if is_relative:
            groups = [one for one in self._items[:first] if isinstance(one, Group)]
            clause.subject = groups[-1] if groups else None
            return
        # `"…," says Delta` has its subject behind the verb.
        speech = any(isinstance(one, Token) and one.tag == "speech" for one in region[-1:])
        follow = self._items[clause.end + 1] if clause.end + 1 < len(self._items) else None
        if speech and isinstance(follow, Group):
            clause.subject = follow
            clause.is_fronted = True
            return
        if previous is not None:
            clause.subject = previous.subject
            clause.copied_subject = True
            joins = [one.word for one in region if isinstance(one, Token) and one.tag in {"comma", "conj"}]
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
        cut = next((n for n, one in enumerate(items) if isinstance(one, Token) and one.tag == "comma"), None)
        if cut is None:
            return None
        return next((one for one in items[cut + 1 :] if isinstance(one, Group)), None)

    def _subject_in(self, items: Sequence[Token | Group], *, is_first: bool = False) -> Group | None:
        """Return the first group without a preposition."""
        after_preposition = False
        for item in items:
            if isinstance(item, Token):
                if item.tag in {"prep", "to"}:
                    after_preposition = True
                elif item.tag in {"comma", "break", "speech"} and is_first:
                    return None
                continue
            if not after_preposition and not _is_time(item):
                return item
            after_preposition = False
        return None

    def _add_rest(self, clause: Clause, items: Sequence[Token | Group], *, is_last: bool) -> None:
        """Add the objects and phrases between this verb and the next clause."""
        stop = len(items)
        for place, item in enumerate(items):
            if isinstance(item, Token) and item.tag in {"break", "sub"}:
                stop = place
                break
        if not is_last and stop == len(items):
            cuts = [
                n
                for n, one in enumerate(items)
                if isinstance(one, Token) and one.tag in {"comma", "conj", "speech"}
            ]
            if cuts:
                stop = cuts[-1]
        preposition = ""
        for item in items[:stop]:
            if isinstance(item, Group):
                if preposition:
                    clause.phrases.append((preposition, item))
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
                    clause.adverbs.add(item.word)
                elif item.tag == "neg":
                    following = items[items.index(item) + 1] if items.index(item) + 1 < len(items) else None
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
                        isinstance(following, Token)
                        and item.word == "no"
                        and following.tag in {"adv", "noun"}
                    )
                    clause.is_negative |= item.word in {"not", "never", "n't"} or compares
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
                    ):
                        clause.objects.insert(0, clause.phrases.pop(0)[1])

    # --- what is asserted ---

    def _assert_all(self, clauses: Sequence[Clause]) -> None:
        """Set which clauses the narrator asserts."""
        is_conditional: dict[int, bool] = {}
        for clause in clauses:
            if clause.subordinator in {"if", "unless"} and not self._is_as(clause):
                is_conditional[clause.part] = True
        for clause in clauses:
            clause.is_asserted = self._is_asserted(clause) and not is_conditional.get(clause.part, False)
        for place, clause in enumerate(clauses):
            if self._is_attribution(clause):
                for one in clauses:
                    one.is_asserted &= one is clause or one.part > clause.part
                self.attributed = max(self.attributed, clause.span[0])
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

    def _is_attribution(self, clause: Clause) -> bool:
        """Return True for `…, Delta says` behind told_words that have no quotes."""
        if (
            clause.base in _SAYING
            and clause.copied_subject
            and clause.form in {PAST, PARTICIPLE}
            and clause.start
        ):
            before, after = (
                self._items[clause.start - 1],
                self._items[min(clause.end + 1, len(self._items) - 1)],
            )
            is_inverted = isinstance(after, Group) and bool(after.head.refs or after.tokens[0].tag == "det")
            if is_inverted and isinstance(before, Token) and before.word in {",", "?", "!"}:
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
            isinstance(before, Token)
            and before.tag in {"comma", "break"}
            and before.word in {",", "?", "!"}
            and not any(
                one.word not in words("you me him her") and one is not clause.subject
                for one in clause.objects
            )
        )

    def _is_as(self, clause: Clause) -> bool:
        tokens = [one for one in self._items[: clause.start] if isinstance(one, Token)]
        told_words = [token.word for token in tokens]
        return (
            "if" in told_words
            and told_words.index("if") > 0
            and told_words[told_words.index("if") - 1] in words("as even only wonder wonders ask asks see")
        )

    def _is_asserted(self, clause: Clause) -> bool:
        if clause.modal in words("could would may might should must ought will shall 'll 'd"):
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

    def _is_relative(self, clause: Clause) -> bool:
        """Return True for `the day when …`."""
        place = next(
            (n for n in range(clause.start - 1, 0, -1) if getattr(self._items[n], "tag", "") == "sub"), 0
        )
        return place > 0 and isinstance(self._items[place - 1], Group)

    def _is_unreal_subordinator(self, clause: Clause) -> bool:
        word = clause.subordinator
        return word in words("if unless whether until till before lest than") or (
            word == "as" and self._is_as(clause)
        )

    def _is_real_infinitive(self, clause: Clause, governor: Clause) -> bool:
        """Return True for `manages to …`, but not for `wants to …`."""
        if not governor.is_asserted or governor.is_negative:
            return False
        before = self._items[clause.start - 1] if clause.start else None
        is_gerund = clause.form == GERUND and isinstance(before, Token)
        if is_gerund:
            return isinstance(before, Token) and before.word in {"by", "upon", "after"}
        return governor.base in _REAL_VERBS


def _first(item: Token | Group) -> Token:
    return item if isinstance(item, Token) else item.tokens[0]


def _last(item: Token | Group) -> Token:
    return item if isinstance(item, Token) else item.tokens[-1]


def _form_of(word: str) -> str:
    return {
        "being": GERUND,
        "having": GERUND,
        "doing": GERUND,
        "been": PARTICIPLE,
        "be": BASE,
        "done": PARTICIPLE,
    }.get(word, PAST if word in words("was were had did") else "third")


def _is_time(group: Group) -> bool:
    return (
        group.word in _TIMES
        and len(group.tokens) > 1
        and group.tokens[0].word in words("this that a one every each the all for")
    )


def _begins_group(current: Sequence[Token], token: Token) -> bool:
    """Return True if a token begins a group of its own behind others."""
    last = current[-1]
    if token.tag == "pron":
        return True
    if last.tag == "pron":
        return token.tag != "own"
    if token.tag in {"det", "poss"}:
        return last.tag not in {"det"} and not (last.tag == "num" and token.tag == "poss")
    if token.tag == "own":
        return False
    if token.tag in {"adj"}:
        return last.tag in {"noun", "name"}
    if token.tag == "num":
        return last.tag in {"noun", "name"}
    if token.tag == "name" and last.tag == "name":
        return True
    if token.tag == "noun" and last.tag == "name" and any(kind == "entity" for kind, _ in last.refs):
        return True
    if token.tag == "name" and last.word in words_of("words", "body") | words_of("words", "holder"):
        return True
    return token.tag == "noun" and last.tag == "name" and False


def _make_group(tokens: Sequence[Token]) -> Group:
    owner: tuple[Ref, ...] = ()
    start = 0
    for place, token in enumerate(tokens):
        if token.tag == "own" and place:
            owner, start = tokens[place - 1].refs or (("other", tokens[place - 1].word),), place + 1
        elif token.tag == "poss":
            owner = token.refs or (("other", token.word),)
    kept = list(tokens[start:]) or list(tokens)
    return Group(kept, owner)


def _tokens_of(group: Group) -> Iterable[Token]:
    yield from group.tokens
    if group.of is not None:
        yield from _tokens_of(group.of)
    for one in group.joined:
        yield from _tokens_of(one)
