// Two versions of a policy: the rules that changed, and the calls that are decided differently.
import { useState } from "preact/hooks";
import { rpc, type Finding } from "../api";
import { date, t, tMaybe } from "../i18n";
import { clean, words } from "../text";
import { ProblemBox, Skeleton, useLoaded } from "../ui";
import { callText, DecisionWord, nameOf, RuleText, type Decision, type Request, type Rule, type Sentence, type Source, type Summary } from "./policyCalls";

interface Decided {
  witness: Request;
  before: Decision;
  after: Decision;
}

interface Diff {
  equivalent?: boolean;
  changes?: Decided[];
  rule_changes?: { kind: string; rule_id: string }[];
  findings?: Finding[];
}

/** A rule that changed, with a call that shows it. */
interface ChangedRule {
  kind: string;
  id: string;
  before?: string;
  after?: string;
  call?: Decided;
}

interface Comparison {
  diff: Diff;
  rules: ChangedRule[];
}

/** Compares the versions of a policy with each other and with other policies. */
export function ComparePolicies({ id, others }: { id: string; others: Summary[] }) {
  const [found, reload] = useLoaded(
    (signal) => rpc<{ versions?: Summary[] }>("PolicyService/ListPolicyVersions", { policy_id: id, page_size: 100 }, signal),
    [id],
  );
  return (
    <section class="stack-small">
      <h2>{t("policies.compare")}</h2>
      {found.state === "failed" && <ProblemBox problem={found.problem} retry={reload} />}
      {found.state === "loading" && <Skeleton lines={3} />}
      {found.state === "ready" && <Choices versions={found.value.versions ?? []} others={others} />}
    </section>
  );
}

function Choices({ versions, others }: { versions: Summary[]; others: Summary[] }) {
  const [before, setBefore] = useState(versions[1] && keyOf(versions[1]));
  const [after, setAfter] = useState(versions[0] && keyOf(versions[0]));
  const choice = (name: string, value: string | undefined, set: (key: string) => void) => (
    <label class="stack-small">
      <span class="small quiet">{name}</span>
      <select class="field" value={value ?? ""} onChange={(event) => set(event.currentTarget.value)}>
        {!value && <option value="">{t("compare.choose")}</option>}
        <optgroup label={t("policies.versions")}>
          {versions.map((one, index) => (
            <option key={one.policy_hash} value={keyOf(one)}>
              {[index === 0 && t("policies.latest"), date(one.create_time), one.policy_hash.slice(0, 6)].filter(Boolean).join(" · ")}
            </option>
          ))}
        </optgroup>
        {others.length > 0 && (
          <optgroup label={t("policies.others")}>
            {others.map((one) => (
              <option key={one.policy_id} value={keyOf(one)}>
                {nameOf(one)}
              </option>
            ))}
          </optgroup>
        )}
      </select>
    </label>
  );
  if (versions.length + others.length < 2) {
    return (
      <>
        <p class="quiet">{t("policies.oneversion")}</p>
        <pre class="command" dir="ltr">{`peripety policy compile FOLDER --version-of ${clean(versions[0]?.policy_id ?? "ID")} --server 127.0.0.1:50051`}</pre>
      </>
    );
  }
  return (
    <>
      <div class="compare-choices">
        {choice(t("compare.before"), before, setBefore)}
        {choice(t("compare.after"), after, setAfter)}
      </div>
      {before && after && <Differences key={`${before} ${after}`} before={sourceOf(before)} after={sourceOf(after)} />}
    </>
  );
}

function keyOf({ policy_id, policy_hash }: Summary): string {
  return JSON.stringify({ policy_id, policy_hash });
}

function sourceOf(key: string): Source {
  return JSON.parse(key) as Source;
}

function Differences({ before, after }: { before: Source; after: Source }) {
  const [found, reload] = useLoaded((signal) => compare(before, after, signal), []);
  if (found.state === "failed") return <ProblemBox problem={found.problem} retry={reload} />;
  if (found.state === "loading") return <Skeleton lines={4} />;
  const { diff, rules } = found.value;
  const changes = diff.changes ?? [];
  return (
    <>
      <p role="status" class="verdict">
        {diff.equivalent ? t("policies.equivalent") : changes.length ? t("policies.differ", { n: changes.length }) : t("policies.unproved")}
      </p>
      {changes.length > 0 && (
        <ul class="changed-calls">
          {changes.map((one, index) => (
            <li key={index}>
              <code dir="ltr">{callText(one.witness)}</code>
              <Outcome name={t("compare.before")} decision={one.before} />
              <Outcome name={t("compare.after")} decision={one.after} />
            </li>
          ))}
        </ul>
      )}
      {rules.length > 0 && <h3 class="changes-title">{t("policies.changes", { n: rules.length })}</h3>}
      <ul class="changed-rules">
        {rules.map((one) => (
          <li key={`${one.kind} ${one.id}`} class={`changed-rule stack-small ${one.kind}`}>
            <p class="small">
              <span class="badge">{tMaybe(`patch.${one.kind}`, words(one.kind))}</span> <code dir="ltr">{clean(one.id)}</code>
            </p>
            {one.before && one.before !== one.after && (
              <p>
                <del dir="auto">
                  <RuleText text={one.before} />
                </del>
              </p>
            )}
            {one.after && (
              <p dir="auto">
                <RuleText text={one.after} />
              </p>
            )}
            {one.call ? (
              <p class="small quiet">
                <code dir="ltr">{callText(one.call.witness)}</code>: <Change decided={one.call} />
              </p>
            ) : (
              <p class="small quiet">{t("policies.nocall")}</p>
            )}
          </li>
        ))}
      </ul>
      {(diff.findings ?? []).length > 0 && (
        <ul class="notes">
          {diff.findings!.map((one, index) => (
            <li key={index} class={one.severity === "warning" ? "warning" : "error"} dir="auto">
              {clean(one.message)}
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

function Outcome({ name, decision }: { name: string; decision: Decision }) {
  return (
    <p>
      <span class="quiet small">{name}</span>
      <DecisionWord decision={decision.decision} />
      <span class="quiet small">{decision.rule_id ? <code dir="ltr">{clean(decision.rule_id)}</code> : t("policies.default")}</span>
    </p>
  );
}

function Change({ decided: { before, after } }: { decided: Decided }) {
  if (before.decision === after.decision) {
    return (
      <>
        <DecisionWord decision={after.decision} />, {t("policies.asbefore")}
      </>
    );
  }
  return (
    <>
      <DecisionWord decision={before.decision} /> → <DecisionWord decision={after.decision} />
    </>
  );
}

async function compare(before: Source, after: Source, signal: AbortSignal): Promise<Comparison> {
  const explain = (policy: Source) => rpc<{ sentences?: Sentence[] }>("PolicyService/ExplainPolicy", { policy }, signal);
  const decide = async (policy: Source, request: Request) =>
    (await rpc<{ result: Decision }>("PolicyService/Decide", { policy, request }, signal)).result;
  const [diff, old, now] = await Promise.all([
    rpc<Diff>("PolicyService/DiffPolicies", { before, after }, signal),
    explain(before).then(rulesOf),
    explain(after).then(rulesOf),
  ]);
  const rules = (diff.rule_changes ?? []).map(async ({ kind, rule_id: id }) => {
    const [was, is] = [old.get(id), now.get(id)];
    const changed: ChangedRule = { kind, id, before: was?.text, after: is?.text };
    changed.call = (diff.changes ?? []).find((one) => one.before.rule_id === id || one.after.rule_id === id);
    // A change of a rule that decides no call differently is shown by a call that the rule decides.
    const witness = (is ?? was)?.decided?.request;
    if (!changed.call && witness) {
      changed.call = { witness, before: await decide(before, witness), after: await decide(after, witness) };
    }
    return changed;
  });
  return { diff, rules: await Promise.all(rules) };
}

function rulesOf({ sentences }: { sentences?: Sentence[] }): Map<string, Rule> {
  return new Map((sentences ?? []).flatMap((one) => one.rules ?? []).map((rule) => [rule.rule_id, rule]));
}
