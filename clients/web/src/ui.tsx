// Parts that every view uses.
import { Component, h } from "preact";
import type { ComponentChildren, ComponentType, TargetedMouseEvent, TargetedSubmitEvent } from "preact";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Problem, setToken } from "./api";
import { number, percent, percentsOfWhole, t, tMaybe } from "./i18n";
import { clean, words } from "./text";

/** Returns a component that is drawn again only if a property has changed. */
export function memo<P extends object>(Drawn: ComponentType<P>): ComponentType<P> {
  return class extends Component<P> {
    override shouldComponentUpdate(next: P): boolean {
      const names = new Set([...Object.keys(this.props), ...Object.keys(next)]) as Set<keyof P>;
      return [...names].some((name) => this.props[name as keyof typeof this.props] !== next[name]);
    }
    render() {
      return h(Drawn, this.props);
    }
  };
}

/** Returns whether a media query matches, and follows it. */
export function useMedia(query: string): boolean {
  const [matches, setMatches] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const list = matchMedia(query);
    const update = () => setMatches(list.matches);
    update();
    list.addEventListener("change", update);
    return () => list.removeEventListener("change", update);
  }, [query]);
  return matches;
}

export type Loaded<T> = { state: "loading" } | { state: "failed"; problem: Problem } | { state: "ready"; value: T };

/** Loads something, and again when `reload` is called. */
export function useLoaded<T>(load: (signal: AbortSignal) => Promise<T>, on: unknown[]): [Loaded<T>, () => void] {
  const [loaded, setLoaded] = useState<Loaded<T>>({ state: "loading" });
  const [count, setCount] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    load(abort.signal).then(
      (value) => abort.signal.aborted || setLoaded({ state: "ready", value }),
      (error: unknown) => abort.signal.aborted || setLoaded({ state: "failed", problem: toProblem(error) }),
    );
    return () => abort.abort();
  }, [...on, count]);
  return [loaded, () => setCount((before) => before + 1)];
}

export function toProblem(error: unknown): Problem {
  return error instanceof Problem ? error : new Problem("PAGE", 0, error instanceof Error ? error.message : String(error));
}

/** Failures whose title says everything; their message is for programs. */
const SAID_BY_TITLE = new Set(["UNKNOWN_SESSION", "NOT_FOUND"]);

/** A failure: what happened and what to do. A missing token is asked for here. */
export function ProblemBox({ problem, retry }: { problem: Problem; retry?: () => void }) {
  if (problem.code === "TOKEN_REQUIRED") return <TokenForm retry={retry} />;
  const title = tMaybe(`problem.${problem.code}`, t("problem.other"));
  return (
    <div class="problem" role="alert">
      <p class="problem-title">{title}</p>
      {problem.message && !SAID_BY_TITLE.has(problem.code) && <p dir="auto">{clean(problem.message)}</p>}
      <p class="quiet">{tMaybe(`remedy.${problem.code}`, problem.code && `(${problem.code})`)}</p>
      {retry && (
        <button class="button" onClick={retry}>
          {t("retry")}
        </button>
      )}
    </div>
  );
}

function TokenForm({ retry }: { retry?: () => void }) {
  const id = useId();
  const submit = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    setToken(String(new FormData(event.currentTarget).get("token")));
    if (retry) retry();
    else location.reload();
  };
  return (
    <form class="problem" onSubmit={submit}>
      <p class="problem-title">{t("token.title")}</p>
      <label for={id}>{t("token.label")}</label>
      <input id={id} class="field" name="token" type="password" autocomplete="off" required />
      <button class="button primary">{t("token.enter")}</button>
    </form>
  );
}

/** Lines that hold the place of text which is being loaded. */
export function Skeleton({ lines = 3, label }: { lines?: number; label?: string }) {
  return (
    <div class="skeleton" role="status">
      <span class="hidden">{label ?? t("loading")}</span>
      {Array.from({ length: lines }, (_, index) => (
        <span key={index} class="skeleton-line" style={{ inlineSize: `${92 - ((index * 37) % 45)}%` }} />
      ))}
    </div>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children}
    </div>
  );
}

/** A figure in a row of them. One without a value was not measured. */
export function Figure({ name, value, note, missing }: { name: string; value?: string; note?: string; missing?: string }) {
  return (
    <div>
      <dt>{name}</dt>
      {value === undefined ? <dd class="unmeasured">{missing ?? t("unmeasured")}</dd> : <dd>{value}</dd>}
      {note && <dd class="note-line">{note}</dd>}
    </div>
  );
}

export interface Coverage {
  kind: string;
  covered?: number;
  reachable?: number;
}

export function CoverageFigure({ kind, covered = 0, reachable }: Coverage) {
  const name = tMaybe(`coverage.${kind}`, t("coverage", { kind: words(kind) }));
  return <Figure name={name} value={reachable ? percent(covered / reachable) : undefined} note={reachable ? t("of", { n: covered, all: reachable }) : ""} />;
}

/** A line of values over time. Its description holds the figures. */
export function Spark({ values, label, large }: { values: number[]; label: string; large?: boolean }) {
  const width = large ? 320 : 96;
  const height = large ? 72 : 22;
  const low = Math.min(...values);
  const high = Math.max(...values);
  const x = (index: number) => (values.length < 2 ? width - 3 : 3 + (index * (width - 6)) / (values.length - 1));
  const y = (value: number) => (high === low ? height / 2 : height - 3 - ((value - low) * (height - 6)) / (high - low));
  const points = values.map((value, index) => `${x(index).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
  return (
    <svg class={large ? "spark large" : "spark"} viewBox={`0 0 ${width} ${height}`} role="img" aria-label={label}>
      <polyline points={points} fill="none" vector-effect="non-scaling-stroke" />
      <circle cx={x(values.length - 1)} cy={y(values[values.length - 1] ?? 0)} r="2.6" />
    </svg>
  );
}

/** A dialog over the page. It keeps the focus, and Escape closes it. */
export function Sheet({
  title,
  onClose,
  children,
}: {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
}) {
  const ref = useRef<HTMLDialogElement>(null);
  const id = useId();
  useLayoutEffect(() => {
    const dialog = ref.current!;
    dialog.showModal();
    return () => dialog.close();
  }, []);
  const onBackdrop = (event: TargetedMouseEvent<HTMLDialogElement>) => {
    if (event.target === ref.current) onClose();
  };
  return (
    <dialog ref={ref} class="sheet" aria-labelledby={id} onCancel={onClose} onClick={onBackdrop}>
      <div class="sheet-content">
        <header class="sheet-header">
          <h2 id={id}>{title}</h2>
          <button class="button plain" onClick={onClose} aria-label={t("close")}>
            <Icon name="close" />
          </button>
        </header>
        {children}
      </div>
    </dialog>
  );
}

const ICONS = {
  close: "M5 5l10 10M15 5L5 15",
  undo: "M8 5L4 9l4 4M4 9h7a5 5 0 015 5v1",
  fork: "M6 3v14M14 3v3a5 5 0 01-5 5H6",
  again: "M15.5 6.5A6.5 6.5 0 1016.5 10M15.7 3v3.7H12",
  send: "M4 10h11M11 5l5 5-5 5",
  wait: "M10 5v5l3 3M10 2.5a7.5 7.5 0 100 15 7.5 7.5 0 000-15",
  ask: "M7.5 7.5a2.5 2.5 0 113.6 2.2c-.8.4-1.1.9-1.1 1.8M10 14.5v.1M10 2.5a7.5 7.5 0 100 15 7.5 7.5 0 000-15",
  link: "M8 12l4-4M7 9l-2 2a3 3 0 004 4l2-2M13 11l2-2a3 3 0 00-4-4L9 7",
  menu: "M4 6h12M4 10h12M4 14h12",
  up: "M10 15V5M6 9l4-4 4 4",
  down: "M10 5v10M6 11l4 4 4-4",
  list: "M7 6h9M7 10h9M7 14h9M4 6h.1M4 10h.1M4 14h.1",
  bin: "M5 6h10M8 6V4h4v2M6.5 6l.7 10h5.6l.7-10",
} as const;

export function Icon({ name, flip }: { name: keyof typeof ICONS; flip?: boolean }) {
  return (
    <svg class={flip ? "icon flip" : "icon"} viewBox="0 0 20 20" aria-hidden="true">
      <path d={ICONS[name]} />
    </svg>
  );
}

/** A whole as one bar in named parts, whose shares sum to 1. */
export function Shares({ parts, label }: { parts: { kind: string; name: string; share: number }[]; label: string }) {
  const texts = percentsOfWhole(parts.map((one) => one.share));
  return (
    <div class="shares">
      <div class="shares-bar" role="img" aria-label={`${label}: ${parts.map((one, index) => `${one.name} ${texts[index]}`).join(", ")}`}>
        {parts.map((one) => (
          <span key={one.kind} class={`share ${one.kind}`} style={{ flexGrow: Math.max(one.share, 0.0001) }} />
        ))}
      </div>
      <dl class="shares-legend" aria-hidden="true">
        {parts.map((one, index) => (
          <div key={one.kind} class={one.kind}>
            <dt>{one.name}</dt>
            <dd>{texts[index]}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}

export function signed(value: number): string {
  // The mark keeps the sign before the number in text from right to left.
  return value > 0 ? `\u200e+${number(value)}` : number(value);
}

export function useTitle(title: string): void {
  useEffect(() => {
    document.title = title ? `${clean(title)} · Peripety` : "Peripety";
  }, [title]);
}
