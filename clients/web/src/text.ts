// Text of users and models: cleaned for display, and never interpreted.

/** Controls and terminal sequences, and marks that reorder the text around them. */
const ESCAPES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-_])/g;
const CONTROLS = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069\u2028\u2029\ufeff]/g;

/** Returns text without control characters. Line breaks and tabs remain. */
export function clean(text: string): string {
  return text.replace(ESCAPES, "").replace(/\r\n?/g, "\n").replace(CONTROLS, "");
}

/** Returns text in which each character that cannot be seen, or reorders others, is an escape. */
export function exact(text: string): string {
  return text.replace(/[^\P{C}\n]|[^\P{Z} ]/gu, (hidden) =>
    Array.from({ length: hidden.length }, (_, at) => `\\u${hidden.charCodeAt(at).toString(16).padStart(4, "0")}`).join(""),
  );
}

/** Returns the words of an identifier: `lead_actor` becomes `lead actor`. */
export function words(key: string): string {
  const parts = clean(key).replace(/([a-z\d])([A-Z])/g, "$1 $2").replace(/[_-]+/g, " ").trim();
  return parts || clean(key);
}

export function capitalize(text: string): string {
  return text.charAt(0).toLocaleUpperCase() + text.slice(1);
}

export type Segment = string | number;

/** Parses a state path: `state.a["odd key"][2]` becomes `["state", "a", "odd key", 2]`. */
export function parsePath(path: string): Segment[] {
  const segments: Segment[] = [];
  const step = /\.?([A-Za-z_][A-Za-z0-9_]*)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]/gy;
  for (let match = step.exec(path); match; match = step.exec(path)) {
    if (match[1] !== undefined) segments.push(match[1]);
    else if (match[2] !== undefined) segments.push(Number(match[2]));
    else segments.push(JSON.parse(match[3]!) as string);
  }
  return segments;
}

/** Formats a state path; the inverse of `parsePath`. */
export function formatPath(segments: readonly Segment[]): string {
  return segments
    .map((segment, index) => {
      if (index === 0) return String(segment);
      if (typeof segment === "number") return `[${segment}]`;
      return /^[A-Za-z_][A-Za-z0-9_]*$/.test(segment) ? `.${segment}` : `[${JSON.stringify(segment)}]`;
    })
    .join("");
}
