// Messages of the edge, as far as the page reads them.

export type RunKind = "ongoing" | "lost" | "won" | "survived";

export interface RunStatus {
  kind: RunKind;
  condition?: string;
  message?: string;
}

export type ParamValue = number | string | boolean;

export interface Param {
  name: string;
  type: "integer" | "number" | "string" | "boolean";
  minimum?: number;
  maximum?: number;
  choices?: ParamValue[];
  max_length?: number;
}

export interface LegalAction {
  action_id: string;
  name: string;
  description?: string;
  params?: Param[];
}

export interface ActionCall {
  action_id: string;
  params?: Record<string, ParamValue>;
}

export interface Cause {
  kind: "action" | "event" | "schedule" | "decay" | "narrator";
  id?: string;
}

export interface Change {
  path: string;
  op: string;
  before?: unknown;
  after?: unknown;
  cause: Cause;
}

export interface LogLine {
  turn: number;
  message: string;
  cause: Cause;
}

export interface Roll {
  kind: string;
  target?: string;
  difficulty: number;
  value: number;
  success?: boolean;
}

export interface Seat {
  seat_id: string;
  entity_id: string;
}

export interface Session {
  session_id: string;
  scenario_id: string;
  spec_hash: string;
  seed?: number;
  turn?: number;
  status: RunStatus;
  state: Record<string, unknown>;
  legal_actions?: LegalAction[];
  pov_entity_id?: string;
  parent_session_id?: string;
  parent_turn?: number;
  seat_config?: { seats: Seat[]; order?: string };
  next_seat_id?: string;
  update_time?: string;
}

export interface SessionSummary {
  session_id: string;
  scenario_id: string;
  turn?: number;
  status: RunStatus;
  update_time?: string;
  parent_session_id?: string;
}

export interface ScenarioSummary {
  scenario_id: string;
  name: string;
  spec_hash: string;
  fail_rate?: number;
  create_time?: string;
  certificate_hash?: string;
}

export interface Band {
  upto?: number;
  word: string;
}

export interface Label {
  name: string;
  unit?: string;
  bands?: Band[];
}

export interface Person {
  id: string;
  name?: string;
  description?: string;
  manner?: string;
  playable: boolean;
}

export interface Story {
  name: string;
  premise: string;
  opening: string;
  turn_length: string;
  horizon: number;
  entities: Person[];
  places: Record<string, { name?: string; description?: string }>;
  labels: Record<string, Label>;
  bounds: Record<string, { min?: number; max?: number }>;
  actions: Record<string, string>;
  events: Record<string, string>;
  endings: Record<string, string>;
  ending?: { epilogue: string; paths: string[] };
}

export interface Rate {
  count?: number;
  total: number;
  value?: number;
  low?: number;
  high?: number;
}

export interface Forecast {
  turn?: number;
  runs: number;
  outcomes?: { condition: string; kind: RunKind; rate: Rate }[];
  survived?: Rate;
  final?: boolean;
}

export interface DryRun {
  runs: number;
  lost?: number;
  won?: number;
  survived?: number;
  fail_rate?: number;
  wilson_low?: number;
  wilson_high?: number;
  persona?: string;
  losses?: { id: string; count?: number }[];
  horizon?: number;
}

export interface PersonaReport {
  persona: string;
  lost: Rate;
  won?: Rate;
  survived?: Rate;
  losses?: { id: string; count?: number }[];
  loss_turns?: { turn: number; count?: number }[];
  actions?: { id: string; count?: number }[];
  events?: { id: string; count?: number }[];
}

export interface Certificate {
  certificate_hash: string;
  verdict: "certified" | "refused";
  findings?: { code: string; message: string; path?: string }[];
  personas?: PersonaReport[];
  planner_gap?: number;
  drifts?: { path: string; per_turn?: number; limit?: number }[];
  proofs?: { code: string; path?: string; argument: string }[];
  dead_actions?: string[];
  dominant_actions?: string[];
  band?: { min_fail_rate?: number; max_fail_rate?: number };
}
