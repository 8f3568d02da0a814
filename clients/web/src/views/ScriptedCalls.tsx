// The capture log of the scripted LLM, as calls arrive.
import { useEffect, useState } from "preact/hooks";
import { Problem, rpcStream } from "../api";
import { number, t, time, tMaybe } from "../i18n";
import { clean, words } from "../text";
import { Empty, ProblemBox, Skeleton, toProblem } from "../ui";

interface ScriptedCall {
  time: string;
  api: string;
  model?: string;
  prompt?: string;
  tools?: string[];
  rule?: string;
  answer?: {
    text?: string;
    tool_calls?: string[];
    stop_reason?: string;
    input_tokens?: number;
    output_tokens?: number;
    cache_read_tokens?: number;
    fault?: string;
  };
  failure?: { kind: string; message?: string };
  no_match?: { closest_rules?: string[] };
}

interface Numbered {
  sequence: number;
  call: ScriptedCall;
}

const SHOWN = 200;
const FLUSH_MS = 100;
const QUIET_MS = 600;
const RETRY_MS = 2000;

/** Follows the log; a lost connection continues after the last call that arrived. */
function useScriptedCalls(): { calls: Numbered[]; isOpen: boolean; problem?: Problem } {
  const [calls, setCalls] = useState<Numbered[]>([]);
  const [isOpen, setOpen] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  useEffect(() => {
    const abort = new AbortController();
    let last = 0;
    let queue: Numbered[] = [];
    let timer = 0;
    // The stream of an empty log is silent.
    const quiet = setTimeout(() => setOpen(true), QUIET_MS);
    const flush = () => {
      timer = 0;
      const arrived = queue.reverse();
      queue = [];
      setOpen(true);
      setProblem(undefined);
      setCalls((before) => [...arrived, ...before].slice(0, SHOWN));
    };
    const follow = async () => {
      while (!abort.signal.aborted) {
        try {
          const request = { after_sequence: last, max_recorded: SHOWN };
          for await (const one of rpcStream<Numbered>("GatewayService/WatchScriptedCalls", request, abort.signal)) {
            last = one.sequence;
            queue.push(one);
            timer ||= setTimeout(flush, FLUSH_MS) as unknown as number;
          }
        } catch (error) {
          if (abort.signal.aborted) return;
          const found = toProblem(error);
          setProblem(found);
          if (found.code === "PROVIDER_NOT_CONFIGURED") return;
        }
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    };
    follow();
    return () => {
      abort.abort();
      clearTimeout(timer);
      clearTimeout(quiet);
    };
  }, []);
  return { calls, isOpen, problem };
}

export function ScriptedCalls() {
  const { calls, isOpen, problem } = useScriptedCalls();
  const isAbsent = problem?.code === "PROVIDER_NOT_CONFIGURED";
  return (
    <section class="stack-small">
      <h2>{t("usage.scripted")}</h2>
      <p class="quiet">{t("usage.scripted.about")}</p>
      {isAbsent && (
        <Empty title={t("usage.scripted.absent")}>
          <p>{t("usage.scripted.start")}</p>
          <pre class="command">MODEL_PROVIDER=scripted PERIPETY_SCRIPT=examples/simulator/multi_turn.toml make serve</pre>
        </Empty>
      )}
      {problem && !isAbsent && <ProblemBox problem={problem} />}
      {!problem && !isOpen && <Skeleton lines={4} />}
      {!problem && isOpen && !calls.length && <Empty title={t("usage.scripted.none")}>{t("usage.scripted.none.hint")}</Empty>}
      {calls.length > 0 && (
        <div class="captured scroll tall" tabIndex={0} role="region" aria-label={t("usage.scripted")}>
          <ol>
            {calls.map((one) => (
              <li key={one.sequence} class="captured-call">
                <Captured sequence={one.sequence} call={one.call} />
              </li>
            ))}
          </ol>
        </div>
      )}
    </section>
  );
}

function kindOf(call: ScriptedCall): string {
  if (call.failure) return "bad";
  return call.no_match || call.answer?.fault ? "warn" : "good";
}

function Captured({ sequence, call }: { sequence: number; call: ScriptedCall }) {
  const fault = call.failure?.kind ?? call.answer?.fault;
  const { answer } = call;
  return (
    <details>
      <summary>
        <span class="figure quiet">{sequence}</span>{" "}
        <strong class={`${kindOf(call)}-text`}>
          {fault ? tMaybe(`fault.${fault}`, words(fault)) : t(call.no_match ? "usage.unmatched" : "usage.answered")}
        </strong>{" "}
        <span class="quiet small">
          {[time(call.time), words(call.api), clean(call.model ?? ""), call.rule && clean(call.rule)].filter(Boolean).join(" · ")}
          {answer && (
            <>
              {" · "}
              {t("usage.tokens", { input: answer.input_tokens ?? 0, output: answer.output_tokens ?? 0 })}
              {answer.cache_read_tokens ? ` · ${t("usage.fromcache", { n: number(answer.cache_read_tokens) })}` : ""}
            </>
          )}
        </span>
      </summary>
      <dl class="captured-texts">
        <dt>{t("usage.prompt")}</dt>
        <dd dir="auto" tabIndex={0}>{clean(call.prompt ?? "") || "–"}</dd>
        <dt>{t("usage.answer")}</dt>
        <dd dir="auto" tabIndex={0}>
          {clean(answer?.text ?? call.failure?.message ?? (call.no_match?.closest_rules ?? []).join("\n")) ||
            (answer?.tool_calls ?? []).map((one) => clean(one)).join(", ") ||
            "–"}
        </dd>
      </dl>
    </details>
  );
}
