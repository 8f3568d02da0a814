// Calls of tools, and the decisions about them.
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

export function Call({ decided }: { decided: Decided }) {
  return (
    <span class="call">
      <code>{callText(decided.request)}</code> <DecisionWord decision={decided.decision.decision} />
    </span>
  );
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
