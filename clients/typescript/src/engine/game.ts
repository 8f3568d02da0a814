/** Sessions without a server: turns of the player, state views, and the bundle that a server verifies. */

import { newRequestId } from "../request_id.js";
import { canonicalize, SUPPORTED, type Json, type JsonObject } from "../transcript.js";
import { type CoreState, EngineError } from "./core.js";
import type { Program } from "./scenario.js";
import { type Action, extendChain, playTurn, startChain, type Status, statusOf, toRecord, type TurnResult } from "./turn.js";
import { projectState } from "./view.js";

/** Options of a session. */
export interface GameOptions {
  /** Seed, 0 to 2^53 - 1; that of the scenario by default. */
  readonly seed?: number;
  /** Id of the scenario on the server that will verify the session. */
  readonly scenarioId?: string;
  /** Certificate of the scenario, as `getCertificate` returns it. */
  readonly certificate?: string;
}

/** A turn that was applied. */
export interface LocalTurn extends TurnResult {
  readonly turn: number;
  /** Chain hash behind the turn. */
  readonly chainHash: string;
}

const MAX_ACTIONS = 16;
const NO_TOKENS = {
  input_tokens: 0,
  output_tokens: 0,
  cache_read_tokens: 0,
  cache_write_tokens: 0,
  reasoning_tokens: 0,
  long_cache_write_tokens: 0,
};
const NO_CONDUCT = {
  tool_rounds: 0,
  tool_calls: 0,
  rejected_actions: 0,
  refused_calls: 0,
  refused_changes: 0,
  refused_answers: 0,
  withheld_secrets: 0,
};

/** A session that is played here. */
export class Game {
  readonly #program: Program;
  readonly #seed: number;
  readonly #scenarioId: string;
  readonly #certificate: string | undefined;
  readonly #lines: string[] = [];
  #state: CoreState;
  /** Number of turns played. */
  turn = 0;
  /** Ids of the legal actions, in the order of the scenario. Empty when the run has ended. */
  legalActions: readonly string[];
  status: Status;
  /** Hash of the state tree. */
  stateHash: string;
  /** Hash over all turns. Hand it in at once if the bundle follows later: it commits the player to these turns. */
  chainHash: string;

  constructor(program: Program, { seed, scenarioId = "scenario", certificate }: GameOptions) {
    const { core, compiled, spec, specHash } = program;
    this.#program = program;
    this.#seed = seed ?? Number(spec["seed"]);
    if (!Number.isSafeInteger(this.#seed) || this.#seed < 0) throw new RangeError(`seed: ${seed}: not an integer from 0 to 2^53 - 1`);
    this.#scenarioId = scenarioId;
    this.#certificate = certificate;
    this.#state = core.newState(compiled, this.#seed);
    this.legalActions = JSON.parse(core.get("legal_actions", this.#state)) as string[];
    this.status = statusOf(JSON.parse(core.get("status", this.#state)) as Partial<Status>);
    this.stateHash = core.sha256(core.get("tree", this.#state));
    this.chainHash = startChain(core, this.#seed, specHash);
  }

  /**
   * Play one turn. It is applied completely or, if this throws, not at all. An action that is not legal is part of the
   * turn, and its `action_resolved` has the reasons.
   *
   * @param actions - at most 16, in order. Without actions, only the world moves.
   * @throws EngineError - such as `UNKNOWN_ACTION` or `RUN_ENDED`.
   */
  play(...actions: readonly Action[]): LocalTurn {
    if (actions.length > MAX_ACTIONS) throw new EngineError("TOO_MANY_ACTIONS", `${actions.length}: a turn has at most ${MAX_ACTIONS} actions`);
    const { core } = this.#program;
    const state = core.fork(this.#state);
    const result = playTurn(core, state, { actions: actions.map(toRecord) });
    const chainHash = extendChain(core, this.chainHash, result.record);
    this.#lines.push(turnLine(actions, result, chainHash));
    this.#state = state;
    this.turn += 1;
    const { legalActions, status, stateHash } = result;
    Object.assign(this, { legalActions, status, stateHash, chainHash });
    return { ...result, turn: this.turn, chainHash };
  }

  /** Return the state that an entity may see; null for what everyone sees. */
  viewOf(entityId: string | null): JsonObject {
    return projectState(this.#program.spec, JSON.parse(this.#program.core.get("tree", this.#state)) as Json, entityId);
  }

  /** Return the whole state, hidden parts included. */
  get state(): JsonObject {
    return JSON.parse(this.#program.core.get("tree", this.#state)) as JsonObject;
  }

  /** Return the session as a bundle, for `importTranscript`, `peripety sessions import` and `peripety replay`. */
  exportBundle(): Uint8Array {
    const { core, document, specHash } = this.#program;
    const header = canonicalize({
      ...SUPPORTED,
      exported_by: "@peripety/client",
      scenario_id: this.#scenarioId,
      spec_hash: specHash,
      certificate_hash: this.#certificate === undefined ? null : core.sha256(this.#certificate),
      first_seed: this.#seed,
      next_seed: null,
      turns: this.turn,
      chain_hash: this.chainHash,
      table: null,
      narrator: { model: null, language: null, turn_budget: null, session_budget: null },
    });
    const certificate = this.#certificate === undefined ? [] : [this.#certificate];
    const lines = [header, document, ...certificate, ...this.#lines];
    const text = lines.map((line) => `${line}\n`).join("");
    const seal = canonicalize({ kind: "peripety.session.end", lines: lines.length, sha256: core.sha256(text) });
    return new TextEncoder().encode(`${text}${seal}\n`);
  }
}

function turnLine(actions: readonly Action[], result: TurnResult, chainHash: string): string {
  const requestId = newRequestId();
  const accepted = {
    kind: "accepted",
    attempt_id: newRequestId(),
    request_id: requestId,
    actions: actions.map(({ actionId, params = {}, entityId = null }) => ({ action_id: actionId, params: { ...params }, entity_id: entityId })),
    input: "",
  };
  const committed = {
    kind: "committed",
    state_hash: result.stateHash,
    chain_hash: chainHash,
    status: { ...result.status },
    legal_actions: [...result.legalActions],
    usage: { calls: 0, usage: NO_TOKENS, cost: 0, cache_savings: 0 },
    changes: [...result.changes],
    narrative: "",
    resolution: "server_resolved",
    model: "",
    commit_time: Date.now() * 1000,
    conduct: NO_CONDUCT,
    next_seat_id: null,
  };
  const events = [accepted, ...result.events, committed] as Json[];
  return canonicalize({ record: result.record, request_id: requestId, pov: null, events });
}
