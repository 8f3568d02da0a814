/** Calls of the engine in WebAssembly: texts and bytes go through its memory. */

/** Error of the engine, with a stable code such as `UNKNOWN_ACTION` or `RUN_ENDED`. */
export class EngineError extends Error {
  override readonly name = "EngineError";

  /**
   * @param code - stable code; see the reference of findings and of error reasons.
   * @param path - JSON Pointer of the place in the document; empty if there is none.
   */
  constructor(
    readonly code: string,
    message: string,
    readonly path = "",
  ) {
    super(`${code}: ${message}`);
  }
}

interface Exports {
  readonly memory: WebAssembly.Memory;
  input(length: number): number;
  output(): number;
  parse(): number;
  sha256(): number;
  compile(): number;
  free_program(program: number): void;
  new_state(program: number, seed: bigint): number;
  load_state(program: number): number;
  fork(state: number): number;
  free_state(state: number): void;
  legal_actions(state: number): number;
  act(state: number, idLength: number): number;
  narrate(state: number): number;
  roll(state: number): number;
  step(state: number): number;
  snapshot(state: number): number;
  tree(state: number): number;
  status(state: number): number;
}

const ENCODER = new TextEncoder();
const DECODER = new TextDecoder("utf-8", { ignoreBOM: true });

/** The engine. One instance serves any number of programs and states. */
export class Core {
  readonly #wasm: Exports;
  readonly #programs: FinalizationRegistry<number>;
  readonly #states: FinalizationRegistry<number>;

  constructor(instance: WebAssembly.Instance) {
    this.#wasm = instance.exports as unknown as Exports;
    this.#programs = new FinalizationRegistry((program) => this.#wasm.free_program(program));
    this.#states = new FinalizationRegistry((state) => this.#wasm.free_state(state));
  }

  /** Return the canonical form of a JSON document. */
  parse(document: string): string {
    this.#write(document);
    return this.#read(this.#wasm.parse());
  }

  /** Return the SHA-256 of texts and bytes in hexadecimal digits. */
  sha256(data: string | Uint8Array): string {
    this.#write(data);
    return this.#read(this.#wasm.sha256());
  }

  /** Compile a canonical document. */
  compile(document: string): CoreProgram {
    this.#write(document);
    const program = new CoreProgram(this, this.#created(this.#wasm.compile()));
    this.#programs.register(program, program.number);
    return program;
  }

  /** Return the initial state of a program. */
  newState(program: CoreProgram, seed: number): CoreState {
    return this.#state(program, this.#wasm.new_state(program.number, BigInt(seed)));
  }

  /** Restore a state. */
  loadState(program: CoreProgram, snapshot: string): CoreState {
    this.#write(snapshot);
    return this.#state(program, this.#wasm.load_state(program.number));
  }

  /** Return an independent copy of a state. */
  fork(state: CoreState): CoreState {
    return this.#state(state.program, this.#wasm.fork(state.number));
  }

  /** Take an action. */
  act(state: CoreState, actionId: string, params: string): string {
    const id = ENCODER.encode(actionId);
    const given = ENCODER.encode(params);
    const both = new Uint8Array(id.length + given.length);
    both.set(id);
    both.set(given, id.length);
    this.#write(both);
    return this.#read(this.#wasm.act(state.number, id.length));
  }

  /** Call an export that has a state and a text. */
  call(name: "narrate" | "roll", state: CoreState, argument: string): string {
    this.#write(argument);
    return this.#read(this.#wasm[name](state.number));
  }

  /** Call an export that has only a state. */
  get(name: "legal_actions" | "step" | "snapshot" | "tree" | "status", state: CoreState): string {
    return this.#read(this.#wasm[name](state.number));
  }

  #state(program: CoreProgram, result: number): CoreState {
    const state = new CoreState(program, this.#created(result));
    this.#states.register(state, state.number);
    return state;
  }

  #created(result: number): number {
    if (result < 0) this.#read(result);
    return result;
  }

  #write(argument: string | Uint8Array): void {
    const bytes = typeof argument === "string" ? ENCODER.encode(argument) : argument;
    const address = this.#wasm.input(bytes.length);
    new Uint8Array(this.#wasm.memory.buffer, address, bytes.length).set(bytes);
  }

  #read(result: number): string {
    const length = result < 0 ? -1 - result : result;
    const text = DECODER.decode(new Uint8Array(this.#wasm.memory.buffer, this.#wasm.output(), length));
    if (result >= 0) return text;
    const { code, message, path } = JSON.parse(text) as { code: string; message: string; path: string };
    throw new EngineError(code, message, path);
  }
}

/** A compiled scenario. */
export class CoreProgram {
  constructor(
    readonly core: Core,
    readonly number: number,
  ) {}
}

/** State of one run. It keeps its program in memory. */
export class CoreState {
  constructor(
    readonly program: CoreProgram,
    readonly number: number,
  ) {}
}
