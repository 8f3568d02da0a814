// The rules behind a game: their graph, how simulated players fare, and the specification itself.
import { useState } from "preact/hooks";
import { asProblem, rpc, rpcStream, type Finding, type Problem } from "../api";
import { date, number, percent, t, tMaybe } from "../i18n";
import { capitalize, clean } from "../text";
import type { Certificate, DryRun, PersonaReport, ScenarioSummary } from "../types";
import { Empty, ProblemBox, Skeleton, toProblem, useLoaded, useTitle } from "../ui";
import { Curve } from "./Curve";
import { RuleGraph, type Graph } from "./RuleGraph";
import { SpecEditor } from "./SpecEditor";

const GRAPH_RUNS = 600;
const TABS = ["graph", "players", "spec"] as const;

interface Scenario {
  scenario_id: string;
  name: string;
  spec_hash: string;
  spec: any;
  dry_run?: DryRun;
  certificate_hash?: string;
  findings?: Finding[];
}

export default function InspectView({ id }: { id: string }) {
  useTitle(t("nav.inspect"));
  return id ? <Opened id={id} /> : <Choose />;
}

function Choose() {
  const [found, reload] = useLoaded(
    (signal) => rpc<{ scenarios?: ScenarioSummary[] }>("ScenarioService/ListScenarios", { page_size: 100 }, signal),
    [],
  );
  return (
    <main id="main" class="page stack">
      <header class="stack-small">
        <h1>{t("inspect.title")}</h1>
        <p class="lead-text">{t("inspect.about")}</p>
      </header>
      {found.state === "failed" && <ProblemBox problem={found.problem} retry={reload} />}
      {found.state === "loading" && <Skeleton lines={6} />}
      {found.state === "ready" && !found.value.scenarios?.length && (
        <Empty title={t("home.noscenarios")}>{t("inspect.none.hint")}</Empty>
      )}
      {found.state === "ready" && (
        <ul class="cards">
          {(found.value.scenarios ?? []).map((one) => (
            <li key={one.scenario_id} class="card">
              <a class="card-link" href={`#/inspect/${one.scenario_id}`}>
                <span class="card-title" dir="auto">
                  {clean(one.name)}
                </span>
                <span class="card-text">
                  <span>{t("home.failrate", { share: percent(one.fail_rate ?? 0) })}</span>
                  {one.certificate_hash && <span>{t("certified")}</span>}
                  <span>{date(one.create_time)}</span>
                </span>
              </a>
            </li>
          ))}
        </ul>
      )}
    </main>
  );
}

function Opened({ id }: { id: string }) {
  const [found, reload] = useLoaded(async (signal) => {
    const [got, versions] = await Promise.all([
      rpc<{ scenario: Scenario }>("ScenarioService/GetScenario", { scenario_id: id }, signal),
      rpc<{ versions?: ScenarioSummary[] }>("ScenarioService/ListScenarioVersions", { scenario_id: id }, signal),
    ]);
    return { scenario: got.scenario, versions: versions.versions ?? [] };
  }, [id]);
  const [tab, setTab] = useState<(typeof TABS)[number]>("graph");
  if (found.state !== "ready") {
    return (
      <main id="main" class="page stack">
        {found.state === "failed" ? <ProblemBox problem={found.problem} retry={reload} /> : <Skeleton lines={10} />}
      </main>
    );
  }
  const { scenario, versions } = found.value;
  return (
    <main id="main" class="page stack">
      <header class="stack-small">
        <p class="quiet">
          <a href="#/inspect">{t("nav.inspect")}</a>
        </p>
        <h1 dir="auto">{clean(scenario.name)}</h1>
        <p class="quiet small">
          {t("version")} <code dir="ltr">{scenario.spec_hash.slice(0, 12)}</code> · {t("versions", { n: versions.length })} ·{" "}
          {t("home.failrate", { share: percent(scenario.dry_run?.fail_rate ?? 0) })}
        </p>
      </header>
      <div class="tabs" role="tablist" aria-label={t("nav.inspect")}>
        {TABS.map((one) => (
          <button
            key={one}
            role="tab"
            id={`tab-${one}`}
            class="tab"
            data-text={t(`inspect.${one}`)}
            aria-selected={tab === one}
            aria-controls="tab-panel"
            tabIndex={tab === one ? 0 : -1}
            onClick={() => setTab(one)}
            onKeyDown={(event) => moveTab(event, one, setTab)}
          >
            {t(`inspect.${one}`)}
          </button>
        ))}
      </div>
      <div id="tab-panel" role="tabpanel" aria-labelledby={`tab-${tab}`} class="stack" tabIndex={0}>
        {tab === "graph" && <GraphPanel scenario={scenario} />}
        {tab === "players" && <PlayersPanel scenario={scenario} />}
        {tab === "spec" && <SpecEditor scenarioId={scenario.scenario_id} spec={scenario.spec} versions={versions} onStored={reload} />}
      </div>
    </main>
  );
}

function moveTab(event: KeyboardEvent, from: (typeof TABS)[number], setTab: (tab: (typeof TABS)[number]) => void): void {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  const forward = document.documentElement.dir === "rtl" ? -step : step;
  const next = TABS[(TABS.indexOf(from) + forward + TABS.length) % TABS.length]!;
  setTab(next);
  document.getElementById(`tab-${next}`)?.focus();
}

function GraphPanel({ scenario }: { scenario: Scenario }) {
  const [found, reload] = useLoaded(
    (signal) =>
      rpc<Graph>("ScenarioService/InspectScenario", { scenario_id: scenario.scenario_id, dry_run: { max_runs: GRAPH_RUNS } }, signal),
    [scenario.spec_hash],
  );
  if (found.state === "failed") return <ProblemBox problem={found.problem} retry={reload} />;
  if (found.state === "loading") return <Skeleton lines={12} />;
  return <RuleGraph graph={found.value} spec={scenario.spec} />;
}

function PlayersPanel({ scenario }: { scenario: Scenario }) {
  const [certificate, setCertificate] = useState<Certificate>();
  const [message, setMessage] = useState<string>();
  const [problem, setProblem] = useState<Problem>();
  const [stored] = useLoaded(async (signal) => {
    if (!scenario.certificate_hash) return undefined;
    const request = { certificate_hash: scenario.certificate_hash };
    return (await rpc<{ certificate: Certificate }>("ScenarioService/GetCertificate", request, signal)).certificate;
  }, [scenario.certificate_hash]);
  const shown = certificate ?? (stored.state === "ready" ? stored.value : undefined);
  const measure = async () => {
    setMessage(t("loading"));
    setProblem(undefined);
    try {
      for await (const event of rpcStream<any>("ScenarioService/CertifyScenario", { scenario_id: scenario.scenario_id })) {
        if (event.progress) setMessage(event.progress.message);
        if (event.certificate) setCertificate(event.certificate);
        if (event.rejected) throw asProblem({ code: "SPEC_INVALID", ...event.rejected.findings });
      }
    } catch (error) {
      setProblem(toProblem(error));
    } finally {
      setMessage(undefined);
    }
  };
  const names = namesOf(scenario.spec);
  return (
    <>
      <Losses title={t("losses")} losses={scenario.dry_run?.losses ?? []} names={names} total={scenario.dry_run?.lost ?? 0} />
      {shown ? (
        <CertificateView certificate={shown} names={names} />
      ) : (
        <section class="stack-small">
          <h2>{t("fairness")}</h2>
          <p class="quiet">{t("inspect.measure.about")}</p>
          <div class="buttons">
            <button class="button primary" onClick={measure} aria-disabled={message !== undefined}>
              {t("inspect.measure")}
            </button>
            <span class="quiet small" role="status" dir="auto">
              {capitalize(clean(message ?? ""))}
            </span>
          </div>
          {problem && <ProblemBox problem={problem} />}
        </section>
      )}
    </>
  );
}

/** Returns a function from the id of a rule or ending, or the path of a quantity, to its name. */
function namesOf(spec: any): (id: string) => string {
  const all = [...spec.actions, ...spec.random_events, ...spec.loss_conditions, ...(spec.win_conditions ?? [])];
  const byId = new Map<string, string>(all.map((one: any) => [one.id, one.name ?? one.message ?? one.id]));
  return (id) => clean(byId.get(id) ?? spec.labels?.[id]?.name ?? id);
}

function Losses({
  title,
  losses,
  names,
  total,
}: {
  title: string;
  losses: { id: string; count?: number }[];
  names: (id: string) => string;
  total: number;
}) {
  const ordered = [...losses].sort((a, b) => (b.count ?? 0) - (a.count ?? 0));
  return (
    <section class="stack-small">
      <h2>{title}</h2>
      {total === 0 ? (
        <p class="quiet">{t("losses.none")}</p>
      ) : (
        <table class="bars">
          <thead class="hidden">
            <tr>
              <th scope="col">{t("losses.cause")}</th>
              <th scope="col">{t("losses.share")}</th>
            </tr>
          </thead>
          <tbody>
            {ordered.map((one) => (
              <tr key={one.id}>
                <th scope="row">
                  <bdi>{names(one.id)}</bdi>
                </th>
                <td>
                  <span class="bar" aria-hidden="true">
                    <span style={{ inlineSize: `${(100 * (one.count ?? 0)) / total}%` }} />
                  </span>
                  <span class="bar-figure">{percent((one.count ?? 0) / total)}</span>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

function CertificateView({ certificate, names }: { certificate: Certificate; names: (id: string) => string }) {
  const personas = certificate.personas ?? [];
  return (
    <>
      <section class="stack-small">
        <h2>{t("fairness")}</h2>
        <p>
          <span class={`verdict ${certificate.verdict}`}>{t(`verdict.${certificate.verdict}`)}</span>{" "}
          <code>{certificate.certificate_hash.slice(0, 12)}</code>{" "}
          <span class="quiet">{t("inspect.gap", { n: Math.round(100 * (certificate.planner_gap ?? 0)) })}</span>
        </p>
        <div class="scroll" tabIndex={0} role="region" aria-label={t("fairness")}>
          <table class="table">
            <thead>
              <tr>
                <th scope="col">{t("persona")}</th>
                {(["lost", "survived", "won"] as const).map((kind) => (
                  <th key={kind} scope="col" class="figure">
                    {t(`odds.${kind}`)}
                  </th>
                ))}
                <th scope="col" class="figure">
                  {t("interval")}
                </th>
                <th scope="col" class="figure">
                  {t("runs")}
                </th>
              </tr>
            </thead>
            <tbody>
              {personas.map((one) => (
                <tr key={one.persona}>
                  <th scope="row">{tMaybe(`persona.${one.persona}`, one.persona)}</th>
                  <td class="figure">{percent(one.lost.value ?? 0)}</td>
                  <td class="figure">{percent(one.survived?.value ?? 0)}</td>
                  <td class="figure">{percent(one.won?.value ?? 0)}</td>
                  <td class="figure quiet">
                    {percent(one.lost.low ?? 0)}–{percent(one.lost.high ?? 0)}
                  </td>
                  <td class="figure quiet">{number(one.lost.total)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </section>
      <Survival personas={personas} />
      {(certificate.drifts ?? []).length > 0 && (
        <section class="stack-small">
          <h2>{t("drift")}</h2>
          <p class="quiet">{t("drift.about")}</p>
          <div class="scroll" tabIndex={0} role="region" aria-label={t("drift")}>
            <table class="table">
              <tbody>
                {certificate.drifts!.map((one) => (
                  <tr key={one.path}>
                    <th scope="row">
                      <bdi>{names(one.path)}</bdi>
                    </th>
                    <td class="figure">{t("drift.turn", { n: percent(one.per_turn ?? 0) })}</td>
                    <td class="figure quiet">{t("drift.limit", { n: percent(one.limit ?? 0) })}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </section>
      )}
      <Notes title={t("findings")} notes={(certificate.findings ?? []).map((one) => ({ head: one.code, text: one.message }))} />
      <Notes title={t("proofs")} notes={(certificate.proofs ?? []).map((one) => ({ head: one.code, text: one.argument }))} />
      <Notes
        title={t("actions.odd")}
        notes={[
          ...(certificate.dead_actions ?? []).map((one) => ({ head: names(one), text: t("actions.dead") })),
          ...(certificate.dominant_actions ?? []).map((one) => ({ head: names(one), text: t("actions.dominant") })),
        ]}
      />
    </>
  );
}

function Notes({ title, notes }: { title: string; notes: { head: string; text: string }[] }) {
  if (!notes.length) return null;
  return (
    <section class="stack-small">
      <h2>{title}</h2>
      <ul class="notes">
        {notes.map((one, index) => (
          <li key={index} dir="auto">
            <strong>{clean(one.head)}</strong> {clean(one.text)}
          </li>
        ))}
      </ul>
    </section>
  );
}

/** The share of games that are not lost after each turn, for each player. */
function Survival({ personas }: { personas: PersonaReport[] }) {
  const lines = personas
    .filter((one) => one.loss_turns?.length)
    .map((one) => {
      const last = Math.max(...one.loss_turns!.map((at) => at.turn));
      const values = [1];
      let left = one.lost.total;
      for (let turn = 1; turn <= last; turn += 1) {
        left -= one.loss_turns!.find((at) => at.turn === turn)?.count ?? 0;
        values.push(left / one.lost.total);
      }
      return { id: one.persona, name: tMaybe(`persona.${one.persona}`, one.persona), values };
    });
  if (!lines.length) return null;
  return (
    <section class="stack-small">
      <h2>{t("survival")}</h2>
      <p class="quiet">{t("survival.about")}</p>
      <Curve lines={lines} />
    </section>
  );
}
