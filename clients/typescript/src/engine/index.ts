/** Engine of Peripety in WebAssembly: plays and replays sessions without a server, with the same results, bit for bit. */

import type { VerifiedTranscript } from "../transcript.js";
import { Core } from "./core.js";
import { Game, type GameOptions } from "./game.js";
import { replayTranscript } from "./replay.js";
import { compileScenario, type Program } from "./scenario.js";

export type { Json, JsonObject, VerifiedTranscript } from "../transcript.js";
export { TranscriptError } from "../transcript.js";
export { EngineError } from "./core.js";
export type { Game, GameOptions, LocalTurn } from "./game.js";
export type { Action, Status, TurnResult } from "./turn.js";

/** A compiled scenario. */
export class Scenario {
  readonly #program: Program;

  constructor(program: Program) {
    this.#program = program;
  }

  /** SHA-256 of the document in canonical form. */
  get specHash(): string {
    return this.#program.specHash;
  }

  /** Start a session. */
  start(options: GameOptions = {}): Game {
    return new Game(this.#program, options);
  }
}

/** The engine. */
export class Engine {
  readonly #core: Core;

  /** @param instance - instance of `engine.wasm`; `loadEngine` makes one. */
  constructor(instance: WebAssembly.Instance) {
    this.#core = new Core(instance);
  }

  /**
   * Compile a scenario that a server has validated, such as that of `getScenario`.
   *
   * @throws EngineError - `UNSUPPORTED_KEY` with the path of a key that only the server can play.
   */
  load(document: string | Uint8Array): Scenario {
    const text = typeof document === "string" ? document : new TextDecoder("utf-8", { fatal: true }).decode(document);
    return new Scenario(compileScenario(this.#core, text));
  }

  /**
   * Verify a bundle and play its turns again.
   *
   * @throws TranscriptError - the first false line, and its turn.
   */
  replay(bundle: Uint8Array): Promise<VerifiedTranscript> {
    return replayTranscript(this.#core, bundle);
  }
}
