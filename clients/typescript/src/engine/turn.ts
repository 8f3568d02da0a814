/** One turn of the engine: results as events, and the record that the hash chain covers. Same form as on the server. */

import { canonicalize, type Json, type JsonObject } from "../transcript.js";
import { type Core, type CoreState, EngineError } from "./core.js";

/** An action of a turn. */
export interface Action {
  /** Id of the action in the scenario. */
  readonly actionId: string;
  /** Parameters; none by default. */
  readonly params?: Readonly<Record<string, number | string | boolean>>;
  /** Acting entity of a scenario with several players. */
  readonly entityId?: string;
}

/** Status of a run. */
export interface Status {
  readonly kind: "ongoing" | "lost" | "won";
  /** Id of the condition that ended it; null while it is ongoing. */
  readonly condition: string | null;
  /** Text of that condition. */
  readonly message: string | null;
}

/** Result of a turn. */
export interface TurnResult {
  /** Results of actions and rolls, then `world_resolved`, in the form of the bundle format. */
  readonly events: readonly JsonObject[];
  readonly record: JsonObject;
  readonly changes: readonly Json[];
  readonly status: Status;
  readonly legalActions: readonly string[];
  readonly stateHash: string;
}

interface Part {
  readonly accepted?: boolean;
  readonly reasons?: JsonObject[];
  readonly changes: Json[];
  readonly log: Json[];
  readonly errors: JsonObject[];
}

interface Step extends Part {
  readonly turn: number;
  readonly event: string | null;
  readonly draws: Json[];
  readonly status: Partial<Status>;
}

/** Play a turn on a state, from the inputs of its record: `actions`, `rolls`, `narrated`. */
export function playTurn(core: Core, state: CoreState, inputs: JsonObject): TurnResult {
  const events: JsonObject[] = [];
  const parts: Part[] = [];
  const actions = listOf(inputs["actions"]);
  for (const { id, params, entity_id = null } of actions) {
    const result = partOf(core.act(state, String(id), canonicalize(params ?? {})));
    const { accepted = false, reasons = [], changes, log } = result;
    const resolved = { kind: "action_resolved", action_id: id!, params: params ?? {}, accepted, reasons, changes, log };
    events.push({ ...resolved, entity_id });
    for (const error of result.errors) {
      if (reasons.some((reason) => canonicalize(reason) === canonicalize(error))) continue;
      const { code, rule, message } = error;
      events.push({ kind: "rule_failed", code: code!, rule: rule!, message: message!, turn_abandoned: false });
    }
    parts.push(result);
  }
  const rolls = listOf(inputs["rolls"]);
  for (const die of rolls) {
    events.push({ kind: "rolled", roll: JSON.parse(core.call("roll", state, canonicalize(die))) as Json });
  }
  const narrated = listOf(inputs["narrated"]);
  const before: Part[] = [];
  if (narrated.length > 0) {
    const result = partOf(core.call("narrate", state, canonicalize(narrated)));
    if (!result.accepted) throw new EngineError("TURN_NOT_PLAYABLE", "the changes of the narrator are not allowed");
    before.push(result);
    parts.push(result);
  }
  const step = JSON.parse(core.get("step", state)) as Step;
  const world = { ...step, errors: step.errors.map(withCount) };
  parts.push(world);
  const status = statusOf(step.status);
  const stateHash = core.sha256(core.get("tree", state));
  const last = [...before, world];
  const changes = parts.flatMap((part) => part.changes);
  events.push({
    kind: "world_resolved",
    event_id: step.event,
    changes: last.flatMap((part) => part.changes),
    log: last.flatMap((part) => part.log),
    errors: last.flatMap((part) => part.errors),
    status: { ...status },
  });
  const record: JsonObject = {
    turn: step.turn,
    actions,
    ...(inputs["seed"] === undefined ? {} : { seed: inputs["seed"] }),
    ...(rolls.length > 0 ? { rolls } : {}),
    ...(narrated.length > 0 ? { narrated } : {}),
    changes,
    draws: step.draws,
    log: parts.flatMap((part) => part.log),
    event: step.event,
    errors: parts.flatMap((part) => part.errors),
    status: { ...status },
    state_hash: stateHash,
  };
  const legalActions = status.kind === "ongoing" ? (JSON.parse(core.get("legal_actions", state)) as string[]) : [];
  return { events, record, changes, status, legalActions, stateHash };
}

/** Return the action as a record has it. */
export function toRecord({ actionId, params = {}, entityId }: Action): JsonObject {
  return { id: actionId, params: { ...params }, ...(entityId === undefined ? {} : { entity_id: entityId }) };
}

/** Return the status with all its members. */
export function statusOf({ kind = "ongoing", condition = null, message = null }: Partial<Status>): Status {
  return { kind, condition, message };
}

/** Return the chain hash before the first turn. */
export function startChain(core: Core, seed: number, specHash: string): string {
  return core.sha256(canonicalize({ seed, spec_hash: specHash }));
}

/** Return the chain hash behind one more turn. */
export function extendChain(core: Core, chainHash: string, record: JsonObject): string {
  const before = Uint8Array.from(chainHash.match(/../g) ?? [], (byte) => Number.parseInt(byte, 16));
  const text = new TextEncoder().encode(canonicalize(record));
  const both = new Uint8Array(before.length + text.length);
  both.set(before);
  both.set(text, before.length);
  return core.sha256(both);
}

function partOf(text: string): Part {
  const part = JSON.parse(text) as Part;
  return { ...part, reasons: (part.reasons ?? []).map(withCount), errors: part.errors.map(withCount) };
}

function withCount(error: JsonObject): JsonObject {
  return { count: 1, ...error };
}

function listOf(value: Json | undefined): JsonObject[] {
  return Array.isArray(value) ? (value as JsonObject[]) : [];
}
