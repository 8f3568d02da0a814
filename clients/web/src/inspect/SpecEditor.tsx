// The specification as text, with findings and odds as it changes, and a comparison of versions.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { get, rpcStream, type Finding, type Problem } from "../api";
import { percent, t } from "../i18n";
import { clean } from "../text";
import type { DryRun, ScenarioSummary } from "../types";
import { ProblemBox, Shares, toProblem, useLoaded } from "../ui";
import { CompareVersions } from "./CompareVersions";
import { lineOfPointer } from "./documents";
import { JsonField } from "./JsonField";

const PAUSE_MS = 500;
const RUNS = 512;

interface Verdict {
  accepted?: boolean;
  findings?: { findings?: Finding[]; total?: number };
  dry_run?: DryRun;
}

export function SpecEditor({
  scenarioId,
  spec,
  versions,
  onStored,
}: {
  scenarioId: string;
  spec: unknown;
  versions: ScenarioSummary[];
  onStored: () => void;
}) {
  const original = useMemo(() => JSON.stringify(spec, null, 2), [spec]);
  const [text, setText] = useState(original);
  const [verdict, setVerdict] = useState<Verdict>();
  const [syntax, setSyntax] = useState("");
  const [problem, setProblem] = useState<Problem>();
  const [isStoring, setStoring] = useState(false);
  const field = useRef<HTMLTextAreaElement>(null);
  const version = (spec as { spec_version?: string } | null)?.spec_version === "1.0" ? "1.0" : "1.1";
  const [schema] = useLoaded((signal) => get<unknown>(`/scenarios/schema?spec_version=${version}`, signal), [version]);
  useEffect(() => setText(original), [original]);
  useEffect(() => {
    const abort = new AbortController();
    const timer = setTimeout(() => check(text, abort.signal), text === original ? 0 : PAUSE_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [text]);
  const check = async (document: string, signal: AbortSignal) => {
    let parsed: unknown;
    try {
      parsed = JSON.parse(document);
      setSyntax("");
    } catch (error) {
      setSyntax(error instanceof Error ? error.message : String(error));
      return;
    }
    const request = [
      { options: { level: "dry_run", dry_run: { max_runs: RUNS } }, items: [{ item_id: "spec", spec: parsed }] },
    ];
    try {
      for await (const answer of rpcStream<{ verdicts?: Verdict[] }>("ScenarioService/ValidateScenarios", request, signal)) {
        if (answer.verdicts?.[0]) setVerdict(answer.verdicts[0]);
      }
      setProblem(undefined);
    } catch (error) {
      if (!signal.aborted) setProblem(toProblem(error));
    }
  };
  const store = async () => {
    setStoring(true);
    try {
      const request = { spec: JSON.parse(text), version_of: scenarioId, auto_repair: false };
      for await (const event of rpcStream<any>("ScenarioService/CompileScenario", request)) {
        if (event.compiled) onStored();
        if (event.rejected) setVerdict({ findings: event.rejected.findings, dry_run: event.rejected.dry_run });
      }
    } catch (error) {
      setProblem(toProblem(error));
    } finally {
      setStoring(false);
    }
  };
  const jump = (line: number) => {
    const box = field.current!;
    const start = text.split("\n").slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
    box.focus();
    box.setSelectionRange(start, start + (text.split("\n")[line - 1] ?? "").length);
    box.scrollTop = (box.scrollHeight * Math.max(line - 6, 0)) / text.split("\n").length;
  };
  const findings = verdict?.findings?.findings ?? [];
  const isChanged = text !== original;
  return (
    <div class="editor-layout">
      <JsonField field={field} label={t("inspect.spec")} text={text} schema={schema.state === "ready" ? schema.value : undefined} onChange={setText} />
      <aside class="stack-small" aria-label={t("findings")}>
        <div class="editor-state" role="status">
          {syntax ? (
            <p class="bad-text" dir="auto">
              {t("editor.syntax", { reason: clean(syntax) })}
            </p>
          ) : !verdict ? (
            <p class="quiet">{t("editor.checking")}</p>
          ) : (
            <p class={verdict.accepted ? "good-text" : "bad-text"}>{t(verdict.accepted ? "editor.accepted" : "editor.rejected")}</p>
          )}
          {verdict?.dry_run && !syntax && <Odds odds={verdict.dry_run} />}
          {verdict?.dry_run && !syntax && (
            <p class="quiet small">
              {t("editor.odds", {
                share: percent(verdict.dry_run.fail_rate ?? 0),
                low: percent(verdict.dry_run.wilson_low ?? 0),
                high: percent(verdict.dry_run.wilson_high ?? 0),
                n: verdict.dry_run.runs,
              })}
            </p>
          )}
        </div>
        {findings.length > 0 && (
          <ul class="notes">
            {findings.map((one, index) => {
              const line = lineOfPointer(text, one.path ?? "");
              return (
                <li key={index} class={one.severity === "warning" ? "warning" : "error"} dir="auto">
                  <button class="link" onClick={() => jump(line)}>
                    {t("editor.line", { n: line })}
                  </button>{" "}
                  <strong>{one.code}</strong> {clean(one.message)} {one.remedy && <span class="quiet">{clean(one.remedy)}</span>}
                </li>
              );
            })}
          </ul>
        )}
        {problem && <ProblemBox problem={problem} />}
        <div class="buttons">
          <button
            class="button primary"
            aria-disabled={!isChanged || isStoring || syntax !== "" || !verdict?.accepted}
            onClick={() => isChanged && !isStoring && !syntax && verdict?.accepted && store()}
          >
            {t("editor.store")}
          </button>
          <button class="button" aria-disabled={!isChanged} onClick={() => setText(original)}>
            {t("editor.revert")}
          </button>
        </div>
        <p class="quiet small">{t("editor.keys")}</p>
      </aside>
      <div class="editor-compare">
        <CompareVersions scenarioId={scenarioId} text={text} versions={versions} />
      </div>
    </div>
  );
}

/** How games end that are played at random. */
function Odds({ odds }: { odds: DryRun }) {
  const parts = (["lost", "survived", "won"] as const).map((kind) => {
    return { kind, name: t(`odds.${kind}`), share: (odds[kind] ?? 0) / Math.max(odds.runs, 1) };
  });
  return <Shares label={t("odds")} parts={parts} />;
}
