// Places in JSON text, and differences between two texts.

/** Returns the line, from 1, of the value that a JSON Pointer names in a valid JSON text; that of its nearest parent if it is missing. */
export function lineOfPointer(text: string, pointer: string): number {
  const wanted = pointer
    .split("/")
    .slice(1)
    .map((part) => part.replace(/~1/g, "/").replace(/~0/g, "~"));
  let at = 0;
  let best = 0;
  const space = () => {
    while (/\s/.test(text[at] ?? "")) at += 1;
  };
  const string = (): string => {
    const start = at;
    at += 1;
    while (at < text.length && text[at] !== '"') at += text[at] === "\\" ? 2 : 1;
    at += 1;
    try {
      return JSON.parse(text.slice(start, at)) as string;
    } catch {
      return "";
    }
  };
  // Follows the wanted path as deep as it exists, and skips everything else.
  const value = (depth: number): void => {
    space();
    if (depth >= 0) best = at;
    const isOnPath = depth >= 0 && depth < wanted.length;
    const open = text[at];
    if (open === '"') {
      string();
    } else if (open === "{" || open === "[") {
      at += 1;
      for (let index = 0; ; index += 1) {
        space();
        if (at >= text.length || text[at] === "}" || text[at] === "]") break;
        let key = String(index);
        const keyAt = at;
        if (open === "{") {
          key = string();
          space();
          at += 1;
        }
        const matches = isOnPath && key === wanted[depth];
        if (matches) {
          value(depth + 1);
          if (depth + 1 === wanted.length) best = open === "{" ? keyAt : best;
          return;
        }
        value(-1);
        space();
        if (text[at] === ",") at += 1;
      }
      at += 1;
    } else {
      while (at < text.length && !/[,\]}\s]/.test(text[at]!)) at += 1;
    }
  };
  value(0);
  return text.slice(0, best).split("\n").length;
}

export interface LineChange {
  kind: "same" | "added" | "removed";
  text: string;
}

const MAX_LINES = 4000;

/** Returns the lines of two texts in order, by their longest common subsequence. */
export function diffLines(before: string, after: string): LineChange[] {
  const a = before.split("\n");
  const b = after.split("\n");
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  const left = a.slice(start, a.length - end);
  const right = b.slice(start, b.length - end);
  const same = (lines: string[]): LineChange[] => lines.map((text) => ({ kind: "same", text }));
  const [head, tail] = [same(a.slice(0, start)), same(a.slice(a.length - end))];
  if (left.length * right.length > MAX_LINES * MAX_LINES) {
    return [...head, ...left.map((text) => ({ kind: "removed" as const, text })), ...right.map((text) => ({ kind: "added" as const, text })), ...tail];
  }
  const lengths = Array.from({ length: left.length + 1 }, () => new Uint32Array(right.length + 1));
  for (let i = left.length - 1; i >= 0; i -= 1) {
    for (let j = right.length - 1; j >= 0; j -= 1) {
      lengths[i]![j] = left[i] === right[j] ? lengths[i + 1]![j + 1]! + 1 : Math.max(lengths[i + 1]![j]!, lengths[i]![j + 1]!);
    }
  }
  const changes: LineChange[] = [];
  let [i, j] = [0, 0];
  while (i < left.length || j < right.length) {
    if (i < left.length && j < right.length && left[i] === right[j]) {
      changes.push({ kind: "same", text: left[i]! });
      i += 1;
      j += 1;
    } else if (j >= right.length || (i < left.length && lengths[i + 1]![j]! >= lengths[i]![j + 1]!)) {
      changes.push({ kind: "removed", text: left[i]! });
      i += 1;
    } else {
      changes.push({ kind: "added", text: right[j]! });
      j += 1;
    }
  }
  return [...head, ...changes, ...tail];
}

interface Side {
  line: number;
  text: string;
}

export type Row = { kind: "same" | "changed"; left?: Side; right?: Side } | { kind: "gap"; count: number };

const CONTEXT = 3;

/** Returns two texts as rows side by side. Lines far from any difference are left out. */
export function rowsOf(before: string, after: string): Row[] {
  const rows: Row[] = [];
  let [left, right] = [0, 0];
  let removed: Side[] = [];
  let added: Side[] = [];
  const flush = () => {
    for (let index = 0; index < Math.max(removed.length, added.length); index += 1) {
      rows.push({ kind: "changed", left: removed[index], right: added[index] });
    }
    [removed, added] = [[], []];
  };
  for (const { kind, text } of diffLines(before, after)) {
    if (kind === "removed") removed.push({ line: (left += 1), text });
    else if (kind === "added") added.push({ line: (right += 1), text });
    else {
      flush();
      rows.push({ kind, left: { line: (left += 1), text }, right: { line: (right += 1), text } });
    }
  }
  flush();
  const isNear = (index: number) =>
    rows.slice(Math.max(index - CONTEXT, 0), index + CONTEXT + 1).some((row) => row.kind === "changed");
  const shown: Row[] = [];
  rows.forEach((row, index) => {
    const last = shown[shown.length - 1];
    if (isNear(index)) shown.push(row);
    else if (last?.kind === "gap") last.count += 1;
    else shown.push({ kind: "gap", count: 1 });
  });
  return shown.some((row) => row.kind === "changed") ? shown : [];
}
