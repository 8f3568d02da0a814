/** Verifier of exported sessions: canonical JSON (RFC 8785), hash chain and seal. Needs no server and no engine. */

/** A bundle that is intact. */
export interface VerifiedTranscript {
  /** Chain hash behind the last turn. It is proof only if you compare it with one from a trusted source. */
  readonly chainHash: string;
  /** State hash behind the last turn; null without turns. */
  readonly stateHash: string | null;
  /** Number of turns. */
  readonly turns: number;
  /** Hash of the specification. */
  readonly specHash: string;
}

/** First defect of a bundle. */
export class TranscriptError extends Error {
  override readonly name = "TranscriptError";

  /**
   * @param line - the false line, counted from 1.
   * @param turn - the turn of that line; undefined if the line is not a turn.
   */
  constructor(
    problem: string,
    readonly line: number,
    readonly turn: number | undefined,
  ) {
    super(`line ${line}${turn === undefined ? "" : ` (turn ${turn})`}: ${problem}; export the session again`);
  }
}

/** A JSON value. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
/** A JSON object. */
export type JsonObject = { [key: string]: Json };

/** Header fields that this verifier understands. */
export const SUPPORTED = { kind: "peripety.session", version: 1, engine_version: "1.0", rng_version: 1 } as const;

/**
 * Verify a bundle of `ExportSession`: every line is canonical, every hash is the computed one, and nothing was left out.
 *
 * @param bundle - bytes of the whole bundle.
 * @throws TranscriptError - the first false line, and its turn.
 */
export async function verifyTranscript(bundle: Uint8Array): Promise<VerifiedTranscript> {
  const lines = splitLines(bundle);
  const end = lines.length;
  const header = parseLine(lines, 1);
  check(Object.entries(SUPPORTED).every(([name, value]) => header[name] === value), "not a bundle of a supported version", 1);
  const { spec_hash: specHash, certificate_hash: certificateHash, turns, first_seed: seed } = header;
  check(typeof specHash === "string" && typeof turns === "number" && typeof seed === "number", "header is incomplete", 1);

  parseLine(lines, 2);
  check((await sha256(lineAt(lines, 2))) === specHash, "specification differs from spec_hash", 2);
  let first = 3;
  if (certificateHash !== null) {
    parseLine(lines, 3);
    check((await sha256(lineAt(lines, 3))) === certificateHash, "certificate differs from certificate_hash", 3);
    first = 4;
  }

  let chain = await sha256(encode(canonicalize({ seed, spec_hash: specHash })));
  let stateHash: string | null = null;
  for (let turn = 1; turn <= turns; turn += 1) {
    const line = first + turn - 1;
    check(line < end, "the turn is missing", line);
    const { record, events } = parseLine(lines, line, turn);
    const last = Array.isArray(events) ? events.at(-1) : undefined;
    const isTurn = isObject(record) && record["turn"] === turn && isObject(last) && last["kind"] === "committed";
    check(isTurn, "not the record of this turn", line, turn);
    chain = await sha256(concatenate(fromHex(chain), encode(canonicalize(record))));
    check(last["chain_hash"] === chain, "chain hash differs", line, turn);
    for (const name of ["changes", "state_hash", "status"]) {
      const isSame = name in record && name in last && canonicalize(record[name]!) === canonicalize(last[name]!);
      check(isSame, `${name} of the record and of the event differ`, line, turn);
    }
    stateHash = String(record["state_hash"]);
  }

  check(end === first + turns, "more lines than the header declares", first + turns);
  check(header["chain_hash"] === chain, "chain hash differs from that of the last turn", 1);
  const before = bundle.subarray(0, bundle.length - lineAt(lines, end).length - 1);
  const seal = canonicalize({ kind: "peripety.session.end", lines: end - 1, sha256: await sha256(before) });
  check(decode(lineAt(lines, end)) === seal, "not the seal of the lines before it", end);
  return { chainHash: chain, stateHash, turns, specHash };
}

/**
 * Return the canonical form of a JSON value (RFC 8785). ECMAScript writes numbers and texts as the RFC requires.
 *
 * @throws RangeError - a number is not finite, or a text has a lone surrogate.
 */
export function canonicalize(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(canonicalize).join(",")}]`;
  if (isObject(value)) {
    // The default order of texts is that of their UTF-16 code units.
    const members = Object.keys(value).sort().map((key) => `${canonicalize(key)}:${canonicalize(value[key]!)}`);
    return `{${members.join(",")}}`;
  }
  if (typeof value === "number" && !Number.isFinite(value)) throw new RangeError(`${value}: not a JSON number`);
  if (typeof value === "string" && /\p{Surrogate}/u.test(value)) throw new RangeError("text has a lone surrogate");
  return JSON.stringify(value);
}

/** Return the lines without their line feeds. */
function splitLines(bundle: Uint8Array): Uint8Array[] {
  const lines: Uint8Array[] = [];
  for (let start = 0; start < bundle.length; ) {
    const feed = bundle.indexOf(10, start);
    check(feed >= 0, "line feed is missing", lines.length + 1);
    lines.push(bundle.subarray(start, feed));
    start = feed + 1;
  }
  check(lines.length >= 3, "bundle is incomplete", Math.max(1, lines.length));
  return lines;
}

function lineAt(lines: readonly Uint8Array[], line: number): Uint8Array {
  return lines[line - 1] ?? new Uint8Array();
}

function parseLine(lines: readonly Uint8Array[], line: number, turn?: number): JsonObject {
  try {
    const text = decode(lineAt(lines, line));
    const value = JSON.parse(text) as Json;
    if (isObject(value) && canonicalize(value) === text) return value;
  } catch (error) {
    if (!(error instanceof SyntaxError || error instanceof TypeError || error instanceof RangeError)) throw error;
  }
  throw new TranscriptError("not canonical JSON", line, turn);
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function check(isRight: boolean, problem: string, line: number, turn?: number): asserts isRight {
  if (!isRight) throw new TranscriptError(problem, line, turn);
}

function encode(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/** Decode UTF-8; invalid bytes are a TypeError, and a byte order mark remains. */
function decode(bytes: Uint8Array): string {
  return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
}

function fromHex(text: string): Uint8Array {
  return Uint8Array.from(text.match(/../g) ?? [], (byte) => Number.parseInt(byte, 16));
}

function concatenate(left: Uint8Array, right: Uint8Array): Uint8Array {
  const both = new Uint8Array(left.length + right.length);
  both.set(left);
  both.set(right, left.length);
  return both;
}

async function sha256(bytes: Uint8Array): Promise<string> {
  const hash = await crypto.subtle.digest("SHA-256", bytes as Uint8Array<ArrayBuffer>);
  return Array.from(new Uint8Array(hash), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
