// A scenario while it is being written. It shows progress and figures, and no rule of the scenario.
import type { TargetedSubmitEvent } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { post, stream, asProblem, Problem } from "../api";
import { percent, t, tMaybe } from "../i18n";
import { go } from "../router";
import { capitalize, clean } from "../text";
import type { Person, Rate, Session } from "../types";
import { ProblemBox, toProblem, useTitle } from "../ui";
import { playPath } from "./PlayView";
import { currentWriting, startWriting } from "./writing";

const STEPS = ["authoring", "validating", "dry_running", "certifying", "storing"] as const;
type Step = (typeof STEPS)[number];
const STEP_OF: Record<string, Step> = {
  authoring: "authoring",
  repairing: "validating",
  validating: "validating",
  compiling: "validating",
  dry_running: "dry_running",
  certifying: "certifying",
  storing: "storing",
};

interface Written {
  scenarioId: string;
  name: string;
  failRate: number;
  people: Person[];
}

interface Result {
  model?: string;
  authored_without_model?: boolean;
  from_cache?: boolean;
  attempts?: number;
  certificate?: { verdict: string; certificate_hash: string; personas?: { persona: string; lost: Rate }[] };
}

interface Work {
  step: Step;
  message: string;
  fraction: number;
  drafts: number;
  findings: number;
  repairs: number;
  numbers: number;
  result?: Result;
}

const START: Work = { step: "authoring", message: "", fraction: 0, drafts: 0, findings: 0, repairs: 0, numbers: 0 };

function addEvent(work: Work, name: string, data: any): Work {
  switch (name) {
    case "progress":
      return {
        ...work,
        step: STEP_OF[data.stage] ?? work.step,
        message: data.message ?? "",
        fraction: Math.max(work.fraction, data.fraction ?? 0),
      };
    case "draft":
      return { ...work, drafts: data.attempt ?? work.drafts + 1 };
    case "finding":
      return { ...work, findings: work.findings + 1 };
    case "repaired":
      return { ...work, repairs: work.repairs + 1 };
    case "numbers_adjusted":
      return { ...work, numbers: work.numbers + (data.edits ?? 0) };
    case "result":
      return { ...work, result: data };
    default:
      return work;
  }
}

export default function WriteView() {
  useTitle(t("write.title"));
  const [writing, setWriting] = useState(currentWriting);
  const [work, setWork] = useState(START);
  const [written, setWritten] = useState<Written>();
  const [problem, setProblem] = useState<Problem>();
  useEffect(() => {
    if (!writing) {
      go("#/");
      return;
    }
    const abort = new AbortController();
    setWork(START);
    setProblem(undefined);
    const run = async () => {
      const options = { signal: abort.signal, key: writing.key };
      for await (const event of stream("/scenarios/generate", { description: writing.description }, options)) {
        if (event.name === "error") throw asProblem(event.data);
        if (event.name === "spec") {
          setWork((before) => ({ ...before, step: "storing", message: "", fraction: 0.97 }));
          const compiled = await post<any>(`/scenarios/${encodeURIComponent(event.data.id)}/compile`, event.data, {
            signal: abort.signal,
          });
          const people = (event.data.entities ?? []).filter((one: Person) => one.playable);
          setWork((before) => ({ ...before, fraction: 1 }));
          setWritten({ scenarioId: compiled.scenario_id, name: compiled.name, failRate: compiled.fail_rate, people });
        } else {
          setWork((before) => addEvent(before, event.name, event.data));
        }
      }
    };
    run().catch((error: unknown) => abort.signal.aborted || setProblem(toProblem(error)));
    return () => abort.abort();
  }, [writing]);
  if (!writing) return null;
  const retry = () => setWriting(startWriting(writing.description));
  return (
    <main id="main" class="page narrow write">
      <h1>{written ? t("write.done") : problem ? t("write.failed") : t("write.title")}</h1>
      {writing.description && (
        <blockquote class="write-description" dir="auto">
          {clean(writing.description)}
        </blockquote>
      )}
      <Steps work={work} isDone={written !== undefined} hasFailed={problem !== undefined} />
      {problem && (
        <>
          <ProblemBox problem={problem} retry={retry} />
          {problem.findings.length > 0 && <p class="quiet">{t("write.findings", { n: problem.findings.length })}</p>}
          <p>
            <a href="#/">{t("write.change")}</a>
          </p>
        </>
      )}
      {work.result?.certificate && <Fairness result={work.result} />}
      {written && <Begin written={written} />}
    </main>
  );
}

function Steps({ work, isDone, hasFailed }: { work: Work; isDone: boolean; hasFailed: boolean }) {
  const at = isDone ? STEPS.length : STEPS.indexOf(work.step);
  const counts = [
    work.drafts > 0 && t("write.drafts", { n: work.drafts }),
    work.findings > 0 && t("write.findings", { n: work.findings }),
    work.repairs > 0 && t("write.repairs", { n: work.repairs }),
    work.numbers > 0 && t("write.numbers", { n: work.numbers }),
  ].filter(Boolean);
  return (
    <section class="steps-box" aria-label={t("write.progress")}>
      <ol class="steps">
        {STEPS.map((step, index) => (
          <li
            key={step}
            class={`step ${index < at ? "done" : index === at ? (hasFailed ? "failed" : "current") : ""}`}
            aria-current={index === at ? "step" : undefined}
          >
            <span class="step-name">{t(`step.${step}`)}</span>
          </li>
        ))}
      </ol>
      <progress class="write-progress" value={work.fraction} max={1} aria-label={t("write.progress")} />
      <p class="write-message quiet small" dir="auto">
        {isDone ? "" : capitalize(clean(work.message))}
      </p>
      <p class="write-counts quiet small">{counts.join(" · ")}</p>
      <p class="hidden" role="status">
        {isDone ? t("write.done") : t(`step.${work.step}`)}
      </p>
    </section>
  );
}

/** How simulated players fare: the certificate in one picture. */
function Fairness({ result }: { result: Result }) {
  const certificate = result.certificate!;
  return (
    <section class="fairness" aria-labelledby="fairness-title">
      <h2 id="fairness-title">{t("fairness")}</h2>
      <p class="quiet">{t("fairness.about")}</p>
      <table class="bars">
        <thead class="hidden">
          <tr>
            <th scope="col">{t("persona")}</th>
            <th scope="col">{t("odds.lost")}</th>
          </tr>
        </thead>
        <tbody>
          {(certificate.personas ?? []).map((one) => (
            <tr key={one.persona}>
              <th scope="row">{tMaybe(`persona.${one.persona}`, one.persona)}</th>
              <td>
                <span class="bar" aria-hidden="true">
                  <span style={{ inlineSize: `${100 * (one.lost.value ?? 0)}%` }} />
                </span>
                <span class="bar-figure">{percent(one.lost.value ?? 0)}</span>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <p class="quiet small">
        {t("fairness.certificate")} <code>{certificate.certificate_hash.slice(0, 12)}</code> ·{" "}
        {result.authored_without_model ? t("write.rules") : t("write.model", { model: clean(result.model ?? "") })}
      </p>
    </section>
  );
}

function Begin({ written }: { written: Written }) {
  const [pov, setPov] = useState(written.people.length === 1 ? written.people[0]!.id : "");
  const [isTable, setTable] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => form.current?.querySelector<HTMLElement>("button.primary")?.focus(), []);
  const begin = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const seats = {
      seats: written.people.map((one) => ({ seat_id: one.id, entity_id: one.id })),
      order: "rotating",
    };
    post<Session>("/sessions", { scenario_id: written.scenarioId, ...(isTable ? { seats } : { pov }) }).then(
      (session) => go(playPath(session.session_id, isTable ? "" : pov)),
      (error: unknown) => setProblem(toProblem(error)),
    );
  };
  return (
    <form class="begin-box" ref={form} onSubmit={begin}>
      <h2 dir="auto">{clean(written.name)}</h2>
      {written.people.length > 1 && (
        <fieldset class="param">
          <legend>{t("begin.who")}</legend>
          <div class="choices">
            {written.people.map((one) => (
              <label key={one.id} class="choice">
                <input type="radio" name="pov" checked={!isTable && pov === one.id} onChange={() => (setPov(one.id), setTable(false))} />
                <span dir="auto">{clean(one.name ?? one.id)}</span>
              </label>
            ))}
            <label class="choice">
              <input type="radio" name="pov" checked={!isTable && pov === ""} onChange={() => (setPov(""), setTable(false))} />
              <span>{t("pov.public")}</span>
            </label>
            <label class="choice">
              <input type="radio" name="pov" checked={isTable} onChange={() => setTable(true)} />
              <span>{t("begin.table")}</span>
            </label>
          </div>
        </fieldset>
      )}
      <div class="buttons">
        <button class="button primary large">{t("begin")}</button>
        <a class="button plain" href={`#/inspect/${written.scenarioId}`}>
          {t("inspect.spoilers")}
        </a>
      </div>
      {problem && <ProblemBox problem={problem} />}
    </form>
  );
}
