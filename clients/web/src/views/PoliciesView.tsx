// Policies: each sentence beside its rules in English, a call to try, and the differences of versions.
import type { TargetedSubmitEvent } from "preact";
import { useState } from "preact/hooks";
import { rpc, Problem, type Finding } from "../api";
import { date, percent, t } from "../i18n";
import { clean } from "../text";
import { CoverageFigure, Empty, Figure, ProblemBox, Skeleton, toProblem, useLoaded, useTitle, type Coverage } from "../ui";
import { ApprovalsView } from "./ApprovalsView";
import { ComparePolicies } from "./ComparePolicies";
import { Call, DecisionWord, nameOf, RuleText, type Decision, type Request, type Sentence, type Summary } from "./policyCalls";

interface Policy {
  policy_id: string;
  policy_hash: string;
  document: { name?: string };
  scenarios?: { description: string; request: Request; expected: string }[];
  verification?: {
    passed?: number;
    failed?: number;
    coverage?: Coverage[];
    mutation?: { score?: number; killed?: number; survived?: number };
  };
  create_time?: string;
}

export default function PoliciesView({ id }: { id: string }) {
  return id === "approvals" ? <ApprovalsView /> : <Stored id={id} />;
}

function Stored({ id }: { id: string }) {
  useTitle(t("nav.policies"));
  const [list, reload] = useLoaded(
    (signal) => rpc<{ policies?: Summary[] }>("PolicyService/ListPolicies", { page_size: 100 }, signal),
    [],
  );
  if (list.state !== "ready") {
    return (
      <main id="main" class="page stack">
        <h1>{t("nav.policies")}</h1>
        {list.state === "failed" ? <ProblemBox problem={list.problem} retry={reload} /> : <Skeleton lines={6} />}
      </main>
    );
  }
  const policies = list.value.policies ?? [];
  return id ? <Opened id={id} others={policies.filter((one) => one.policy_id !== id)} /> : <List policies={policies} />;
}

function List({ policies }: { policies: Summary[] }) {
  return (
    <main id="main" class="page stack">
      <header class="stack-small">
        <h1>{t("nav.policies")}</h1>
        <p class="lead-text">{t("policies.about")}</p>
      </header>
      <p>
        <a class="button" href="#/policies/approvals">
          {t("approvals")}
        </a>
      </p>
      {policies.length === 0 && (
        <Empty title={t("policies.none")}>
          <p>{t("policies.none.hint")}</p>
          <pre class="command">peripety policy compile examples/policies/office -o out --server 127.0.0.1:50051</pre>
        </Empty>
      )}
      <ul class="cards">
        {policies.map((one) => (
          <li key={one.policy_id} class="card">
            <a class="card-link" href={`#/policies/${one.policy_id}`}>
              <span class="card-title" dir="auto">
                {nameOf(one)}
              </span>
              <span class="card-text">
                <span>{t("policies.rules", { n: one.rules ?? 0 })}</span>
                <span>{t("policies.scenarios", { n: one.scenarios ?? 0 })}</span>
                <span>{date(one.create_time)}</span>
              </span>
            </a>
          </li>
        ))}
      </ul>
    </main>
  );
}

function Opened({ id, others }: { id: string; others: Summary[] }) {
  const [found, reload] = useLoaded(
    async (signal) => {
      const [got, explained] = await Promise.all([
        rpc<{ policy: Policy }>("PolicyService/GetPolicy", { policy_id: id }, signal),
        rpc<{ sentences?: Sentence[]; findings?: Finding[] }>("PolicyService/ExplainPolicy", { policy: { policy_id: id } }, signal),
      ]);
      return { policy: got.policy, sentences: explained.sentences ?? [], findings: explained.findings ?? [] };
    },
    [id],
  );
  if (found.state !== "ready") {
    return (
      <main id="main" class="page stack">
        <h1>{t("nav.policies")}</h1>
        {found.state === "failed" ? <ProblemBox problem={found.problem} retry={reload} /> : <Skeleton lines={8} />}
      </main>
    );
  }
  const { policy, sentences, findings } = found.value;
  const written = sentences.filter((one) => one.sentence);
  const missing = written.filter((one) => !one.rules?.length);
  const report = policy.verification;
  const verified = (report?.passed ?? 0) + (report?.failed ?? 0);
  return (
    <main id="main" class="page stack">
      <header class="stack-small">
        <p class="quiet">
          <a href="#/policies">{t("nav.policies")}</a>
        </p>
        <h1 dir="auto">{clean(policy.document.name || policy.policy_id)}</h1>
        <p class="quiet small">
          <code dir="ltr">{clean(policy.policy_id)}</code> · {t("version")} <code dir="ltr">{policy.policy_hash.slice(0, 12)}</code> · <bdi>{date(policy.create_time)}</bdi>
        </p>
      </header>
      {report && (
        <p>{t("policies.figures", { n: written.length - missing.length, all: written.length })}</p>
      )}
      {report && (
        <dl class="figures-row">
          <Figure name={t("policies.passed")} value={verified ? t("of", { n: report.passed ?? 0, all: verified }) : undefined} />
          {(report.coverage ?? []).map((one) => (
            <CoverageFigure key={one.kind} {...one} />
          ))}
          {report.mutation && <Figure name={t("policies.mutation")} value={percent(report.mutation.score ?? 0)} />}
        </dl>
      )}
      <section class="stack-small">
        <h2>{t("policies.text")}</h2>
        <p class="quiet">{t("policies.text.about")}</p>
        <ol class="sentences">
          {sentences.map((one, index) => (
            <li key={index} class={one.rules?.length ? "sentence" : "sentence missing"}>
              <p class="sentence-text" dir="auto">
                {clean(one.sentence || t("policies.nosentence"))}
              </p>
              <div class="stack-small">
                {(one.rules ?? []).map((rule) => (
                  <div key={rule.rule_id} class="rule" dir="auto">
                    <p>
                      <RuleText text={rule.text} />
                    </p>
                    <ul class="calls small" aria-label={t("policies.examples", { rule: clean(rule.rule_id) })}>
                      {rule.decided && <Call decided={rule.decided} />}
                      {rule.nearest && <Call decided={rule.nearest} />}
                    </ul>
                  </div>
                ))}
                {!one.rules?.length && <p class="warn-text">{t("policies.notfollowed")}</p>}
              </div>
            </li>
          ))}
        </ol>
      </section>
      <section class="stack-small">
        <h2>{t("policies.missing")}</h2>
        {missing.length === 0 && findings.length === 0 && <p class="quiet">{t("policies.missing.none")}</p>}
        <ul class="notes">
          {missing.map((one, index) => (
            <li key={index} class="warning" dir="auto">
              {clean(one.sentence ?? "")}
            </li>
          ))}
          {findings.map((one, index) => (
            <li key={index} class={one.severity === "warning" ? "warning" : "error"} dir="auto">
              <strong>{clean(one.code)}</strong> {clean(one.message)}
            </li>
          ))}
        </ul>
      </section>
      <TryCall id={id} policy={policy} />
      <ComparePolicies id={id} others={others} />
    </main>
  );
}

function TryCall({ id, policy }: { id: string; policy: Policy }) {
  const first = policy.scenarios?.[0]?.request;
  const [text, setText] = useState(() =>
    JSON.stringify(first ?? { server_name: "", tool_name: "", arguments: {}, roles: [] }, null, 2),
  );
  const [decision, setDecision] = useState<Decision>();
  const [problem, setProblem] = useState<Problem>();
  const submit = async (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    setProblem(undefined);
    try {
      const request = JSON.parse(text) as Request;
      setDecision((await rpc<{ result: Decision }>("PolicyService/Decide", { policy: { policy_id: id }, request })).result);
    } catch (error) {
      setDecision(undefined);
      setProblem(error instanceof SyntaxError ? new Problem("NOT_JSON", 0, error.message) : toProblem(error));
    }
  };
  return (
    <section class="stack-small">
      <h2>{t("policies.try")}</h2>
      <form class="stack-small form" onSubmit={submit}>
        <label for="call">{t("policies.call")}</label>
        <textarea id="call" class="field code" rows={9} dir="ltr" spellcheck={false} value={text} onInput={(event) => setText(event.currentTarget.value)} />
        <div class="buttons">
          <button class="button primary">{t("policies.decide")}</button>
          <p role="status">
            {decision && (
              <>
                <DecisionWord decision={decision.decision} /> {t("policies.by", { rule: clean(decision.rule_id || t("policies.default")) })}
              </>
            )}
          </p>
        </div>
        {decision?.reasons && (
          <ul class="notes">
            {decision.reasons.map((one, index) => (
              <li key={index} dir="auto">
                {clean(one)}
              </li>
            ))}
          </ul>
        )}
      </form>
      {problem && <ProblemBox problem={problem} />}
    </section>
  );
}
