// A game as the page shows it: events of a session become turns, quantities and facts.
import type { ServerEvent } from "../api";
import { t } from "../i18n";
import { capitalize, clean, formatPath, parsePath, words, type Segment } from "../text";
import type { ActionCall, Change, LogLine, Roll, RunStatus, Session, Story } from "../types";

export interface Speech {
  entity: string;
  text: string;
  /** Length of the prose when the line arrived. */
  at: number;
}

export interface ActionResult {
  id: string;
  entity: string;
  accepted: boolean;
  params: Record<string, unknown>;
  reasons: string[];
}

export interface TurnView {
  turn: number;
  attempt: string;
  requested: ActionCall[];
  input: string;
  actions: ActionResult[];
  rolls: Roll[];
  event: string;
  changes: Change[];
  log: LogLine[];
  prose: string;
  speeches: Speech[];
  degraded: string;
  retracted: string;
  status: RunStatus;
  committed: boolean;
}

/** Turns in order. Only the last one can be in progress. */
export type Turns = readonly TurnView[];

function openTurn(data: any): TurnView {
  return {
    turn: data.turn,
    attempt: data.attempt_id ?? "",
    requested: data.actions ?? [],
    input: data.input ?? "",
    actions: [],
    rolls: [],
    event: "",
    changes: [],
    log: [],
    prose: "",
    speeches: [],
    degraded: "",
    retracted: "",
    status: { kind: "ongoing" },
    committed: false,
  };
}

/** Returns the turns after an event of the session. */
export function applyEvent(turns: Turns, event: ServerEvent): Turns {
  const data = event.data;
  if (event.name === "rewound") return turns.filter((one) => one.turn <= (data.turn ?? 0));
  if (event.name === "accepted") return [...turns.filter((one) => one.turn < data.turn), openTurn(data)];
  const last = turns[turns.length - 1];
  if (!last || last.turn !== data.turn || last.committed) return turns;
  if (event.name === "error" && (data.turn_abandoned || !data.rule)) return turns.slice(0, -1);
  return [...turns.slice(0, -1), addToTurn(last, event)];
}

function addToTurn(turn: TurnView, event: ServerEvent): TurnView {
  const data = event.data;
  switch (event.name) {
    case "action": {
      const result = {
        id: data.action_id,
        entity: data.entity_id ?? "",
        accepted: data.accepted ?? false,
        params: data.params ?? {},
        reasons: (data.reasons ?? []).map((reason: any) => reason.message),
      };
      return {
        ...turn,
        actions: [...turn.actions, result],
        changes: [...turn.changes, ...(data.changes ?? [])],
        log: [...turn.log, ...(data.log ?? [])],
      };
    }
    case "roll":
      return { ...turn, rolls: [...turn.rolls, data.roll] };
    case "world":
      return {
        ...turn,
        event: data.event_id ?? turn.event,
        changes: [...turn.changes, ...(data.changes ?? [])],
        log: [...turn.log, ...(data.log ?? [])],
        status: data.status ?? turn.status,
      };
    case "narrative_chunk":
      return { ...turn, prose: turn.prose + data.text };
    case "narrative_retracted":
      return { ...turn, prose: "", speeches: [], retracted: data.reason ?? "" };
    case "dialogue":
      return {
        ...turn,
        speeches: [...turn.speeches, { entity: data.entity_id, text: data.utterance, at: turn.prose.length }],
      };
    case "degraded":
      return { ...turn, degraded: data.reason ?? "" };
    case "diff":
      return {
        ...turn,
        prose: data.narrative ?? turn.prose,
        changes: data.changes ?? turn.changes,
        status: data.status ?? turn.status,
        committed: true,
      };
    default:
      return turn;
  }
}

export interface Quantity {
  path: string;
  name: string;
  group: string;
  unit: string;
  value: number;
  /** Word for the value; empty without bands. */
  word: string;
  /** Position of the band, and the number of bands; 0 without bands. */
  band: number;
  bands: number;
  min?: number;
  max?: number;
  history: number[];
  /** True if it is labelled; in a story without labels, if it has ever counted something. */
  isFollowed: boolean;
}

export interface Fact {
  path: string;
  kind: "place" | "clue" | "statement" | "promise" | "fact";
  name: string;
  text: string;
}

const KINDS: Record<string, Fact["kind"]> = {
  places: "place",
  clues: "clue",
  statements: "statement",
  promises: "promise",
};

/** Returns the kind of what a path holds. */
export function kindOfPath(path: string): Fact["kind"] {
  return kindOf(parsePath(path));
}

function kindOf(segments: readonly Segment[]): Fact["kind"] {
  return (segments.length === 3 && KINDS[String(segments[1])]) || "fact";
}

/** Returns the name of a path for readers: its label, else its last words. The ids of texts are not for players. */
export function nameOf(story: Story, path: string): string {
  const label = story.labels[path];
  if (label) return clean(label.name);
  const segments = parsePath(path);
  const last = segments[segments.length - 1] ?? path;
  const kind = kindOf(segments);
  if (kind === "place") return nameOfId(story, String(last));
  if (kind !== "fact") return t(`facts.${kind}`);
  if (typeof last === "number") return `${words(String(segments[segments.length - 2] ?? ""))} ${last + 1}`;
  return capitalize(words(last));
}

/** Returns the person or the group that a path belongs to; empty for none. */
export function groupOf(story: Story, path: string): string {
  const segments = parsePath(path).slice(1, -1).filter((one) => !["private", "public"].includes(String(one)));
  return segments.map((one) => nameOfId(story, String(one))).join(" · ");
}

/** Returns the name of a person, a place, an action or an event; else the words of the id. */
export function nameOfId(story: Story, id: string): string {
  const person = story.entities.find((one) => one.id === id);
  if (person) return clean(person.name ?? capitalize(words(id)));
  const place = story.places[id];
  if (place) return clean(place.name ?? capitalize(words(id)));
  return capitalize(words(id));
}

export function nameOfAction(story: Story, id: string): string {
  return capitalize(clean(story.actions[id] ?? id) === id ? words(id) : clean(story.actions[id] ?? id));
}

export function nameOfEvent(story: Story, id: string): string {
  return capitalize(clean(story.events[id] ?? id) === id ? words(id) : clean(story.events[id] ?? id));
}

/** Returns the values of a quantity at the start and after each turn. */
export function historyOf(turns: Turns, path: string, now: number): number[] {
  const history: number[] = [];
  for (const turn of turns) {
    const own = turn.changes.filter((one) => one.path === path);
    const first = own[0];
    const last = own[own.length - 1];
    if (!history.length) {
      const before = first?.before ?? turns.flatMap((one) => one.changes).find((one) => one.path === path)?.before;
      history.push(typeof before === "number" ? before : now);
    }
    history.push(typeof last?.after === "number" ? last.after : history[history.length - 1]!);
  }
  return history.length ? history : [now];
}

function bandOf(story: Story, path: string, value: number): { word: string; band: number; bands: number } {
  const bands = story.labels[path]?.bands ?? [];
  const index = bands.findIndex((one) => one.upto === undefined || value <= one.upto);
  return { word: clean(bands[index]?.word ?? ""), band: index < 0 ? 0 : index, bands: bands.length };
}

/** Lists the numbers of a visible state with their meaning. */
export function quantitiesOf(session: Session, story: Story, turns: Turns): Quantity[] {
  const latest = new Map<string, unknown>();
  const open = turns[turns.length - 1];
  if (open && !(open.committed && open.turn <= (session.turn ?? 0))) {
    for (const change of open.changes) latest.set(change.path, change.after);
  }
  const hasLabels = Object.keys(story.labels).length > 0;
  const found: Quantity[] = [];
  for (const [segments, stored] of leaves(session.state, ["state"])) {
    const path = formatPath(segments);
    const value = latest.has(path) ? latest.get(path) : stored;
    if (typeof value !== "number") continue;
    const history = historyOf(turns, path, value);
    const isShared = segments[1] !== "private";
    found.push({
      path,
      isFollowed: hasLabels ? path in story.labels : isShared || value !== 0 || history.some((one) => one !== value),
      name: nameOf(story, path),
      group: story.labels[path] ? "" : groupOf(story, path),
      unit: clean(story.labels[path]?.unit ?? ""),
      value,
      ...bandOf(story, path, value),
      min: story.bounds[path]?.min,
      max: story.bounds[path]?.max,
      history,
    });
  }
  return found.sort((a, b) => Number(b.isFollowed) - Number(a.isFollowed));
}

/** Lists what else is visible: places, clues, statements, promises and other texts. */
export function factsOf(session: Session, story: Story): Fact[] {
  const found: Fact[] = [];
  for (const [segments, value] of leaves(session.state, ["state"])) {
    if (typeof value === "number" || value === null || value === "") continue;
    const path = formatPath(segments);
    found.push({ path, kind: kindOf(segments), name: nameOf(story, path), text: showValue(story, value) });
  }
  return found;
}

/** Formats a value of the state that is no number. */
export function showValue(story: Story, value: unknown): string {
  if (typeof value === "string") {
    const isId = story.places[value] || story.entities.some((one) => one.id === value);
    return isId ? nameOfId(story, value) : clean(value);
  }
  if (Array.isArray(value)) return value.map((one) => showValue(story, one)).join(", ");
  return clean(typeof value === "object" ? JSON.stringify(value) : String(value));
}

function* leaves(value: unknown, path: Segment[]): Generator<[Segment[], unknown]> {
  if (value !== null && typeof value === "object" && !Array.isArray(value)) {
    for (const [key, inner] of Object.entries(value)) yield* leaves(inner, [...path, key]);
  } else {
    yield [path, value];
  }
}

/** One line for all changes of a path in a turn. */
export interface NetChange {
  path: string;
  before: unknown;
  after: unknown;
  causes: Change["cause"][];
}

export function netChanges(changes: readonly Change[]): NetChange[] {
  const byPath = new Map<string, NetChange>();
  for (const change of changes) {
    const known = byPath.get(change.path);
    if (known) {
      known.after = change.after;
      known.causes.push(change.cause);
    } else {
      byPath.set(change.path, { ...change, causes: [change.cause] } as NetChange);
    }
  }
  return [...byPath.values()].filter((one) => JSON.stringify(one.before) !== JSON.stringify(one.after));
}

export interface Deciding {
  turn: number;
  change: Change;
  amount: number;
}

/** Returns the decisions and events that moved a quantity the most towards its last value, the largest first. */
export function decidingChanges(turns: Turns, path: string, count: number): Deciding[] {
  const all: Deciding[] = turns.flatMap((turn) =>
    turn.changes
      .filter((one) => one.path === path && one.cause.kind !== "decay" && typeof one.before === "number" && typeof one.after === "number")
      .map((change) => ({
        turn: turn.turn,
        change,
        amount: (change.after as number) - (change.before as number),
      })),
  );
  const total = all.reduce((sum, one) => sum + one.amount, 0);
  return all
    .filter((one) => one.amount * total > 0)
    .sort((a, b) => Math.abs(b.amount) - Math.abs(a.amount))
    .slice(0, count);
}

export type Passage = { kind: "prose"; text: string } | { kind: "speech"; text: string; entity: string };

const QUOTES = /^["“”„«»‘’'「『]+|["“”„«»‘’'」』]+$/g;

/** Returns the paragraphs of a turn; lines of dialogue that the prose quotes are marked where they are. */
export function paragraphsOf(turn: TurnView): Passage[][] {
  const marks: { start: number; end: number; entity: string }[] = [];
  const spoken: Passage[][] = [];
  let from = 0;
  for (const speech of turn.speeches) {
    const core = speech.text.trim().replace(QUOTES, "").replace(/[.,!?…;:]+$/, "");
    const start = core ? turn.prose.indexOf(core, from) : -1;
    if (start < 0) {
      spoken.push([{ kind: "speech", text: clean(speech.text), entity: speech.entity }]);
      continue;
    }
    let end = start + core.length;
    while (end < turn.prose.length && /[.,!?…;:"“”»’'」』]/.test(turn.prose[end]!)) end += 1;
    let begin = start;
    while (begin > from && /["“„«‘'「『]/.test(turn.prose[begin - 1]!)) begin -= 1;
    marks.push({ start: begin, end, entity: speech.entity });
    from = end;
  }
  const paragraphs: Passage[][] = [];
  let at = 0;
  for (const text of turn.prose.split(/(\n\s*\n+)/)) {
    const next = at + text.length;
    if (text.trim()) paragraphs.push(splitAtMarks(turn.prose, at, next, marks));
    at = next;
  }
  return [...paragraphs, ...spoken];
}

function splitAtMarks(
  prose: string,
  start: number,
  end: number,
  marks: { start: number; end: number; entity: string }[],
): Passage[] {
  const parts: Passage[] = [];
  let at = start;
  for (const mark of marks) {
    if (mark.end <= at || mark.start >= end) continue;
    const from = Math.max(mark.start, at);
    if (from > at) parts.push({ kind: "prose", text: clean(prose.slice(at, from)) });
    const to = Math.min(mark.end, end);
    parts.push({ kind: "speech", text: clean(prose.slice(from, to)), entity: mark.entity });
    at = to;
  }
  if (at < end) parts.push({ kind: "prose", text: clean(prose.slice(at, end)) });
  return parts;
}
