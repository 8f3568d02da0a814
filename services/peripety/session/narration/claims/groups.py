"""Groups of words: nouns with what belongs to them, joined by `of` and `and`, and what pronouns stand for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.session.narration.claims.clauses import Group
from peripety.session.narration.claims.words import Word, words, words_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.session.narration.claims.words import Ref


_GROUP_TAGS = words("det poss num adj noun name pron own")


def read_groups(tokens: Sequence[Word]) -> tuple[list[Word | Group], list[tuple[str, Group]]]:
    """Return the tokens with those of groups joined, and the groups with the prepositions before them."""
    items: list[Word | Group] = []
    current: list[Word] = []
    negated = False

    def close() -> None:
        if current:
            items.append(_make_group(current, is_negated=negated))
            current.clear()

    for token in tokens:
        if token.tag not in _GROUP_TAGS or (current and _begins_group(current, token)):
            close()
        if token.tag in _GROUP_TAGS:
            if not current:
                before = items[-1] if items else None
                negated = (
                    isinstance(before, Word)
                    and before.tag == "neg"
                    and before.word in words("no not neither nor")
                )
            current.append(token)
        else:
            items.append(token)
    close()
    joined, groups = _join(items), []
    preposition = ""
    for item in joined:
        if isinstance(item, Group):
            groups.append((preposition, item))
            groups += [("of", item.of)] if item.of is not None else []
        preposition = item.word if isinstance(item, Word) and item.tag in {"prep", "to"} else ""
    return joined, groups


def _join(items: Sequence[Word | Group]) -> list[Word | Group]:
    """Join groups with `of`, and lists of groups with `and`."""
    out: list[Word | Group] = []
    place = 0
    while place < len(items):
        item = items[place]
        after = items[place + 1] if place + 1 < len(items) else None
        is_of = isinstance(item, Word) and item.word == "of"
        if is_of and isinstance(after, Group) and out and isinstance(out[-1], Group):
            last = out[-1]
            while last.of is not None:
                last = last.of
            last.of = after
            place += 2
            continue
        out.append(item)
        place += 1
    result: list[Word | Group] = []
    place = 0
    while place < len(out):
        item = out[place]
        after = out[place + 1] if place + 1 < len(out) else None
        is_and = isinstance(item, Word) and item.word == "and"
        if (
            is_and
            and isinstance(after, Group)
            and result
            and isinstance(result[-1], Group)
            and _is_list(result, out, place)
        ):
            result[-1].joined.append(after)
            place += 2
            continue
        result.append(item)
        place += 1
    return result


def _is_list(result: Sequence[Word | Group], out: Sequence[Word | Group], place: int) -> bool:
    """Return True if `and` joins two groups, and not two clauses."""
    following = out[place + 2] if place + 2 < len(out) else None
    is_verb = isinstance(following, Word) and (following.tag in words("verb be have do modal adv neg"))
    before = result[-2] if len(result) > 1 else None
    starts = before is None or (
        isinstance(before, Word) and before.tag in words("break comma speech sub conj adv")
    )
    # `You take x and y nods` has a verb before the first group; `x and y nod` does not.
    return starts if is_verb else True


def _begins_group(current: Sequence[Word], token: Word) -> bool:
    """Return True if a token begins a group of its own behind others."""
    last = current[-1]
    if token.tag == "pron":
        return True
    if last.tag == "pron":
        return token.tag != "own"
    if token.tag in {"det", "poss"}:
        return last.tag != "det" and not (last.tag == "num" and token.tag == "poss")
    if token.tag == "own":
        return False
    if token.tag == "adj":
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


def _make_group(tokens: Sequence[Word], *, is_negated: bool) -> Group:
    owner: tuple[Ref, ...] = ()
    start = 0
    for place, token in enumerate(tokens):
        if token.tag == "own" and place:
            owner, start = tokens[place - 1].refs or (("other", tokens[place - 1].word),), place + 1
        elif token.tag == "poss":
            owner = token.refs or (("other", token.word),)
    kept = list(tokens[start:]) or list(tokens)
    return Group(kept, owner, is_negated=is_negated)


_PERSONS = words("he she him her his himself herself")
_FIRST = words("i me my we us our myself ourselves")
_SECOND = words("you your yourself yours")
_THINGS = words("it them they its which")


def resolve_pronouns(
    tokens: Sequence[Word],
    you: str,
    context: Sequence[Word] = (),
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
    named = {key for token in tokens for kind, key in token.refs if kind == "entity" and key != you}
    if not people and not is_third and len(named) == 1:
        # `With the token in her hand Delta …`
        people = [*named]
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
