// Generated tests: a run as it happens, and what was measured beside the run's own opinion.
import type { TargetedSubmitEvent } from "preact";
import { useEffect, useReducer, useState } from "preact/hooks";
import { asProblem, rpc, rpcStream, type Problem } from "../api";
import { date, number, percent, t, tMaybe } from "../i18n";
import { go } from "../router";
import { capitalize, clean, words } from "../text";
import type { ScenarioSummary } from "../types";
import { CoverageFigure, Empty, Figure, ProblemBox, Skeleton, toProblem, useLoaded, useTitle, type Coverage } from "../ui";

interface RunSummary {
  run_id: string;
  task_id?: string;
  phase?: string;
  total_tests?: number;
  stopped_by?: string;
  create_time?: string;
}

interface Task {
  task_id: string;
  title: string;
  task_description: string;
  environment?: { file_count?: number };
}

interface Verdict {
  status?: string;
  counts?: boolean;
  new_kills?: string[];
  findings?: { code: string; message: string }[];
}

/** A turn of a test on a scenario; `expect` is JSONLogic. */
interface Step {
  actions?: { action_id: string; params?: Record<string, unknown> }[];
  expect?: unknown;
  expect_accepted?: boolean;
}

interface TestCard {
  test_id: string;
  category: string;
  input: string;
  expected_output?: string;
  reasoning?: string;
  confidence?: number;
  round?: number;
  global?: boolean;
  combinatorial?: boolean;
  scenario?: { steps?: Step[] };
  verdict?: Verdict;
}

interface Reflection {
  category?: string;
  text: string;
  action?: string;
  recommendations?: string[];
}

interface Quality {
  coverage?: Coverage[];
  mutation?: { killed?: number; survived?: number; equivalent?: number; score?: number; survivors?: { operator: string; path: string; before?: unknown; after?: unknown }[] };
  counting_tests?: number;
}

interface Run {
  task: string;
  categories: { name: string }[];
  environment?: { platform?: string; languages?: string[]; files?: { path: string }[] };
  phase: string;
  category: string;
  round: number;
  status: string;
  tests: TestCard[];
  reflections: Reflection[];
  quality?: Quality;
  stats?: { comprehensiveness_score?: number; total_rounds?: number; category_rounds?: Record<string, number>; global_rounds?: number; total_tokens_used?: number; stopped_by?: string; duplicates?: number; uncertainties?: string[]; quality?: Quality };
  duplicates: number;
  error?: Problem;
}

const START: Run = {
  task: "",
  categories: [],
  phase: "",
  category: "",
  round: 0,
  status: "",
  tests: [],
  reflections: [],
  duplicates: 0,
};

function addEvent(run: Run, event: any): Run {
  if (event.start) {
    return { ...run, task: event.start.task_description, categories: event.start.categories ?? [], environment: event.start.environment };
  }
  if (event.progress) {
    const { phase = run.phase, current_category: category = "", round_number: round = 0, status = "" } = event.progress;
    return { ...run, phase, category, round, status };
  }
  if (event.test) return { ...run, tests: [...run.tests, event.test] };
  if (event.test_ran) {
    const { test_id: id, verdict } = event.test_ran;
    return { ...run, tests: run.tests.map((one) => (one.test_id === id ? { ...one, verdict } : one)) };
  }
  if (event.reflection) return { ...run, reflections: [...run.reflections, event.reflection] };
  if (event.duplicate) return { ...run, duplicates: run.duplicates + 1 };
  if (event.measured) return { ...run, quality: event.measured };
  if (event.complete) return { ...run, phase: "complete", category: "", status: "", stats: event.complete.stats, quality: event.complete.stats?.quality ?? run.quality };
  if (event.error) return { ...run, error: asProblem({ code: event.error.reason, detail: event.error.message }) };
  return run;
}

export default function TestsView({ id }: { id: string }) {
  useTitle(t("nav.tests"));
  return id ? <RunView id={id} /> : <Start />;
}

function Start() {
  const [runs, reload] = useLoaded(async (signal) => {
    const [listed, scenarios, tasks] = await Promise.all([
      rpc<{ runs?: RunSummary[] }>("TestGenService/ListTestRuns", { page_size: 30 }, signal),
      rpc<{ scenarios?: ScenarioSummary[] }>("ScenarioService/ListScenarios", { page_size: 100 }, signal),
      rpc<{ tasks?: Task[] }>("TestGenService/ListTestTasks", { page_size: 100 }, signal),
    ]);
    return { runs: listed.runs ?? [], scenarios: scenarios.scenarios ?? [], tasks: tasks.tasks ?? [] };
  }, []);
  return (
    <main id="main" class="page stack">
      <header class="stack-small">
        <h1>{t("tests.title")}</h1>
        <p class="lead-text">{t("tests.about")}</p>
      </header>
      {runs.state === "failed" && <ProblemBox problem={runs.problem} retry={reload} />}
      {runs.state === "loading" && <Skeleton lines={6} />}
      {runs.state === "ready" && (
        <>
          <StartForm scenarios={runs.value.scenarios} tasks={runs.value.tasks} />
          <section class="stack-small">
            <h2>{t("tests.runs")}</h2>
            {!runs.value.runs.length && <Empty title={t("tests.none")}>{t("tests.none.hint")}</Empty>}
            <ul class="cards">
              {runs.value.runs.map((one) => (
                <li key={one.run_id} class="card">
                  <a class="card-link" href={`#/tests/${one.run_id}`}>
                    <span class="card-title" dir="auto">
                      {clean(one.task_id || t("tests.run", { id: one.run_id.slice(0, 8) }))}
                    </span>
                    <span class="card-text">
                      <span>{t("tests.count", { n: one.total_tests ?? 0 })}</span>
                      <span>{phaseWord(one.phase)}</span>
                      <span>{date(one.create_time)}</span>
                    </span>
                  </a>
                </li>
              ))}
            </ul>
          </section>
        </>
      )}
    </main>
  );
}

function phaseWord(phase = ""): string {
  return phase ? tMaybe(`phase.${phase}`, words(phase)) : "";
}

/** Returns the first line of a text, cut to a length. */
function shorten(text: string, length: number): string {
  const title = text.trim().split("\n")[0] ?? "";
  return title.length > length ? `${title.slice(0, length).trimEnd()}…` : title;
}

/** Returns text for an option, whose marks at the end stay there in a page from right to left. */
function isolate(text: string): string {
  return `\u2068${text}\u2069`;
}

const OPTION_LENGTH = 60;
const TITLE_LENGTH = 90;
const SCENARIO = "scenario:";
const TASK = "task:";

function StartForm({ scenarios, tasks }: { scenarios: ScenarioSummary[]; tasks: Task[] }) {
  const [problem, setProblem] = useState<Problem>();
  const [isStarting, setStarting] = useState(false);
  const submit = async (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const data = new FormData(event.currentTarget);
    const choices = [...tasks.map((one) => TASK + one.task_id), ...scenarios.map((one) => SCENARIO + one.scenario_id)];
    let chosen = String(data.get("subject"));
    if (chosen === "random") chosen = choices[Math.floor(Math.random() * choices.length)]!;
    setStarting(true);
    setProblem(undefined);
    try {
      const request = toRequest(chosen, String(data.get("task")).trim());
      for await (const answer of rpcStream<any>("TestGenService/GenerateTests", request)) {
        // The run goes on without this stream; its view follows it from the start.
        return go(`#/tests/${answer.event.run_id}`);
      }
    } catch (error) {
      setProblem(toProblem(error));
    } finally {
      setStarting(false);
    }
  };
  const toRequest = (chosen: string, wish: string) => {
    const task = tasks.find((one) => TASK + one.task_id === chosen);
    if (task) {
      const description = wish ? `${task.task_description}\n\n${wish}` : task.task_description;
      return { task_id: task.task_id, task_description: description, environment: task.environment };
    }
    const scenario = scenarios.find((one) => SCENARIO + one.scenario_id === chosen);
    const name = scenario?.name ?? "";
    return { task_id: name, task_description: wish || name, context: "scenario", subject: { scenario_id: scenario?.scenario_id } };
  };
  if (!scenarios.length && !tasks.length) return <Empty title={t("home.noscenarios")}>{t("tests.noscenarios.hint")}</Empty>;
  return (
    <form class="stack-small form" onSubmit={submit}>
      <label class="stack-small">
        <span>{t("tests.subject")}</span>
        <select class="field" name="subject">
          {tasks.length > 0 && (
            <optgroup label={t("tests.tasks")}>
              {tasks.map((one) => (
                <option key={one.task_id} value={TASK + one.task_id}>
                  {isolate(shorten(clean(one.title), OPTION_LENGTH))}
                </option>
              ))}
            </optgroup>
          )}
          {scenarios.length > 0 && (
            <optgroup label={t("tests.scenarios")}>
              {scenarios.map((one) => (
                <option key={one.scenario_id} value={SCENARIO + one.scenario_id}>
                  {isolate(clean(one.name))}
                </option>
              ))}
            </optgroup>
          )}
          <option value="random">{t("tests.random")}</option>
        </select>
      </label>
      <label class="stack-small">
        <span>{t("tests.task")}</span>
        <textarea class="field" name="task" rows={3} placeholder={t("tests.task.hint")} />
      </label>
      <div class="buttons">
        <button class="button primary" aria-disabled={isStarting}>
          {t("tests.start")}
        </button>
      </div>
      {problem && <ProblemBox problem={problem} />}
    </form>
  );
}

function RunView({ id }: { id: string }) {
  const [run, add] = useReducer<Run, any>(addEvent, START);
  const [problem, setProblem] = useState<Problem>();
  useEffect(() => {
    const abort = new AbortController();
    const follow = async () => {
      for await (const answer of rpcStream<any>("TestGenService/ResumeTests", { run_id: id }, abort.signal)) add(answer.event);
    };
    follow().catch((error: unknown) => abort.signal.aborted || setProblem(toProblem(error)));
    return () => abort.abort();
  }, [id]);
  const done = run.stats !== undefined;
  const title = shorten(clean(run.task), TITLE_LENGTH);
  const mutation = run.quality?.mutation;
  const faults = (mutation?.killed ?? 0) + (mutation?.survived ?? 0);
  return (
    <main id="main" class="page stack">
      <header class="stack-small">
        <p class="quiet">
          <a href="#/tests">{t("nav.tests")}</a>
        </p>
        <h1 dir="auto">{run.task ? title : t("loading")}</h1>
        {title !== run.task && (
          <p class="quiet" dir="auto">
            {clean(run.task)}
          </p>
        )}
        <p class="quiet" role="status">
          {[phaseWord(run.phase), run.category && capitalize(words(run.category)), clean(run.status) || (run.round > 0 && t("tests.round", { n: run.round }))]
            .filter(Boolean)
            .join(" · ")}
        </p>
      </header>
      {run.environment && (
        <details>
          <summary>{[t("tests.environment", { n: run.environment.files?.length ?? 0 }), ...(run.environment.languages ?? []).map(clean)].join(" · ")}</summary>
          <ul class="notes">
            {(run.environment.files ?? []).map((one) => (
              <li key={one.path}>
                <code>{clean(one.path)}</code>
              </li>
            ))}
          </ul>
        </details>
      )}
      {problem && <ProblemBox problem={problem} />}
      {run.error && <ProblemBox problem={run.error} />}
      {run.categories.length > 0 && <Categories run={run} />}
      <dl class="figures-row">
        <Figure
          name={t("tests.measured")}
          value={faults ? percent(mutation!.score ?? 0) : undefined}
          note={faults ? t("tests.killed", { n: mutation!.killed ?? 0, all: faults }) : ""}
        />
        <Figure
          name={t("tests.opinion")}
          value={run.stats?.comprehensiveness_score ? t("tests.score", { n: run.stats.comprehensiveness_score }) : undefined}
          missing={t("tests.opinion.none")}
          note={t("tests.opinion.about")}
        />
        <Figure name={t("tests.tests")} value={number(run.tests.length)} note={run.quality ? t("tests.counting", { n: run.quality.counting_tests ?? 0 }) : t("tests.duplicates", { n: run.duplicates })} />
        {done && <Figure name={t("tests.rounds")} value={number(run.stats!.total_rounds ?? 0)} note={tMaybe(`stopped.${run.stats!.stopped_by}`, words(run.stats!.stopped_by ?? ""))} />}
        {done && <Figure name={t("tests.tokens")} value={number(run.stats!.total_tokens_used ?? 0)} note={t("tests.tokens.about")} />}
        {(run.quality?.coverage ?? []).map((one) => (
          <CoverageFigure key={one.kind} {...one} />
        ))}
      </dl>
      {(mutation?.survivors ?? []).length > 0 && (
        <details>
          <summary>{t("tests.survivors", { n: mutation!.survived ?? 0 })}</summary>
          <ul class="notes">
            {mutation!.survivors!.map((one, index) => (
              <li key={index}>
                <strong>{words(one.operator)}</strong> <code>{clean(one.path)}</code>{" "}
                <span class="quiet">
                  {clean(JSON.stringify(one.before) ?? "–")} → {clean(JSON.stringify(one.after) ?? "–")}
                </span>
              </li>
            ))}
          </ul>
        </details>
      )}
      {run.reflections.length > 0 && (
        <section class="stack-small">
          <h2>{t("tests.reflections")}</h2>
          <ul class="notes">
            {run.reflections.map((one, index) => (
              <li key={index} dir="auto">
                <strong>{one.category ? capitalize(words(one.category)) : t("tests.all")}</strong>{" "}
                {one.action && <span class="badge">{tMaybe(`action.${one.action}`, words(one.action))}</span>} {clean(one.text)}
              </li>
            ))}
          </ul>
        </section>
      )}
      <section class="stack-small">
        <h2>{t("tests.tests")}</h2>
        {!run.tests.length && !problem && <Skeleton lines={4} />}
        <ul class="test-cards">
          {[...run.tests].reverse().map((one) => (
            <li key={one.test_id} class={`test-card ${one.verdict?.status ?? ""}`}>
              <p class="quiet small">
                {capitalize(words(one.category))} · {one.combinatorial ? t("tests.combinatorial") : t("tests.round", { n: one.round ?? 1 })}
                {one.verdict?.status && <> · {tMaybe(`verdict.${one.verdict.status}`, words(one.verdict.status))}</>}
                {(one.verdict?.new_kills ?? []).length > 0 && <> · {t("tests.kills", { n: one.verdict!.new_kills!.length })}</>}
              </p>
              <p class="test-input" dir="auto">
                {clean(one.input)}
              </p>
              {one.expected_output !== undefined && (
                <p class="test-output" dir="auto">
                  → {clean(one.expected_output)}
                </p>
              )}
              {(one.scenario?.steps ?? []).length > 0 && <Steps steps={one.scenario!.steps!} />}
              {one.reasoning && (
                <p class="quiet small" dir="auto">
                  {capitalize(clean(one.reasoning))}
                </p>
              )}
            </li>
          ))}
        </ul>
      </section>
    </main>
  );
}

/** The turns of a test, each with what is expected after it. */
function Steps({ steps }: { steps: Step[] }) {
  return (
    <details class="test-steps small">
      <summary>{t("tests.steps", { n: steps.length })}</summary>
      <ol>
        {steps.map((one, index) => (
          <li key={index} dir="ltr">
            {(one.actions ?? []).map(callOf).join(", ") || t("tests.wait")}
            {one.expect_accepted === false && <> <span class="badge">{t("tests.rejected")}</span></>}
            <span class="quiet"> → {phrasesOf(one.expect).join(", ")}</span>
          </li>
        ))}
      </ol>
    </details>
  );
}

function callOf({ action_id: id, params }: { action_id: string; params?: Record<string, unknown> }): string {
  const given = Object.entries(params ?? {}).map(([name, value]) => `${name}=${JSON.stringify(value)}`);
  return clean(given.length ? `${words(id)} (${given.join(", ")})` : words(id));
}

const SIGNS: Record<string, string> = { "===": "=", "==": "=", "!==": "≠", "!=": "≠", "<": "<", "<=": "≤", ">": ">", ">=": "≥" };

/** The parts of an expectation, such as `a = 3`. */
function phrasesOf(logic: any): string[] {
  if (Array.isArray(logic?.and)) return logic.and.flatMap(phrasesOf);
  const [operator = "", operands] = Object.entries(logic ?? {})[0] ?? [];
  if (operator in SIGNS && Array.isArray(operands) && operands.length === 2) {
    return [operands.map(operandOf).join(` ${SIGNS[operator]} `)];
  }
  return logic === undefined ? [] : [clean(JSON.stringify(logic))];
}

function operandOf(operand: any): string {
  if (typeof operand?.var === "string") return clean(operand.var.replace(/^state\./, ""));
  if (typeof operand === "number") return number(operand);
  return operand === null ? t("tests.nothing") : clean(typeof operand === "string" ? operand : JSON.stringify(operand));
}

/** The categories in order: what is done, what is being written, and what follows. */
function Categories({ run }: { run: Run }) {
  const current = run.categories.findIndex((one) => one.name === run.category);
  const isOver = run.phase === "complete" || run.phase === "global_refinement";
  return (
    <ol class="categories" aria-label={t("tests.categories")}>
      {run.categories.map((one, index) => {
        const tests = run.tests.filter((test) => test.category === one.name);
        const round = run.stats?.category_rounds?.[one.name] ?? Math.max(0, ...tests.map((test) => test.round ?? 0));
        const isCurrent = !isOver && index === current;
        return (
          <li key={one.name} class={isCurrent ? "current" : tests.length || round ? "done" : ""} aria-current={isCurrent ? "step" : undefined}>
            <span class="category-name">{capitalize(words(one.name))}</span>
            <span class="quiet small">
              {[t("tests.count", { n: tests.length }), round > 0 && t("tests.rounds.of", { n: round })].filter(Boolean).join(" · ")}
            </span>
          </li>
        );
      })}
    </ol>
  );
}
