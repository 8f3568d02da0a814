// Changes of the conformance kit, which make a bundle false.
import { createHash } from "node:crypto";

export interface Change {
  name: string;
  line: number;
  at?: number;
  delete: number;
  insert: string;
  swap_with?: number;
  is_resealed: boolean;
  first_false_line: number;
  first_false_turn?: number;
}

export function tamper(bundle: Buffer, change: Change): Buffer {
  const lines = splitLines(bundle);
  const index = change.line - 1;
  if (change.at !== undefined) {
    const line = lines[index]!;
    const rest = line.subarray(change.at + change.delete);
    lines[index] = Buffer.concat([line.subarray(0, change.at), Buffer.from(change.insert), rest]);
  } else if (change.swap_with !== undefined) {
    const other = change.swap_with - 1;
    [lines[index], lines[other]] = [lines[other]!, lines[index]!];
  } else {
    lines.splice(index, 1);
  }
  return change.is_resealed ? seal(lines) : Buffer.concat(lines);
}

/** Return the lines with a correct last line, as a forger would write it. */
export function seal(lines: Buffer[]): Buffer {
  const before = Buffer.concat(lines.slice(0, -1));
  const sha256 = createHash("sha256").update(before).digest("hex");
  const end = `{"kind":"peripety.session.end","lines":${lines.length - 1},"sha256":"${sha256}"}\n`;
  return Buffer.concat([before, Buffer.from(end)]);
}

export function splitLines(bundle: Buffer): Buffer[] {
  const lines: Buffer[] = [];
  for (let start = 0; start < bundle.length; ) {
    const end = bundle.indexOf(10, start) + 1;
    lines.push(bundle.subarray(start, end));
    start = end;
  }
  return lines;
}
