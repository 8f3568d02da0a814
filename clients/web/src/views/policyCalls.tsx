// Policies and their rules, calls of tools, and the decisions about them.
import { clean } from "../text";

export interface Request {
  server_name: string;
  tool_name: string;
  arguments?: unknown;
  roles?: string[];
}

export interface Decision {
  decision: string;
  rule_id?: string;
  by_invariant?: boolean;
  reasons?: string[];
}

export interface Decided {
  request: Request;
  decision: Decision;
}

/** A rule in English, with a call that it decides and one that it just misses. */
export interface Rule {
  rule_id: string;
  text: string;
  decided?: Decided;
  nearest?: Decided;
}

export interface Sentence {
  sentence?: string;
  rules?: Rule[];
}

/** A stored policy in one version. */
export interface Source {
  policy_id: string;
  policy_hash: string;
}

export interface Summary extends Source {
  name?: string;
  rules?: number;
  scenarios?: number;
  create_time?: string;
}

/** The name of a policy, or its id if it has none. */
export function nameOf({ name, policy_id }: Summary): string {
  return clean(name || policy_id);
}

export function Call({ decided }: { decided: Decided }) {
  return (
    <li class="call">
      <DecisionWord decision={decided.decision.decision} />
      <code dir="ltr">{callText(decided.request)}</code>
    </li>
  );
}

/** The English of a rule, with its names as code. */
export function RuleText({ text }: { text: string }) {
  const parts = clean(text).split("`");
  return <>{parts.map((part, index) => (index % 2 ? <code key={index}>{part}</code> : part))}</>;
}

export function callText(request: Request): string {
  const text = request.arguments === undefined ? "" : ` ${JSON.stringify(request.arguments)}`;
  const roles = request.roles?.length ? ` (${request.roles.join(", ")})` : "";
  return clean(`${request.server_name}/${request.tool_name}${text}${roles}`);
}

export function DecisionWord({ decision }: { decision: string }) {
  const kind = decision === "allow" ? "good-text" : decision === "deny" ? "bad-text" : "warn-text";
  return <strong class={kind}>{clean(decision.replace(/_/g, " "))}</strong>;
}
