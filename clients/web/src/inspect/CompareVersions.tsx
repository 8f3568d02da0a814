// Two versions of a specification side by side.
import { useEffect, useMemo, useState } from "preact/hooks";
import { rpc, type Problem } from "../api";
import { date, number, t } from "../i18n";
import type { ScenarioSummary } from "../types";
import { ProblemBox, toProblem } from "../ui";
import { rowsOf } from "./documents";

const EDITED = "edited";

export function CompareVersions({ scenarioId, text, versions }: { scenarioId: string; text: string; versions: ScenarioSummary[] }) {
  const [left, setLeft] = useState("");
  const [right, setRight] = useState(EDITED);
  const [texts, setTexts] = useState<Record<string, string>>({});
  const [problem, setProblem] = useState<Problem>();
  useEffect(() => {
    const abort = new AbortController();
    const load = async (hash: string) => {
      const request = { scenario_id: scenarioId, spec_hash: hash };
      const got = await rpc<{ scenario: { spec: unknown } }>("ScenarioService/GetScenario", request, abort.signal);
      setTexts((before) => ({ ...before, [hash]: JSON.stringify(got.scenario.spec, null, 2) }));
    };
    const missing = [left, right].filter((hash) => hash && hash !== EDITED && !(hash in texts));
    Promise.all(missing.map(load)).then(
      () => setProblem(undefined),
      (error: unknown) => abort.signal.aborted || setProblem(toProblem(error)),
    );
    return () => abort.abort();
  }, [left, right]);
  const before = texts[left];
  const after = right === EDITED ? text : texts[right];
  const rows = useMemo(() => (before === undefined || after === undefined ? undefined : rowsOf(before, after)), [before, after]);
  const choice = (name: string, value: string, set: (hash: string) => void, isRight: boolean) => (
    <label class="stack-small">
      <span class="small quiet">{name}</span>
      <select class="field" value={value} onChange={(event) => set(event.currentTarget.value)}>
        {isRight ? <option value={EDITED}>{t("compare.edited")}</option> : <option value="">{t("compare.choose")}</option>}
        {versions.map((one) => (
          <option key={one.spec_hash} value={one.spec_hash}>
            {one.spec_hash.slice(0, 12)} · {date(one.create_time)}
          </option>
        ))}
      </select>
    </label>
  );
  return (
    <section class="stack-small">
      <h2>{t("compare")}</h2>
      <div class="compare-choices">
        {choice(t("compare.before"), left, setLeft, false)}
        {choice(t("compare.after"), right, setRight, true)}
      </div>
      {problem && <ProblemBox problem={problem} />}
      {rows && !rows.some((row) => row.kind !== "same") && <p class="quiet">{t("compare.same")}</p>}
      {rows?.some((row) => row.kind !== "same") && (
        <div class="scroll tall" tabIndex={0} role="region" aria-label={t("compare")}>
          <table class="sides" dir="ltr">
            <colgroup>
              <col class="sides-line" />
              <col />
              <col class="sides-line" />
              <col />
            </colgroup>
            <thead class="hidden">
              <tr>
                <th scope="col">{t("compare.line")}</th>
                <th scope="col">{t("compare.before")}</th>
                <th scope="col">{t("compare.line")}</th>
                <th scope="col">{t("compare.after")}</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row, index) =>
                row.kind === "gap" ? (
                  <tr key={index} class="gap">
                    <td colSpan={4}>{t("compare.gap", { n: row.count })}</td>
                  </tr>
                ) : (
                  <tr key={index} class={row.kind}>
                    <td class="figure">{row.left && number(row.left.line)}</td>
                    <td class={row.left ? "old" : "none"}>
                      <code>{row.left?.text}</code>
                    </td>
                    <td class="figure">{row.right && number(row.right.line)}</td>
                    <td class={row.right ? "new" : "none"}>
                      <code>{row.right?.text}</code>
                    </td>
                  </tr>
                ),
              )}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}
