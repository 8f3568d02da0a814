"""Generated sentences of policies with a reference meaning.

They vary modality, callers, scope, conditions, exceptions, "only" and approval. The meaning of each part is a
test of a call: texts and their meaning are made together, without the reader.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety.author.policy_author.rules import build_rules
from peripety.engine import ToolRequest
from support.policy_sentences import decide_calls
from support.policy_texts import parse_tool

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

Holds = Callable[[ToolRequest], bool]
Part = tuple[str, Holds]

TOOLS = tuple(
    map(
        parse_tool,
        (
            'depot.read_file(path:s@read_path) "Reads a file."',
            'depot.send_note(to:l@recipient_email, priority:low|normal|high, pages:i) "Sends a note."',
            'depot.remove_crate(crate:s@crate_id, force?:b) "Removes a crate."',
        ),
    )
)


def _call(tool: str, arguments: Mapping[str, Any], *roles: str) -> ToolRequest:
    return ToolRequest("depot", tool, dict(arguments), roles)


_ANN, _BOB = "ann@firm.example", "bob@else.example"
CALLS = (
    *(
        _call("read_file", {"path": path}, *roles)
        for path in ("/a/x", "/a/b/x", "/c")
        for roles in ((), ("manager",))
    ),
    *(
        _call("send_note", {"to": to, "priority": priority, "pages": pages}, *roles)
        for to in ([_ANN], [_BOB], [_ANN, _BOB])
        for priority, pages in (("low", 3), ("normal", 5), ("high", 6))
        for roles in ((), ("manager",), ("guest",))
    ),
    *(
        _call("remove_crate", {"crate": crate, **flag}, *roles)
        for crate in ("k1", "k2")
        for flag in ({}, {"force": True}, {"force": False})
        for roles in ((), ("manager",), ("guest",))
    ),
)


@dataclass(frozen=True, slots=True)
class Paraphrase:
    """A text with the decision that it means for each call.

    Attributes:
        text: the sentence.
        is_open: True if a rule behind the sentence allows every call.
        is_strange: True if a word without a meaning for a rule was added: a permission then allows nothing,
            and a prohibition stops at least what it stopped.
        meaning: the decision of each call of `CALLS`.
    """

    text: str
    is_open: bool
    is_strange: bool
    meaning: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Object:
    tool: str
    noun: str
    verb: str
    participle: str
    gerund: str
    scopes: tuple[Part, ...]
    conditions: tuple[Part, ...]
    exceptions: tuple[Part, ...]


def _path(*prefixes: str) -> Holds:
    return lambda call: call.arguments["path"].startswith(prefixes)


def _not(holds: Holds) -> Holds:
    return lambda call: not holds(call)


def _priority(*values: str) -> Holds:
    return lambda call: call.arguments["priority"] in values


def _pages(least: int, most: int) -> Holds:
    return lambda call: least <= call.arguments["pages"] <= most


def _all_to(host: str) -> Holds:
    return lambda call: all(one.endswith(host) for one in call.arguments["to"])


def _any_to(host: str) -> Holds:
    return lambda call: any(one.endswith(host) for one in call.arguments["to"])


def _is_forced(call: ToolRequest) -> bool:
    return bool(call.arguments.get("force"))


def _crate(name: str) -> Holds:
    return lambda call: call.arguments["crate"] == name


def _role(name: str) -> Holds:
    return lambda call: name in call.roles


def _always(_call: ToolRequest) -> bool:
    return True


_FILES = _Object(
    "read_file",
    "files",
    "read",
    "read",
    "reading",
    (
        ("below /a", _path("/a/")),
        ("in /a or in /c", _always),
        ("either below /a/b or below /c", _path("/a/b", "/c")),
        ("below /a/b and below /c", _path("/a/b", "/c")),
        ("in /a/b or /c", _path("/a/b", "/c")),
        ("outside /a", _not(_path("/a/"))),
        ("outside of /a/b", _not(_path("/a/b"))),
    ),
    (
        ("if they are in /a", _path("/a/")),
        ("if they are not below /a/b", _not(_path("/a/b"))),
        ("as long as they are in /c or they are in /a/b", _path("/a/b", "/c")),
    ),
    (
        ("unless they are below /a/b", _path("/a/b")),
        ("except below /a/b", _path("/a/b")),
        ("except those below /a/b", _path("/a/b")),
        ("except for /c", _path("/c")),
        ("unless they are not in /a", _not(_path("/a/"))),
    ),
)
_NOTES = _Object(
    "send_note",
    "notes",
    "send",
    "sent",
    "sending",
    (
        ("with high priority", _priority("high")),
        ("with low or normal priority", _priority("low", "normal")),
        ("of low priority", _priority("low")),
        ("with at most 5 pages", _pages(0, 5)),
        ("of more than 5 pages", _pages(6, 99)),
        ("with a priority of low", _priority("low")),
        ("between 4 and 5 pages", _pages(4, 5)),
    ),
    (
        ("if the priority is low", _priority("low")),
        ("if their priority is not high", _not(_priority("high"))),
        ("when the priority is low or normal", _priority("low", "normal")),
        ("as long as the number of pages is at most 5", _pages(0, 5)),
        ("provided that they have at least 4 pages", _pages(4, 99)),
        (
            "if the priority is low and the caller is a manager",
            lambda c: _priority("low")(c) and _role("manager")(c),
        ),
    ),
    (
        ("unless the priority is high", _priority("high")),
        ("unless their priority is low or normal", _priority("low", "normal")),
        ("except with high priority", _priority("high")),
        ("unless they have more than 5 pages", _pages(6, 99)),
    ),
)
_CRATES = _Object(
    "remove_crate",
    "crates",
    "remove",
    "removed",
    "removing",
    (("with force", _is_forced), ("without force", _not(_is_forced))),
    (
        ("if the crate is `k1`", _crate("k1")),
        ("if the crate is not `k2`", _not(_crate("k2"))),
    ),
    (
        ("unless the crate is `k2`", _crate("k2")),
        ("except with force", _is_forced),
    ),
)
_OBJECTS = (_FILES, _NOTES, _CRATES)
_CALLERS: tuple[Part, ...] = (
    ("by managers", _role("manager")),
    ("by callers with the role `manager`", _role("manager")),
    ("by anyone except guests", _not(_role("guest"))),
    ("by guests or managers", lambda c: _role("guest")(c) or _role("manager")(c)),
)
_CALLER_CONDITIONS: tuple[Part, ...] = (
    ("if the caller is a manager", _role("manager")),
    ("if the caller has the role `manager`", _role("manager")),
)
_CALLER_EXCEPTIONS: tuple[Part, ...] = (
    ("unless the caller has the role `manager`", _role("manager")),
    ("unless the caller is a manager", _role("manager")),
    ("except by managers", _role("manager")),
)
_SUBJECTS: tuple[Part, ...] = (
    ("the assistant", _always),
    ("anyone", _always),
    ("managers", _role("manager")),
    ("a manager", _role("manager")),
    ("guests and managers", lambda c: _role("guest")(c) or _role("manager")(c)),
    ("anyone except guests", _not(_role("guest"))),
    ("anyone without the role `guest`", _not(_role("guest"))),
    ("whoever is a manager", _role("manager")),
)
_MAY = ("may", "can", "are allowed to", "are permitted to")
_MUST_NOT = (
    "must not",
    "may not",
    "cannot",
    "must never",
    "are not allowed to",
    "can never",
    "shall not",
    "are not to",
)
_STRANGE = (
    *(
        "later",
        "own",
        "glimmering",
        "their",
        "other",
        "twice",
        "used to",
        "recent",
        "confidential",
        "most",
        "few",
    ),
    *("certain", "some", "yesterday", "per hour", "if", "soon", "half"),
)


def iter_paraphrases(count: int, seed: int = 0) -> Iterator[Paraphrase]:
    """Yield generated texts; equal arguments give equal texts."""
    source = random.Random(seed)
    for _ in range(count):
        made = (_permission, _prohibition, _limit, _asking)[source.randrange(4)](source)
        yield _with_strange_word(source, made) if source.random() < 0.25 else made


def decide_paraphrase(made: Paraphrase) -> tuple[list[str], bool]:
    """Return the decision of each call by the reader, and whether it followed the text."""
    derived = build_rules(made.text, TOOLS)
    return decide_calls(derived, TOOLS, CALLS, made.is_open), not derived.unfollowed


def _maybe(source: random.Random, parts: Sequence[Part], chance: float = 0.4) -> Part:
    return source.choice(parts) if source.random() < chance else ("", _always)


def _never(_call: ToolRequest) -> bool:
    return False


def _maybe_exception(source: random.Random, thing: _Object) -> Part:
    if source.random() < 0.6:
        return "", _never
    return source.choice((*thing.exceptions, *_CALLER_EXCEPTIONS))


def _sentence(*parts: str) -> str:
    words = " ".join(" ".join(parts).split())
    return f"{words[0].upper()}{words[1:]}."


def _front(source: random.Random, text: str, said: str) -> str:
    """Return the sentence with a condition or an exception in front of it or behind it."""
    is_clause = said.startswith(("if ", "unless ", "when ", "as long as ", "provided "))
    if is_clause and source.random() < 0.3:
        return f"{said}, {text}"
    return f"{text} {said}"


def _meaning(tool: str, decide: Callable[[ToolRequest], str], other: str) -> tuple[str, ...]:
    return tuple(decide(call) if call.tool_name == tool else other for call in CALLS)


def _permission(source: random.Random) -> Paraphrase:
    thing = source.choice(_OBJECTS)
    scope, in_scope = _maybe(source, thing.scopes)
    condition, is_met = _maybe(source, (*thing.conditions, *_CALLER_CONDITIONS))
    exception, is_excepted = _maybe_exception(source, thing) if not condition else ("", _never)
    approval = source.choice(("", "", "", "with approval", "after approval by a person"))
    form = source.randrange(4)
    callers = ""
    is_caller: Holds = _always
    if form == 0:
        callers, is_caller = _maybe(source, _CALLERS)
        text = f"{thing.noun} {source.choice(_MAY)} be {thing.participle} {callers} {approval} {scope}"
    elif form == 1:
        subject, is_caller = source.choice(_SUBJECTS)
        text = f"{subject} may {thing.verb} {thing.noun} {approval} {scope}"
    elif form == 2:
        text = f"{thing.gerund} {thing.noun} {scope} is allowed {approval}"
    else:
        text = f"it is fine to {thing.verb} {thing.noun} {scope} {approval}"
    meant = "escalate" if approval else "allow"

    def decide(call: ToolRequest) -> str:
        is_meant = in_scope(call) and is_met(call) and is_caller(call) and not is_excepted(call)
        return meant if is_meant else "deny"

    said = _front(source, text, condition or exception)
    return Paraphrase(_sentence(said), False, False, _meaning(thing.tool, decide, "deny"))


def _prohibition(source: random.Random) -> Paraphrase:
    thing = source.choice(_OBJECTS)
    scope, in_scope = _maybe(source, thing.scopes)
    condition, is_met = _maybe(source, (*thing.conditions, *_CALLER_CONDITIONS), 0.25)
    exception, is_excepted = _maybe_exception(source, thing) if not condition else ("", _never)
    approval = source.choice(("", "", "", "without approval", "without the consent of a manager"))
    form = source.randrange(7)
    is_caller: Holds = _always
    if form == 0:
        callers, is_caller = _maybe(source, _CALLERS) if not approval else ("", _always)
        text = f"{thing.noun} {source.choice(_MUST_NOT)} be {thing.participle} {callers} {approval} {scope}"
    elif form == 1:
        subject, is_caller = source.choice(_SUBJECTS)
        text = f"{subject} must not {thing.verb} {thing.noun} {approval} {scope}"
    elif form == 2:
        approval = ""
        text = f"{thing.gerund} {thing.noun} {scope} is forbidden"
    elif form == 3:
        text = f"no {thing.noun} may be {thing.participle} {approval} {scope}"
    elif form == 4:
        text = f"{source.choice(('never', 'do not'))} {thing.verb} {thing.noun} {approval} {scope}"
    elif form == 5:
        approval = ""
        text = f"it is prohibited to {thing.verb} {thing.noun} {scope}"
    else:
        text = f"nobody may {thing.verb} {thing.noun} {approval} {scope}"
    meant = "escalate" if approval else "deny"

    def decide(call: ToolRequest) -> str:
        is_meant = in_scope(call) and is_met(call) and is_caller(call) and not is_excepted(call)
        return meant if is_meant else "allow"

    said = _front(source, text, condition or exception)
    return Paraphrase(_sentence(said), True, False, _meaning(thing.tool, decide, "allow"))


def _limit(source: random.Random) -> Paraphrase:
    """Return a sentence with "only", which denies the calls beyond its focus."""
    thing = source.choice(_OBJECTS)
    form = source.randrange(4)
    if form == 0:
        focus, is_focus = source.choice(thing.scopes)
        text = source.choice(
            (
                f"{thing.noun} may be {thing.participle} only {focus}",
                f"{thing.noun} may only be {thing.participle} {focus}",
                f"{thing.verb} {thing.noun} only {focus}",
            )
        )
    elif form == 1:
        focus, is_focus = source.choice(_CALLERS[:2])
        text = f"{thing.noun} may be {thing.participle} only {focus}"
    elif form == 2:
        focus, is_focus = source.choice(
            (("managers", _role("manager")), ("callers with the role `manager`", _role("manager")))
        )
        text = f"only {focus} {source.choice(('may', 'can', 'are allowed to'))} {thing.verb} {thing.noun}"
    else:
        focus, is_focus = source.choice((*thing.conditions, *_CALLER_CONDITIONS))
        text = f"{thing.noun} may be {thing.participle} only {focus.replace('provided that', 'if', 1)}"
        text = text.replace("as long as", "if")
    return Paraphrase(
        _sentence(text),
        True,
        False,
        _meaning(thing.tool, lambda call: "allow" if is_focus(call) else "deny", "allow"),
    )


def _asking(source: random.Random) -> Paraphrase:
    thing = source.choice(_OBJECTS)
    scope, in_scope = _maybe(source, thing.scopes)
    text = source.choice(
        (
            f"{thing.gerund} {thing.noun} {scope} must be approved by a person",
            f"{thing.gerund} {thing.noun} {scope} requires approval",
            f"ask a person before {thing.gerund} {thing.noun} {scope}",
            f"before {thing.gerund} {thing.noun} {scope}, ask a person",
            f"{thing.noun} {scope} must be approved before they are {thing.participle}",
        )
    )
    return Paraphrase(
        _sentence(text),
        True,
        False,
        _meaning(thing.tool, lambda call: "escalate" if in_scope(call) else "allow", "allow"),
    )


def _with_strange_word(source: random.Random, made: Paraphrase) -> Paraphrase:
    words = made.text.removesuffix(".").split()
    place = source.randrange(len(words) + 1)
    strange = source.choice((*_STRANGE, "only" if made.is_open else "not"))
    if _gives_a_sentence(words, place, strange):
        return made
    text = f"{' '.join([*words[:place], strange, *words[place:]])}."
    meaning = made.meaning if made.is_open else tuple("deny" for _ in made.meaning)
    return Paraphrase(text, made.is_open, True, meaning)


def _gives_a_sentence(words: Sequence[str], place: int, strange: str) -> bool:
    """Return True if a strange word gives an English sentence, with another meaning or the same one.

    "If it *is not* low" negates a condition, and "files *if in* /a" leaves out "they are". The reference
    meaning does not follow such a change. A condition with a subject and no verb, "read *if* files in /a", is
    no English, and has to close its tool.
    """
    if strange == "not":
        before = {word.casefold() for word in words[:place]}
        return not before.isdisjoint(_CLAUSE_WORDS) and words[place - 1] in {"is", "are", "has", "have"}
    return strange == "if" and place < len(words) and words[place] in _PREPOSITIONS


_CLAUSE_WORDS = {"if", "when", "unless", "whoever", "long", "provided", "except"}
_PREPOSITIONS = {"in", "below", "with", "without", "of", "between"}
