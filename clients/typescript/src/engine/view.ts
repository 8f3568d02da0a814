/** Visible part of a state for one point of view, by the visibility labels of a scenario; same rules as on the server. */

import type { Json, JsonObject } from "../transcript.js";
import { EngineError } from "./core.js";

type Audience = "public" | readonly string[];

interface Label {
  /** Undefined if the node has no label of its own. */
  audience?: Audience;
  readonly children: Map<string, Label>;
}

interface Position {
  readonly isVisible: boolean;
  readonly label: Label | undefined;
}

/**
 * Return the visible part of a state tree.
 *
 * @param viewer - id of an entity; null for what everyone sees.
 */
export function projectState(spec: JsonObject, tree: Json, viewer: string | null): JsonObject {
  const root: Label = { children: new Map() };
  const entities = ((spec["entities"] ?? []) as JsonObject[]).map((entity) => String(entity["id"]));
  if (viewer !== null && !entities.includes(viewer)) {
    throw new EngineError("UNKNOWN_ENTITY", `${viewer}: not an entity of the scenario`);
  }
  descend(root, ["hidden"]).audience = [];
  descend(root, ["private"]).audience = [];
  for (const id of entities) descend(root, ["private", id]).audience = [id];
  for (const { path, to } of (spec["visibility"] ?? []) as JsonObject[]) {
    const audience = Array.isArray(to) ? (to as string[]) : to === "public" ? "public" : [];
    descend(root, parsePath(String(path)).slice(1)).audience = audience;
  }
  const start = enter({ isVisible: true, label: undefined }, root, viewer);
  return (project(tree, start, viewer) ?? {}) as JsonObject;
}

function descend(label: Label, path: readonly string[]): Label {
  let node = label;
  for (const segment of path) {
    const child = node.children.get(segment) ?? { children: new Map() };
    node.children.set(segment, child);
    node = child;
  }
  return node;
}

function enter(holder: Position, label: Label | undefined, viewer: string | null): Position {
  if (label?.audience === undefined) return { isVisible: holder.isVisible, label };
  return { isVisible: label.audience === "public" || (viewer !== null && label.audience.includes(viewer)), label };
}

/** Return the visible part of a value; undefined if there is none. */
function project(value: Json, { isVisible, label }: Position, viewer: string | null): Json | undefined {
  if (label === undefined || label.children.size === 0 || typeof value !== "object" || value === null) {
    return isVisible ? value : undefined;
  }
  const seen = (key: string, item: Json): Json | undefined =>
    project(item, enter({ isVisible, label }, label.children.get(key), viewer), viewer);
  if (Array.isArray(value)) {
    // Hidden elements become null, so that indices mean the same to every viewer. Labels of elements have a bracket.
    const items = value.map((item, index) => seen(`[${index}]`, item));
    return isVisible || items.some((item) => item !== undefined) ? items.map((item) => item ?? null) : undefined;
  }
  const kept = Object.entries(value).map(([key, item]) => [key, seen(key, item)] as const);
  const shown = kept.filter((member): member is readonly [string, Json] => member[1] !== undefined);
  return isVisible || shown.length > 0 ? Object.fromEntries(shown) : undefined;
}

const ROOT = /^[A-Za-z_][A-Za-z0-9_]*/;
const STEP = /\.([A-Za-z_][A-Za-z0-9_]*)|\[(0|[1-9][0-9]{0,9})\]|\[("(?:[^"\\]|\\.)*")\]/y;

/** Split a path such as `state.a[2]["odd key"]`; an index keeps its brackets, as keys and indices differ. */
function parsePath(path: string): string[] {
  const segments = [ROOT.exec(path)?.[0] ?? ""];
  STEP.lastIndex = segments[0]!.length;
  while (STEP.lastIndex < path.length) {
    const match = STEP.exec(path);
    if (match === null) throw new EngineError("BAD_PATH", `'${path}' is not a path`);
    const [, name, index, quoted] = match;
    segments.push(name ?? (index === undefined ? (JSON.parse(quoted!) as string) : `[${index}]`));
  }
  return segments;
}
