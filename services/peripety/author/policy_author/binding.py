"""Binding of a meaning to tools: the calls that its words describe, and tests of their arguments."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from peripety.author.policy_author.formulas import all_of, any_of, replace_leaves
from peripety.author.policy_author.meaning import (
    AGENTS,
    CALLERS,
    AmbiguousError,
    NotFollowedError,
    Phrase,
    join_text,
)
from peripety.author.policy_author.sentences import singular, stem, stems, verb_stems
from peripety.author.policy_author.tokens import scale_number, to_number
from peripety.author.policy_author.vocabulary import (
    ALL_CALLS,
    KINDS,
    PLACE_WORDS,
    UNITS_OF_TIME,
    DescribedTool,
    Test,
    has_verb,
    is_described,
    is_named,
    is_valid_entry,
    to_presence,
    word_stems,
)
from peripety.engine.policies.types import CONTEXT_PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from peripety.author.policy_author.formulas import Formula
    from peripety.author.policy_author.meaning import CallGroup
    from peripety.author.policy_author.tokens import Literal, WordToken


_ANNOTATIONS = {
    "read-only": "read_only",
    "readonly": "read_only",
    "destructive": "destructive",
    "irreversible": "destructive",
}
_CURRENCIES = {
    **{code: code for code in ("usd", "eur", "gbp", "jpy", "chf")},
    "dollar": "usd",
    "dollars": "usd",
    "euro": "eur",
    "euros": "eur",
    "pound": "gbp",
    "pounds": "gbp",
    "yen": "jpy",
}
_DOLLARS = frozenset({"usd", "cad", "aud", "nzd", "sgd", "hkd"})
_MEASURES = frozenset({"long"})
_WORDS = {"WORD", "APPROVE", "ASK"}
_GIVEN = frozenset({"given", "set", "present", "specified", "stated", "attached"})
_USERS = frozenset({"user", "users"})
_HOLDS = frozenset({"hold", "holds"})
_MARKS = {"DETERMINER", "QUANTIFIER", "EITHER"}
_JOINS = {"COMMA", "AND", "OR"}
_PLAIN = {"WORD", "NAME", "VALUE", "BOUND", "NUMBER", *_JOINS, *_MARKS}
_ANY = frozenset({"a", "an", "any", "all", "each", "every", "no"})
_NO_ROLES = frozenset(
    {
        *("user", "person", "people", "human", "customer", "client", "member", "employee", "staff", "team"),
        *("owner", "creator", "sender", "recipient", "requester", "holder", "participant", "colleague"),
    }
)
"""Nouns for people that depend on the call, or that mean anyone: they are not roles of the caller."""
_EXCLUDING = ("non-", "ex-")
_VAGUE = {"ELSE", "POSSESSIVE", "PRONOUN", "NOONE", "NOTHING", "NO", "SAME"}


@dataclass(frozen=True)
class BoundGroup:
    """Calls of tools that a group of words describes.

    Attributes:
        tools: the tools.
        words: the words of the group, for arguments that they mention.
        condition: the tests of arguments in the words, on top of the condition of the group.
        named: the tools whose full name the words contain.
        is_all: True if the words describe calls of all tools.
    """

    tools: tuple[DescribedTool, ...]
    words: tuple[str, ...]
    condition: Formula = True
    named: frozenset[DescribedTool] = frozenset()
    is_all: bool = False


class Vocabulary:
    """Words of some tools and lists.

    Args:
        tools: the tools.
        lists: the value kind of each list that a policy may reference as `@name`.
    """

    def __init__(self, tools: Sequence[DescribedTool], lists: Mapping[str, str]) -> None:
        self.tools = tuple(tools)
        self.lists = lists
        self._names = {tool.name for tool in tools}
        self._servers = {tool.server for tool in tools}
        choices = (choice for tool in tools for one in tool.arguments for choice in one.choices)
        self._nouns = frozenset().union(stems(" ".join(choices)), *(tool.names for tool in tools))

    def has_verb(self, words: Sequence[str]) -> bool:
        """Return True if a word is a form of the verb of some tool."""
        return any(has_verb(tool, words) for tool in self.tools)

    def bind_groups(
        self, groups: Sequence[CallGroup], *, is_stopping: bool
    ) -> list[tuple[CallGroup, BoundGroup]]:
        """Return the tools of each group of words.

        A group without a verb has the verb of the group before; one without an object that a tool needs has
        the object of the group behind: "open and read items".

        Raises:
            NotFollowedError: a word belongs to no tool.
        """
        completed = self._complete_groups(groups)
        return [(group, self._bind_group(group, is_stopping=is_stopping)) for group in completed]

    def _complete_groups(self, groups: Sequence[CallGroup]) -> list[CallGroup]:
        completed: list[CallGroup] = []
        verb: tuple[WordToken, ...] = ()
        is_bare = False
        for number, group in enumerate(groups):
            tokens = group.tokens
            if group.antecedent:
                tokens = (*tokens, *(one for one in group.antecedent if not self.has_verb([one.text])))
            words = [one for one in tokens if one.kind in _WORDS]
            verbs = tuple(one for one in words if self.has_verb([one.text]))
            named = any(
                one.kind == "NAME" and one.literal and one.literal.value in self._names for one in tokens
            )
            if not verbs and verb and not named:
                if is_bare:
                    # "Delete or messages"
                    raise NotFollowedError(join_text(tokens))
                tokens = (*verb, *tokens)
            elif verbs and len(verbs) == len(words) and number + 1 < len(groups) and not named:
                behind = groups[number + 1].tokens
                nouns = tuple(one for one in behind if one.kind in _WORDS and not self.has_verb([one.text]))
                if not any(is_named(tool, _texts(words)) for tool in self.tools):
                    tokens = (*tokens, *nouns)
            is_bare = bool(verbs) and tuple(group.tokens) == verbs
            verb = verbs or verb
            completed.append(replace(group, tokens=tokens))
        return completed

    def _bind_group(self, group: CallGroup, *, is_stopping: bool) -> BoundGroup:
        tokens = group.tokens
        names = {one.literal.value for one in tokens if one.kind == "NAME" and one.literal}
        words = [
            one.text for place, one in enumerate(tokens) if one.kind in _WORDS and not _is_unit(tokens, place)
        ]
        flags = {_ANNOTATIONS[word.casefold()] for word in words if word.casefold() in _ANNOTATIONS}
        words = [word for word in words if word.casefold() not in _ANNOTATIONS]
        kinds = {one.kind for one in tokens}
        vague = kinds & {"POSSESSIVE", "PRONOUN", "EVERYONE", "NOONE", "NO", "SAME"}
        is_all = (bool(word_stems(words) & ALL_CALLS) and bool(kinds & {"QUANTIFIER", "ELSE"})) or (
            not words and {"ANYTHING", "ELSE"} <= kinds
        )
        if vague or ("ELSE" in kinds and not (is_stopping or is_all)):
            raise NotFollowedError(join_text(tokens))
        if kinds & {"ANYTHING", "NOTHING"}:
            return self._bind_anything(tokens, words, kinds, is_stopping=is_stopping)
        if flags:
            if (
                len(flags) > 1
                or word_stems(words) - ALL_CALLS
                or kinds - {"WORD", "DETERMINER", "QUANTIFIER"}
            ):
                raise NotFollowedError(join_text(tokens))
            (flag,) = flags
            return BoundGroup(tuple(one for one in self.tools if one.document.get(flag)), ())
        named = [tool for tool in self.tools if tool.name in names]
        of_words = [tool for tool in self.tools if is_named(tool, words)]
        if not is_stopping:
            # "Items may be made" names `make_item`, and not all that the server `items` makes.
            whole = [tool for tool in of_words if word_stems(words) & {*tool.parts[1:]}]
            of_words = whole or of_words
        tools = named or of_words
        if not tools:
            tools = self._match_words(words, kinds, is_all=is_all, is_stopping=is_stopping)
        if not tools:
            # The sentence is about no tool that is known: none of it is followed.
            raise NotFollowedError("")
        found = self._check_words(tools, words, is_all=is_all, is_stopping=is_stopping)
        condition = self._read_embedded(tokens, names, tools)
        said = [tool for tool in tools if tool in named or frozenset(tool.parts) <= word_stems(words)]
        return BoundGroup(
            tuple(tools), tuple(words), all_of(found, condition), frozenset(said), is_all=is_all and not said
        )

    def _bind_anything(
        self, tokens: Sequence[WordToken], words: Sequence[str], kinds: set[str], *, is_stopping: bool
    ) -> BoundGroup:
        """Return the tools for "everything else", and for "nothing may be written"."""
        if kinds - {"WORD", "ANYTHING", "NOTHING", "ELSE"} or (words and not is_stopping):
            raise NotFollowedError(join_text(tokens))
        if not words:
            return BoundGroup(self.tools, (), is_all=True)
        said = word_stems(words)
        tools = [
            tool
            for tool in self.tools
            if has_verb(tool, words)
            or any(tool.roles_mentioned(one.kind, said) for one in tool.arguments if one.role)
        ]
        if not tools or not said <= frozenset().union(*(tool.words for tool in tools)):
            raise NotFollowedError(join_text(tokens))
        return BoundGroup(tuple(tools), tuple(words))

    def _match_words(
        self, words: Sequence[str], kinds: set[str], *, is_all: bool, is_stopping: bool
    ) -> list[DescribedTool]:
        """Return the tools for words that contain no full name."""
        said = word_stems(words)
        if is_all and not (said - ALL_CALLS):
            return list(self.tools)
        if any(has_verb(tool, words) for tool in self.tools):
            return self._match_verbs(words, is_stopping=is_stopping)
        found: list[DescribedTool] = []
        if (is_stopping or "BOUND" in kinds) and said and not is_all:
            found = self._match_objects(words)
        if not found and is_stopping:
            found = [tool for tool in self.tools if is_described(tool, said)]
        return found

    def _match_verbs(self, words: Sequence[str], *, is_stopping: bool) -> list[DescribedTool]:
        """Return the tools whose verb is among the words, if the other words fit."""
        with_verb = [tool for tool in self.tools if has_verb(tool, words)]
        nouns = [word for word in words if not any(has_verb(tool, [word]) for tool in with_verb)]
        fitting = [tool for tool in with_verb if word_stems(nouns) <= tool.names | PLACE_WORDS | ALL_CALLS]
        fitting = fitting or [
            tool for tool in with_verb if all(_describes_argument(tool, word) for word in nouns)
        ]
        if is_stopping:
            return fitting or with_verb
        # "It may read" leaves open which of the tools that read.
        return fitting if nouns or len(fitting) == 1 else []

    def _match_objects(self, words: Sequence[str]) -> list[DescribedTool]:
        """Return the tools whose object, or else whose arguments, all words are about."""
        found = [
            tool
            for tool in self.tools
            if word_stems(word for word in words if _test_of_word(tool, word) is None)
            <= tool.objects | frozenset(tool.parts)
        ]
        # A noun that is the object of a tool is not meant as a value of an argument of another tool.
        said = word_stems(words)
        found = [tool for tool in found if said & (tool.objects | {*tool.parts})] or found
        return found or [tool for tool in self.tools if said <= tool.names]

    def _check_words(
        self, tools: Sequence[DescribedTool], words: Sequence[str], *, is_all: bool, is_stopping: bool
    ) -> Formula:
        """Account for each word of a group; return the tests of arguments in its words: "urgent", "force"."""
        names = frozenset().union(*(tool.names for tool in tools))
        described = frozenset().union(*(tool.words for tool in tools)) if is_stopping else frozenset()
        objects = frozenset().union(*(tool.objects for tool in tools))
        found: list[Formula] = []
        for word in words:
            of_verb = any(has_verb(tool, [word]) for tool in tools)
            root = stem(word)
            if of_verb or stems(word) <= objects:
                continue
            tests = [_test_of_word(tool, word) for tool in tools]
            if all(tests):
                found.append(_WordTest(word))
                continue
            known = names | described | PLACE_WORDS | (ALL_CALLS if is_all or is_stopping else frozenset())
            if not (root in known or stems(word) <= known):
                raise NotFollowedError(word)
        return all_of(*found)

    def _read_embedded(
        self, tokens: Sequence[WordToken], names: set[str], tools: Sequence[DescribedTool]
    ) -> Formula:
        """Return the condition of literals and numbers among the words of a group."""
        values = [
            one
            for one in tokens
            if one.kind in {"VALUE", "BOUND", "NUMBER"}
            or (one.kind == "NAME" and one.literal and one.literal.value not in self._names | self._servers)
        ]
        if not values:
            return True
        del names, tools
        kept = tuple(one for one in tokens if one in values or one.kind == "WORD")
        return Phrase("", kept)

    # ---- Conditions

    def bind_formula(
        self,
        formula: Formula,
        tool: DescribedTool,
        group: BoundGroup,
        *,
        is_stopping: bool,
    ) -> Formula:
        """Return the formula with tests of the tool in place of phrases.

        Raises:
            NotFollowedError: a phrase has no argument in the tool, or a word that belongs to no argument.
        """

        def bind(leaf: Any) -> Formula:
            if isinstance(leaf, Phrase):
                return self._bind_phrase(leaf, tool, group, is_stopping=is_stopping)
            if isinstance(leaf, _WordTest):
                test = _test_of_word(tool, leaf.word)
                if test is None:
                    raise NotFollowedError(leaf.word)
                return test
            return leaf

        return replace_leaves(formula, bind)

    def _bind_phrase(
        self, phrase: Phrase, tool: DescribedTool, group: BoundGroup, *, is_stopping: bool
    ) -> Formula:
        kinds = {one.kind for one in phrase.tokens}
        words = [one.text for one in phrase.tokens if one.kind in _WORDS]
        if kinds & _VAGUE or kinds & {"APPROVE", "ASK"} or (phrase.has_value and kinds - _PLAIN):
            raise NotFollowedError(phrase.text)
        caller = self._bind_caller(phrase, words, tool)
        if caller is not None:
            return caller
        if phrase.preposition == "BY" and (phrase.has_value or not _choice_words(words, tool)):
            raise NotFollowedError(phrase.text)
        if not phrase.has_value:
            return self._bind_words(phrase, words, tool)
        tests: list[Formula] = []
        numbers = [one for one in phrase.tokens if one.kind in {"BOUND", "NUMBER"}]
        if numbers:
            tests += self._bind_numbers(numbers, tool, phrase)
        literals = [one.literal for one in phrase.tokens if one.literal is not None]
        if literals and numbers:
            raise NotFollowedError(phrase.text)
        if literals:
            tests += self._bind_literals(literals, words, tool, group, phrase, is_stopping=is_stopping)
        return all_of(*tests)

    def _bind_caller(self, phrase: Phrase, words: Sequence[str], tool: DescribedTool) -> Formula | None:
        """Return the test of the roles of the caller; None if the phrase is about something else."""
        kinds = {one.kind for one in phrase.tokens}
        lower = {word.casefold() for word in words}
        is_by = phrase.preposition == "BY"
        if kinds - {"WORD", "NAME", "EVERYONE", *_JOINS, *_MARKS}:
            return None
        if "NAME" not in kinds:
            is_any = kinds <= {"EVERYONE"} or lower <= AGENTS or ("QUANTIFIER" in kinds and lower <= CALLERS)
            if is_by and is_any:
                return True
            nouns = self._role_nouns(phrase.tokens) if is_by or lower & CALLERS else ()
            kind = "compound" if any("_" in one for one in nouns) else ""
            return Test("roles", kind=kind, values=nouns) if nouns else None
        names = tuple(one.literal.value for one in phrase.tokens if one.literal)
        is_context = names[0].startswith(CONTEXT_PREFIX) and len(names) == 1
        is_role = bool(lower & {"role", "roles"})
        is_caller = bool(lower & CALLERS) or (is_role and bool(lower & _USERS))
        if not phrase.preposition and lower <= _HOLDS and is_context:
            # "If `context.a` holds"
            return Test("roles", values=names)
        is_about_roles = lower <= CALLERS | _USERS | {"role", "roles"} and (is_role or is_caller)
        # "Created with the role `a`" is about an argument.
        is_argument = not (is_caller or is_by) and any("rol" in one.words for one in tool.arguments)
        return Test("roles", values=names) if is_about_roles and not is_argument else None

    def _role_nouns(self, tokens: Sequence[WordToken]) -> tuple[str, ...]:
        """Return the roles of nouns for callers: "managers", "a clerk", "admins or editors"; else nothing.

        A noun in the plural or with "a" or "any" stands for the role with the name of its singular. "The
        owner" depends on the call, and a noun of a tool is not a role. Several words are the
        name of one role, with any sign between them: "night managers".
        """
        roles: list[str] = []
        marks: set[str] = set()
        words: list[str] = []
        for token in (*tokens, None):
            if token is None or token.kind in _JOINS:
                if not words and not marks:
                    continue
                role = self._role_of_noun(words, marks)
                if role is None:
                    return ()
                roles.append(role)
                words, marks = [], set()
            elif token.kind in _MARKS:
                marks.add(token.text.casefold())
            elif token.kind == "EVERYONE":
                return ()
            elif token.text.casefold() in CALLERS:
                # "The caller is an admin"
                marks = set()
            else:
                words.append(token.text.casefold())
        if len(roles) > 1 and any("_" in one for one in roles):
            # "Half guests and managers": the word in front may have another meaning.
            return ()
        return tuple(dict.fromkeys(one.replace("_", sign) for one in roles for sign in "_- "))

    def _role_of_noun(self, words: Sequence[str], marks: set[str]) -> str | None:
        if not words or marks - _ANY - {"either"}:
            return None
        *others, word = words
        if word.startswith(_EXCLUDING):
            # "Non-managers" are callers without a role.
            return None
        is_plural = word.endswith("s") and not word.endswith("ss")
        role = singular(word) if is_plural else word
        if not (is_plural or marks & _ANY) or role in _NO_ROLES or stems(word) & self._nouns:
            return None
        return "_".join((*others, role))

    def _bind_words(self, phrase: Phrase, words: Sequence[str], tool: DescribedTool) -> Formula:
        """Account for a phrase without a value: its words restrict nothing, or they name a server."""
        said = word_stems(words)
        server = stem("server")
        kinds = {one.kind for one in phrase.tokens}
        if server in said:
            return self._bind_server(said - {server}, (), phrase, tool)
        if phrase.preposition == "WITH" and (present := _bind_presence(phrase, said, tool)) is not None:
            return present
        if phrase.is_test:
            given = None if phrase.preposition else _bind_given(phrase, words, tool)
            return given or _bind_choice(phrase, words, tool)
        if kinds <= {"EVERYONE"} or kinds <= {"ANYWHERE"} or kinds <= {"ANYTHING"}:
            return True
        if not words or kinds - {"WORD", *_JOINS, *_MARKS}:
            raise NotFollowedError(phrase.text)
        is_object = said <= tool.objects | frozenset(tool.parts) and phrase.preposition != "WITH"
        if not is_object and _choice_words(words, tool):
            return _bind_choice(phrase, words, tool)
        is_definite = any(one.kind == "DETERMINER" and one.text.casefold() == "the" for one in phrase.tokens)
        is_plain = "QUANTIFIER" in kinds or (not is_definite and phrase.preposition != "WITH")
        if is_object or (not kinds & _JOINS and said <= tool.names and is_plain):
            return True
        raise NotFollowedError(phrase.text)

    def _bind_server(
        self, said: frozenset[str], names: Sequence[str], phrase: Phrase, tool: DescribedTool
    ) -> Formula:
        servers = [one for one in self._servers if one in names or (not names and stems(one) == said)]
        if len(servers) != 1 or (names and said):
            raise NotFollowedError(phrase.text)
        return tool.server == servers[0]

    def _bind_numbers(
        self, numbers: Sequence[WordToken], tool: DescribedTool, phrase: Phrase
    ) -> list[Formula]:
        """Return the tests of the number that a phrase names by its unit, or by the words in front of it."""
        first, last = phrase.tokens.index(numbers[0]), phrase.tokens.index(numbers[-1])
        unit = [
            one.text
            for one in phrase.tokens[last + 1 :]
            if one.kind == "WORD" and one.text.casefold() not in _MEASURES
        ]
        before = [one.text for one in phrase.tokens[:first] if one.kind == "WORD"]
        is_money = any(word.casefold() in _CURRENCIES for word in unit)
        unit = _read_currency(unit, tool)
        # "At most 5 EUR": a value of another argument.
        chosen = [word for word in unit if (test := _test_of_word(tool, word)) and test.values != (True,)]
        unit = [word for word in unit if word not in chosen]
        argument = tool.number_argument(word_stems(unit or before)) if unit or before else None
        scale: float = 1
        if is_money and not unit:
            argument = tool.money_argument(word_stems(before))
        elif argument is None and len(unit) == 1 and (timed := tool.time_argument(unit[0])) is not None:
            # "Longer than 2 hours", with an argument in minutes
            argument, scale = timed
            unit = []
        is_head = not phrase.preposition and all(
            has_verb(tool, [word]) or stems(word) <= tool.objects for word in before
        )
        if (
            argument is None
            and not (unit or is_money)
            and (is_head or not before)
            and not phrase.has("NUMBER")
        ):
            # "Payments of at most 5": the only number of the call.
            argument = tool.number_argument(frozenset())
        if argument is None and sum(one.is_number for one in tool.arguments) > 1 and not unit:
            raise AmbiguousError(phrase.text)
        known = tool.words if argument is None else tool.words | argument.words
        accounted = all(has_verb(tool, [word]) or stems(word) <= known for word in (*unit, *before))
        between = {one.kind for one in phrase.tokens[first : last + 1]}
        if argument is None or not accounted or between - {"BOUND", "NUMBER", "COMMA", "AND", "OR"}:
            raise NotFollowedError(phrase.text)
        extra = [_bind_choice(phrase, chosen, tool)] if chosen else []
        plain = tuple(scale_number(to_number(one.text), scale) for one in numbers if one.kind == "NUMBER")
        ranges: list[Formula] = [
            all_of(*(Test("bound", (argument.name,), bound=bound.scaled(scale)) for bound in one.bounds))
            for one in numbers
            if one.bounds
        ]
        if plain and ranges:
            raise NotFollowedError(phrase.text)
        if plain:
            return [*extra, Test("choice", (argument.name,), values=plain)]
        # "Less than 50 or more than 150"
        return [*extra, any_of(*ranges) if "OR" in between else all_of(*ranges)]

    def _bind_literals(
        self,
        literals: Sequence[Literal],
        words: Sequence[str],
        tool: DescribedTool,
        group: BoundGroup,
        phrase: Phrase,
        *,
        is_stopping: bool,
    ) -> list[Formula]:
        said = word_stems(words)
        server = stem("server")
        names = [one.value for one in literals if one.kind == "name"]
        if server not in said and any(one in self._names for one in names):
            # "All tools other than `a`" is about a tool, not about an argument.
            raise NotFollowedError(phrase.text)
        if server in said and names:
            return [self._bind_server(said - {server}, names, phrase, tool)]
        kinds: dict[str, list[str]] = {}
        for literal in literals:
            kind, value = self._value_kind(literal, tool, phrase)
            kinds.setdefault(kind, []).append(value)
        if len(kinds) > 1:
            raise NotFollowedError(phrase.text)
        ((kind, values),) = kinds.items()
        if kind == "identifier":
            test = self._bind_names(values, words, tool, group, phrase)
        else:
            roles = self._find_roles(kind, said, tool, group, phrase, is_stopping=is_stopping)
            if not roles or not all(is_valid_entry(kind, value) for value in values):
                raise NotFollowedError(phrase.text)
            test = Test("matcher", roles, kind, tuple(values))
        group_words = word_stems(group.words)
        if not said <= tool.names | PLACE_WORDS | group_words | frozenset(
            root for word in words for root in verb_stems(word) if root == tool.parts[0]
        ) | (frozenset().union(*KINDS.values())):
            raise NotFollowedError(phrase.text)
        return [test]

    def _value_kind(self, literal: Literal, tool: DescribedTool, phrase: Phrase) -> tuple[str, str]:
        kind, value = literal.kind, literal.value
        if kind == "list":
            kind = self.lists.get(value.removeprefix("@"), "")
            if not kind:
                raise NotFollowedError(value)
        elif kind == "domain" and not tool.roles_of("domain") and tool.roles_of("email"):
            kind, value = "email", f"*@{value}"
        elif kind == "name":
            if value.startswith("@"):
                raise NotFollowedError(phrase.text)
            kind = "identifier"
        return kind, value

    def _bind_names(
        self,
        values: Sequence[str],
        words: Sequence[str],
        tool: DescribedTool,
        group: BoundGroup,
        phrase: Phrase,
    ) -> Test:
        """Return the test of the argument that names stand for."""
        choosing = [one for one in tool.arguments if all(value.casefold() in one.choices for value in values)]
        if len(choosing) == 1:
            (argument,) = choosing
            return Test(
                "choice",
                (argument.name,),
                values=tuple(argument.choices[value.casefold()] for value in values),
            )
        said = word_stems(words)
        texts = [
            one
            for one in tool.arguments
            if not (one.is_number or one.is_flag or one.choices) and (one.role or one.name)
        ]
        identifiers = [one for one in texts if one.role and one.kind == "identifier"]
        mentioned = [one for one in texts if (one.words - PLACE_WORDS) & said]
        mentioned = mentioned or [one for one in identifiers if stems(one.name) <= said]
        if len(mentioned) > 1:
            by_name = [one for one in mentioned if (stems(one.name) - PLACE_WORDS) <= said]
            mentioned = by_name or mentioned
        if phrase.preposition in {"TO", "FROM"} and len({*mentioned} or {*identifiers}) > 1:
            directed = tool.roles_by_direction("identifier", phrase.preposition)
            mentioned = [one for one in (mentioned or identifiers) if one.role in directed]
        if not mentioned and any(one.literal and one.literal.kind == "identifier" for one in phrase.tokens):
            # "To zone-1": it may belong to another argument.
            raise NotFollowedError(phrase.text)
        fitting = mentioned or identifiers
        if len({one.role or one.name for one in fitting}) > 1:
            raise AmbiguousError(phrase.text)
        if not fitting:
            raise NotFollowedError(phrase.text)
        (argument, *_) = fitting
        if argument.role and argument.kind == "identifier":
            return Test("matcher", (argument.role,), "identifier", tuple(values))
        if argument.schema.get("type") != "string":
            raise NotFollowedError(phrase.text)
        del group
        return Test("choice", (argument.name,), values=tuple(values))

    def _find_roles(
        self,
        kind: str,
        said: frozenset[str],
        tool: DescribedTool,
        group: BoundGroup,
        phrase: Phrase,
        *,
        is_stopping: bool,
    ) -> tuple[str, ...]:
        """Return the argument roles of a phrase; a rule that allows calls covers all roles of the kind."""
        roles = tool.roles_of(kind)
        if len(roles) > 1 and phrase.preposition in {"TO", "FROM"}:
            directed = tool.roles_by_direction(kind, phrase.preposition)
            if directed:
                return directed
        words = said | word_stems(group.words)
        if is_stopping and any(one.roles_mentioned(kind, words) for one in group.tools):
            return tool.roles_mentioned(kind, words)
        named = [
            one
            for one in tool.arguments
            if one.role in roles and one.name and stems(one.name) - PLACE_WORDS <= said
        ]
        # "If the target is below /a"
        named = [one for one in named if stems(one.name) - PLACE_WORDS]
        return (named[0].role,) if phrase.is_test and len(named) == 1 else roles


@dataclass(frozen=True, slots=True)
class _WordTest:
    """Leaf of a formula for a word that is a choice or a flag of the tools: "urgent", "force"."""

    word: str


def _is_unit(tokens: Sequence[WordToken], place: int) -> bool:
    """Return True for a unit behind a number, which the number accounts for."""
    word = tokens[place].text.casefold()
    is_behind = place > 0 and tokens[place - 1].kind in {"BOUND", "NUMBER"}
    return is_behind and (word in _CURRENCIES or stem(word) in UNITS_OF_TIME)


def _read_currency(unit: Sequence[str], tool: DescribedTool) -> list[str]:
    """Return words behind a number with the codes of currencies that the tool accepts.

    Without such an argument, the name of a currency restricts no call.
    """
    accepted = {code for one in tool.arguments for code in one.choices} & {*_CURRENCIES.values(), *_DOLLARS}
    has_currency = accepted or any(stems("currency") & one.words for one in tool.arguments)
    found: list[str] = []
    for word in unit:
        code = _CURRENCIES.get(word.casefold())
        if code is None or (code == "usd" and word.casefold() != code and accepted & _DOLLARS - {code}):
            found.append(word)
        elif accepted:
            found.append(code)
        elif has_currency:
            found.append(word)
    return found


def _texts(tokens: Iterable[WordToken]) -> list[str]:
    return [one.text for one in tokens]


def _test_of_word(tool: DescribedTool, word: str) -> Test | None:
    """Return the test for a word that is a choice of one argument, or the name of one flag."""
    forms = {word.casefold(), singular(word.casefold())}
    choosing = [one for one in tool.arguments if forms & one.choices.keys()]
    flags = [
        one
        for one in tool.arguments
        if one.is_flag and stems(one.name) == stems(word) and one.schema.get("default") is not True
    ]
    if len(choosing) + len(flags) != 1:
        return None
    if choosing:
        values = tuple(text for lower, text in choosing[0].choices.items() if lower in forms)
        return Test("choice", (choosing[0].name,), values=values)
    return Test("choice", (flags[0].name,), values=(True,))


def _bind_presence(phrase: Phrase, said: frozenset[str], tool: DescribedTool) -> Test | None:
    """Return the test for "with attachments": an optional argument that is set. None for other words."""
    marks = {one.text.casefold() for one in phrase.tokens if one.kind in _MARKS}
    if marks - _ANY or any(one.kind not in {"WORD", *_MARKS} for one in phrase.tokens):
        return None
    named = [
        one for one in tool.arguments if (one.is_text or one.is_number) and said and stems(one.name) == said
    ]
    if len(named) != 1 or named[0].name in tool.required:
        return None
    return to_presence(named[0])


def _bind_given(phrase: Phrase, words: Sequence[str], tool: DescribedTool) -> Test | None:
    """Return the test for "if a reason is given": an optional argument that is set. None for other words."""
    *names, last = words
    if last.casefold() not in _GIVEN or not names or phrase.tokens[-1].text != last:
        return None
    if _test_of_word(tool, last) is not None:
        return None
    return _bind_presence(Phrase("WITH", phrase.tokens[:-1]), word_stems(names), tool)


def _choice_words(words: Sequence[str], tool: DescribedTool) -> list[str]:
    return [word for word in words if _test_of_word(tool, word) is not None]


def _bind_choice(phrase: Phrase, words: Sequence[str], tool: DescribedTool) -> Test:
    """Return the test of a phrase whose words are values of an argument: "with low or normal priority"."""
    tests = {word: test for word in words if (test := _test_of_word(tool, word)) is not None}
    names = {test.names[0] for test in tests.values()}
    if len(names) != 1 or any(one.kind not in _PLAIN for one in phrase.tokens):
        raise NotFollowedError(phrase.text)
    (name,) = names
    known = tool.objects.union(tool.parts, *(one.words for one in tool.arguments if one.name == name))
    if not all(word in tests or stems(word) <= known for word in words):
        raise NotFollowedError(phrase.text)
    values = tuple(dict.fromkeys(value for test in tests.values() for value in test.values))
    return Test("choice", (name,), values=values)


def _describes_argument(tool: DescribedTool, word: str) -> bool:
    return _test_of_word(tool, word) is not None or stems(word) <= tool.names
