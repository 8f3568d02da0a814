// Completion of a JSON document from its JSON Schema, also while the text is not valid JSON.

export interface Suggestion {
  label: string;
  /** Text that replaces the place. */
  insert: string;
  /** Position of the caret within the inserted text. */
  caret: number;
  about: string;
  isRequired: boolean;
}

/** The place of the caret in the document. */
export interface Place {
  isKey: boolean;
  /** Written part of the word at the caret, without its quote. */
  prefix: string;
  start: number;
  end: number;
  /** Keys and indices from the root to the container of the caret, then the key of the value, if there is one. */
  path: (string | number)[];
  /** Members of each object on the path, with their literals; undefined for an array. */
  members: (Map<string, unknown> | undefined)[];
  /** True if a colon follows. */
  hasColon: boolean;
}

interface Frame {
  open: string;
  key: string;
  index: number;
  expects: "key" | "colon" | "value" | "comma";
  members: Map<string, unknown>;
}

const TOKEN = /"(?:[^"\\\n]|\\.)*"?|[{}[\],:]|[^\s{}[\],:"]+/g;
const PUNCTUATION = "{}[],:";
const MAX_SUGGESTIONS = 40;

function literal(token: string): unknown {
  try {
    return JSON.parse(token);
  } catch {
    return token.replace(/^"|"$/g, "");
  }
}

/** Returns the place of the caret; undefined where nothing can be written. */
export function placeAt(text: string, caret: number): Place | undefined {
  const frames: Frame[] = [];
  let place: Place | undefined;
  let isFound = false;
  const mark = (start: number, end: number) => {
    isFound = true;
    const top = frames[frames.length - 1];
    if (!top || top.expects === "colon" || top.expects === "comma") return;
    const isKey = top.expects === "key";
    const path = frames.flatMap((one, index) => {
      if (index === frames.length - 1 && isKey) return [];
      return [one.open === "{" ? one.key : one.index];
    });
    const members = frames.map((one) => (one.open === "{" ? one.members : undefined));
    const prefix = text.slice(start, caret).replace(/^"/, "");
    place = { isKey, prefix, start, end, path, members, hasColon: /^\s*:/.test(text.slice(end)) };
  };
  for (const match of text.matchAll(TOKEN)) {
    const token = match[0];
    const start = match.index;
    const end = start + token.length;
    const isWord = !PUNCTUATION.includes(token);
    if (!isFound && isWord && start < caret && caret <= end) mark(start, end);
    else if (!isFound && caret <= start) mark(caret, caret);
    const top = frames[frames.length - 1];
    if (token === "{" || token === "[") {
      if (top) top.expects = "comma";
      frames.push({ open: token, key: "", index: 0, expects: token === "{" ? "key" : "value", members: new Map() });
    } else if (token === "}" || token === "]") {
      frames.pop();
    } else if (!top) {
      continue;
    } else if (token === ",") {
      top.index += 1;
      top.expects = top.open === "{" ? "key" : "value";
    } else if (token === ":") {
      top.expects = "value";
    } else if (top.expects === "key") {
      top.key = String(literal(token));
      top.members.set(top.key, undefined);
      top.expects = "colon";
    } else {
      if (top.open === "{") top.members.set(top.key, literal(token));
      top.expects = "comma";
    }
  }
  if (!isFound) mark(caret, caret);
  return place;
}

/** Returns a schema and its alternatives as plain nodes, without references. */
function alternatives(schema: any, node: any): any[] {
  if (!node || typeof node !== "object") return [];
  if (typeof node.$ref === "string") {
    const found = node.$ref.split("/").slice(1).reduce((at: any, key: string) => at?.[key], schema);
    return alternatives(schema, found).map((one) => (node.description ? { ...one, description: node.description } : one));
  }
  const nested = [...(node.anyOf ?? []), ...(node.oneOf ?? []), ...(node.allOf ?? [])];
  return nested.length ? nested.flatMap((one) => alternatives(schema, one)) : [node];
}

/** Drops the alternatives whose constants differ from the members of an object. */
function fitting(nodes: any[], members: Map<string, unknown> | undefined): any[] {
  if (!members) return nodes;
  const kept = nodes.filter((node) =>
    Object.entries<any>(node.properties ?? {}).every(
      ([key, one]) => one.const === undefined || members.get(key) === undefined || members.get(key) === one.const,
    ),
  );
  return kept.length ? kept : nodes;
}

function childrenOf(schema: any, node: any, step: string | number): any[] {
  if (typeof step === "number") return alternatives(schema, node.items);
  return alternatives(schema, node.properties?.[step] ?? node.additionalProperties);
}

function stubOf(nodes: any[]): string {
  const node = nodes[0] ?? {};
  if (node.const !== undefined) return JSON.stringify(node.const);
  if (node.enum) return JSON.stringify(node.enum[0]);
  return ({ object: "{}", array: "[]", string: '""', boolean: "false" } as Record<string, string>)[node.type] ?? "";
}

/** Returns the suggestions for a place, required members first.
 *
 * `names` returns the values that the document itself offers for a key, such as paths of its state.
 */
export function suggest(schema: unknown, place: Place, names: (key: string) => string[]): Suggestion[] {
  let nodes = alternatives(schema, schema);
  place.path.forEach((step, depth) => {
    // The value that is being written selects no alternative.
    const others = new Map(place.members[depth]);
    if (depth === place.path.length - 1 && !place.isKey) others.delete(String(step));
    nodes = fitting(nodes, place.members[depth] && others).flatMap((node) => childrenOf(schema, node, step));
  });
  const found = new Map<string, Suggestion>();
  const add = (one: Suggestion) => one.label !== place.prefix && !found.has(one.label) && found.set(one.label, one);
  if (place.isKey) {
    const present = place.members[place.members.length - 1] ?? new Map<string, unknown>();
    for (const node of fitting(nodes, present)) {
      for (const [key, property] of Object.entries<any>(node.properties ?? {})) {
        if (present.has(key) && key !== place.prefix) continue;
        const inner = alternatives(schema, property);
        const stub = place.hasColon ? "" : `: ${stubOf(inner)}`;
        const insert = JSON.stringify(key) + stub;
        const caret = insert.length - (/(\{\}|\[\]|"")$/.test(stub) ? 1 : 0);
        const about = property.description ?? inner[0]?.description ?? "";
        add({ label: key, insert, caret, about, isRequired: (node.required ?? []).includes(key) });
      }
    }
  } else {
    const key = [...place.path].reverse().find((one) => typeof one === "string") ?? "";
    for (const node of nodes) {
      const values = node.const !== undefined ? [node.const] : (node.enum ?? (node.type === "boolean" ? [true, false] : []));
      for (const value of values) {
        const insert = JSON.stringify(value);
        add({ label: String(value), insert, caret: insert.length, about: node.description ?? "", isRequired: false });
      }
    }
    // A closed object is completed by what its constants select, such as the name of an operation.
    for (const name of found.size ? [] : names(String(key))) {
      const insert = JSON.stringify(name);
      add({ label: name, insert, caret: insert.length, about: "", isRequired: false });
    }
  }
  const wanted = place.prefix.toLowerCase();
  return [...found.values()]
    .filter((one) => one.label.toLowerCase().includes(wanted))
    .sort(
      (a, b) =>
        Number(b.label.toLowerCase().startsWith(wanted)) - Number(a.label.toLowerCase().startsWith(wanted)) ||
        Number(b.isRequired) - Number(a.isRequired) ||
        a.label.localeCompare(b.label),
    )
    .slice(0, MAX_SUGGESTIONS);
}

const COLLECTIONS: Record<string, string> = {
  place: "places",
  deal: "deal",
  promise: "promises",
  clue: "clues",
  statement: "statements",
  to: "entities",
  by: "entities",
  entity: "entities",
  action: "actions",
  event: "random_events",
};

/** Returns the names that a document offers for a key: paths of its state, or ids of a collection. */
export function namesIn(document: any, key: string): string[] {
  if (key === "path" || key === "var") return [...statePaths(document?.state ?? {}, "state")];
  const found = document?.[COLLECTIONS[key] ?? ""];
  if (Array.isArray(found)) return found.map((one) => String(one?.id ?? "")).filter(Boolean);
  return found && typeof found === "object" ? Object.keys(found) : [];
}

function* statePaths(value: unknown, path: string): Generator<string> {
  if (value === null || typeof value !== "object" || Array.isArray(value)) {
    yield path;
    return;
  }
  for (const [key, inner] of Object.entries(value)) {
    yield* statePaths(inner, /^[A-Za-z_][A-Za-z0-9_]*$/.test(key) ? `${path}.${key}` : `${path}[${JSON.stringify(key)}]`);
  }
}
