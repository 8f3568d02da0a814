// What a player can do: actions with their parameters, and free text.
import type { TargetedKeyboardEvent, TargetedSubmitEvent } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { number, t } from "../i18n";
import { capitalize, clean, words } from "../text";
import type { ActionCall, LegalAction, Param, ParamValue, Story } from "../types";
import { Icon } from "../ui";
import { nameOfAction, showValue } from "./game";

const FEW = 7;

export function Actions({
  actions,
  turn,
  story,
  disabled,
  onAct,
}: {
  actions: LegalAction[];
  turn: number;
  story: Story;
  disabled: boolean;
  onAct: (call: ActionCall) => void;
}) {
  const [open, setOpen] = useState("");
  const list = useRef<HTMLUListElement>(null);
  const chosen = useRef("");
  const act = (call: ActionCall) => {
    chosen.current = call.action_id;
    onAct(call);
  };
  useEffect(() => {
    setOpen("");
    // A button that has gone or moved has lost the focus.
    if (chosen.current && document.activeElement === document.body) {
      const buttons = [...list.current!.querySelectorAll<HTMLElement>(".action-button")];
      (buttons.find((one) => one.dataset["id"] === chosen.current) ?? buttons[0])?.focus({ preventScroll: true });
    }
    chosen.current = "";
  }, [turn]);
  return (
    <ul class="actions" aria-label={t("actions")} ref={list}>
      {actions.map((action) => {
        const hasParams = (action.params ?? []).length > 0;
        const isOpen = open === action.action_id;
        const choose = () => {
          if (disabled) return;
          if (hasParams) setOpen(isOpen ? "" : action.action_id);
          else act({ action_id: action.action_id });
        };
        return (
          <li key={action.action_id} class={isOpen ? "action open" : "action"}>
            <button
              class="action-button"
              data-id={action.action_id}
              onClick={choose}
              aria-disabled={disabled}
              aria-expanded={hasParams ? isOpen : undefined}
            >
              <span class="action-name" dir="auto">
                {nameOfAction({ ...story, actions: { ...story.actions, [action.action_id]: action.name } }, action.action_id)}
                {hasParams && <span class="action-more" aria-hidden="true">…</span>}
              </span>
              {action.description && (
                <span class="action-text" dir="auto">
                  {clean(action.description)}
                </span>
              )}
            </button>
            {isOpen && <ParamForm action={action} story={story} disabled={disabled} onAct={act} />}
          </li>
        );
      })}
    </ul>
  );
}

function ParamForm({
  action,
  story,
  disabled,
  onAct,
}: {
  action: LegalAction;
  story: Story;
  disabled: boolean;
  onAct: (call: ActionCall) => void;
}) {
  const [values, setValues] = useState<Record<string, ParamValue>>(() =>
    Object.fromEntries((action.params ?? []).map((param) => [param.name, firstValue(param)])),
  );
  const submit = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    if (!disabled) onAct({ action_id: action.action_id, params: values });
  };
  return (
    <form class="params" onSubmit={submit}>
      {(action.params ?? []).map((param) => (
        <ParamField
          key={param.name}
          param={param}
          story={story}
          value={values[param.name]!}
          onChange={(value) => setValues({ ...values, [param.name]: value })}
        />
      ))}
      <button class="button primary" aria-disabled={disabled}>
        {t("act.do")}
      </button>
    </form>
  );
}

function firstValue(param: Param): ParamValue {
  if (param.choices?.length) return param.choices[0]!;
  if (param.type === "boolean") return false;
  if (param.type === "string") return "";
  return param.minimum ?? Math.min(0, param.maximum ?? 0);
}

function ParamField({
  param,
  story,
  value,
  onChange,
}: {
  param: Param;
  story: Story;
  value: ParamValue;
  onChange: (value: ParamValue) => void;
}) {
  const id = useId();
  const label = capitalize(words(param.name));
  const { minimum, maximum } = param;
  const isShort = param.type === "integer" && minimum !== undefined && maximum !== undefined && maximum - minimum < FEW;
  const choices = param.choices ?? (isShort ? Array.from({ length: maximum - minimum + 1 }, (_, n) => minimum + n) : undefined);
  if (choices) {
    return (
      <fieldset class="param">
        <legend>{label}</legend>
        <div class="choices">
          {choices.map((choice) => (
            <label key={String(choice)} class="choice">
              <input type="radio" name={id} checked={choice === value} onChange={() => onChange(choice)} />
              <span dir="auto">{typeof choice === "number" ? number(choice) : showValue(story, choice)}</span>
            </label>
          ))}
        </div>
      </fieldset>
    );
  }
  if (param.type === "boolean") {
    return (
      <label class="param inline">
        <input type="checkbox" checked={value === true} onChange={(event) => onChange(event.currentTarget.checked)} /> {label}
      </label>
    );
  }
  const range = minimum !== undefined && maximum !== undefined ? t("range", { low: minimum, high: maximum }) : "";
  return (
    <div class="param">
      <label for={id}>
        {label} {range && <span class="quiet">{range}</span>}
      </label>
      {param.type === "string" ? (
        <input
          id={id}
          class="field"
          type="text"
          maxLength={param.max_length}
          dir="auto"
          value={String(value)}
          onInput={(event) => onChange(event.currentTarget.value)}
        />
      ) : (
        <input
          id={id}
          class="field"
          type="number"
          min={minimum}
          max={maximum}
          step={param.type === "integer" ? 1 : "any"}
          required
          value={String(value)}
          onInput={(event) => onChange(Number(event.currentTarget.value))}
        />
      )}
    </div>
  );
}

/** The line for free text, in words of the player or as a question about the record. */
export function Words({
  disabled,
  canAsk,
  canWait,
  onSay,
  onAsk,
  onWait,
}: {
  disabled: boolean;
  canAsk: boolean;
  canWait: boolean;
  onSay: (text: string) => Promise<boolean>;
  onAsk: (text: string) => void;
  onWait: () => void;
}) {
  const [text, setText] = useState("");
  const [isQuestion, setQuestion] = useState(false);
  const field = useRef<HTMLTextAreaElement>(null);
  const id = useId();
  const submit = async (event?: Event) => {
    event?.preventDefault();
    const said = text.trim();
    if (!said) {
      field.current?.focus();
      return;
    }
    if (isQuestion) {
      onAsk(said);
      setText("");
    } else if (!disabled) {
      setText("");
      if (!(await onSay(said))) setText((now) => now || said);
    }
  };
  const onKey = (event: TargetedKeyboardEvent<HTMLTextAreaElement>) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) submit(event);
  };
  return (
    <form class={isQuestion ? "words asking" : "words"} onSubmit={submit}>
      <div class="words-modes" role="group" aria-label={t("words.mode")}>
        <button type="button" class="mode" aria-pressed={!isQuestion} onClick={() => setQuestion(false)}>
          {t("words.act")}
        </button>
        {canAsk && (
          <button type="button" class="mode" aria-pressed={isQuestion} onClick={() => setQuestion(true)}>
            {t("words.ask")}
          </button>
        )}
        {canWait && (
          <button type="button" class="mode end" aria-disabled={disabled} onClick={() => disabled || onWait()}>
            <Icon name="wait" /> {t("wait")}
          </button>
        )}
      </div>
      <div class="words-line">
        <label class="hidden" for={id}>
          {t(isQuestion ? "words.question" : "words.text")}
        </label>
        <textarea
          id={id}
          ref={field}
          rows={1}
          dir={text ? "auto" : undefined}
          maxLength={isQuestion ? 1000 : 8000}
          placeholder={t(isQuestion ? "words.question" : "words.text")}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={onKey}
        />
        <button class="button primary send" aria-disabled={!isQuestion && disabled} aria-label={t(isQuestion ? "words.ask" : "words.send")}>
          <Icon name={isQuestion ? "ask" : "send"} flip />
        </button>
      </div>
    </form>
  );
}
