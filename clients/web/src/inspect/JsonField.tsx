// A field for a JSON document, with line numbers and completion.
import type { RefObject, TargetedKeyboardEvent } from "preact";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { t } from "../i18n";
import { clean } from "../text";
import { namesIn, placeAt, suggest, type Place, type Suggestion } from "./completion";

interface Open {
  place: Place;
  suggestions: Suggestion[];
  chosen: number;
  line: number;
  column: number;
}

const LINE_REM = 1.21875;
const SHOWN_LINES = 9;

export function JsonField({
  field,
  label,
  text,
  schema,
  onChange,
}: {
  field: RefObject<HTMLTextAreaElement | null>;
  label: string;
  text: string;
  schema: unknown;
  onChange: (text: string) => void;
}) {
  const id = useId();
  const numbers = useRef<HTMLPreElement>(null);
  const [open, setOpen] = useState<Open>();
  const [scroll, setScroll] = useState({ top: 0, left: 0 });
  const latest = useRef<unknown>(undefined);
  useEffect(() => {
    try {
      latest.current = JSON.parse(text);
    } catch {
      // The last valid document offers its names.
    }
  }, [text]);
  const complete = (isAsked: boolean) => {
    const box = field.current!;
    const caret = box.selectionStart;
    const place = schema && caret === box.selectionEnd ? placeAt(box.value, caret) : undefined;
    const isWriting = place !== undefined && place.start < caret;
    const suggestions = place && (isAsked || isWriting) ? suggest(schema, place, (key) => namesIn(latest.current, key)) : [];
    if (!place || !suggestions.length) return setOpen(undefined);
    const before = box.value.slice(0, place.start);
    const column = place.start - (before.lastIndexOf("\n") + 1);
    setOpen({ place, suggestions, chosen: 0, line: before.split("\n").length - 1, column });
  };
  const accept = (chosen: Suggestion) => {
    const box = field.current!;
    const { start, end } = open!.place;
    box.focus();
    box.setSelectionRange(start, end);
    // The command keeps the history of the field, so that it can be undone.
    if (!document.execCommand("insertText", false, chosen.insert)) {
      box.setRangeText(chosen.insert, start, end, "end");
      onChange(box.value);
    }
    box.setSelectionRange(start + chosen.caret, start + chosen.caret);
    setOpen(undefined);
  };
  const onKey = (event: TargetedKeyboardEvent<HTMLTextAreaElement>) => {
    if (event.key === " " && (event.ctrlKey || event.altKey)) {
      event.preventDefault();
      complete(true);
      return;
    }
    if (!open) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const { suggestions, chosen } = open;
    if (step) setOpen({ ...open, chosen: (chosen + step + suggestions.length) % suggestions.length });
    else if (event.key === "Enter" || event.key === "Tab") accept(suggestions[chosen]!);
    else if (event.key === "Escape") setOpen(undefined);
    else {
      if (["ArrowLeft", "ArrowRight", "Home", "End"].includes(event.key)) setOpen(undefined);
      return;
    }
    event.preventDefault();
  };
  const lines = text.split("\n").length;
  const chosen = open?.suggestions[open.chosen];
  return (
    <div class="editor">
      <pre class="editor-lines" ref={numbers} aria-hidden="true">
        {Array.from({ length: lines }, (_, index) => index + 1).join("\n")}
      </pre>
      <div class="editor-body">
        <textarea
          ref={field}
          class="editor-text"
          dir="ltr"
          spellcheck={false}
          autocomplete="off"
          wrap="off"
          aria-label={label}
          aria-describedby={`${id}-help`}
          aria-autocomplete="list"
          aria-controls={open ? `${id}-list` : undefined}
          aria-activedescendant={open ? `${id}-${open.chosen}` : undefined}
          value={text}
          onInput={(event) => {
            onChange(event.currentTarget.value);
            complete(false);
          }}
          onKeyDown={onKey}
          onBlur={() => setOpen(undefined)}
          onPointerDown={() => setOpen(undefined)}
          onScroll={(event) => {
            const { scrollTop: top, scrollLeft: left } = event.currentTarget;
            if (numbers.current) numbers.current.scrollTop = top;
            setScroll({ top, left });
          }}
        />
        {open && <Suggestions id={id} open={open} scroll={scroll} field={field} onAccept={accept} />}
      </div>
      <span id={`${id}-help`} class="hidden">
        {t("editor.help")}
      </span>
      <span class="hidden" role="status">
        {open && chosen ? t("editor.suggestion", { name: chosen.label, n: open.chosen + 1, all: open.suggestions.length }) : ""}
      </span>
    </div>
  );
}

function Suggestions({
  id,
  open,
  scroll,
  field,
  onAccept,
}: {
  id: string;
  open: Open;
  scroll: { top: number; left: number };
  field: RefObject<HTMLTextAreaElement | null>;
  onAccept: (chosen: Suggestion) => void;
}) {
  const list = useRef<HTMLUListElement>(null);
  useLayoutEffect(() => {
    list.current?.children[open.chosen]?.scrollIntoView({ block: "nearest" });
  }, [open.chosen]);
  const height = field.current?.clientHeight ?? 0;
  const line = parseFloat(getComputedStyle(field.current!).lineHeight) || LINE_REM * 16;
  const top = (open.line + 1) * line - scroll.top;
  const isAbove = top + SHOWN_LINES * line > height && top > height / 2;
  const place = isAbove ? { bottom: `${height - top + 1.2 * line}px` } : { top: `${top + line}px` };
  return (
    <ul
      ref={list}
      id={`${id}-list`}
      class="suggestions"
      role="listbox"
      aria-label={t("editor.suggestions")}
      style={{ ...place, "--column": open.column, "--scrolled": `${scroll.left}px` }}
    >
      {open.suggestions.map((one, index) => (
        <li
          key={one.label}
          id={`${id}-${index}`}
          class="suggestion"
          role="option"
          aria-selected={index === open.chosen}
          onPointerDown={(event) => {
            event.preventDefault();
            onAccept(one);
          }}
        >
          <code>{clean(one.label)}</code>
          {one.isRequired && <span class="badge">{t("editor.required")}</span>}
          {one.about && <span class="quiet small">{clean(one.about)}</span>}
        </li>
      ))}
    </ul>
  );
}
