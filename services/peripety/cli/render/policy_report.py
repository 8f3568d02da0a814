"""Report of a policy as one HTML page: each sentence, its rules in English, and two calls for each rule."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from peripety.cli.render.policy import format_count, format_decision, format_request

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from peripety.api.policy.v1 import policy_pb2 as pb


_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
article { border-left: 4px solid #2e7d32; padding: 0 1rem; margin: 1.5rem 0; }
article.unread { border-color: #c62828; }
blockquote { margin: 0; font-weight: 600; }
dl { display: grid; grid-template-columns: 9rem 1fr; gap: 0.25rem 1rem; margin: 0.5rem 0 1rem; }
dt { color: #555; } dd { margin: 0; }
code { font-family: ui-monospace, monospace; overflow-wrap: anywhere; }
@media (prefers-color-scheme: dark) { body { background: #161616; color: #eee; } dt { color: #aaa; } }
"""


def render_report(sentences: Sequence[pb.SentenceStatement]) -> str:
    """Return the page. The sentences come from `ExplainPolicy`; all texts are escaped."""
    written = [one for one in sentences if one.sentence]
    ruled = sum(bool(one.rules) for one in written)
    head = f"{ruled} of {format_count(len(written), 'sentence')} with rules" if written else "No sentences"
    return "\n".join(
        (
            "<!doctype html>",
            '<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">',
            f"<title>Policy report</title><style>{_STYLE}</style>",
            f"<h1>Policy report</h1><p>{escape(head)}. The English is made from the rules.</p>",
            *(line for one in sentences for line in _render_sentence(one)),
            "</html>",
            "",
        )
    )


def _render_sentence(sentence: pb.SentenceStatement) -> Iterator[str]:
    yield "<article>" if sentence.rules else '<article class="unread">'
    yield f"<blockquote>{escape(sentence.sentence or 'Rules that name no sentence')}</blockquote>"
    if not sentence.rules:
        yield "<p>No rule implements it, so it allows nothing.</p>"
    for rule in sentence.rules:
        yield f"<p>{escape(rule.text)} <code>{escape(rule.rule_id)}</code></p><dl>"
        for word, call in (("decides", rule.decided), ("just misses", rule.nearest)):
            if call.HasField("request"):
                said = f"{format_request(call.request)} → {format_decision(call.decision)}"
                yield f"<dt>{word}</dt><dd><code>{escape(said)}</code></dd>"
        yield "</dl>"
    yield "</article>"
