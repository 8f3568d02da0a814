/**
 * Bridge between an ink story (inkjs) and a session of Peripety.
 *
 * The story declares `EXTERNAL turn(action, input)`. Each call plays a turn, and returns the status after it, such as
 * `ongoing` or `lost`. A global variable of the story with the name of a value of the state follows this value:
 * `VAR light = 0` follows `state.light`, and `VAR group_size = 0` follows `state.group.size`.
 */

/** Result of a turn that a rule abandoned: nothing has changed, and `turn` returns an empty text. */
const ABANDONED = { changes: [], status: { kind: 0 } };

const STATUSES = ["", "ongoing", "lost", "won", "survived"];

/**
 * A line of the story with its tags, or an event of the turn that is being played.
 *
 * @typedef {{ line: string, tags: string[] } | { event: any }} Told
 */

/**
 * Continue a story until its next choice or its end, and yield its lines and the events of its turns.
 *
 * External functions of ink return at once, but a turn streams. So a step that calls `turn` is undone, the turn is
 * played, and the step is repeated with its result. Functions of your own in such a step run twice.
 *
 * Each event arrives once, also over a lost connection. If `accepted` arrives again, discard the earlier events of the
 * turn. Do not use the story while this function runs.
 *
 * @param {any} story - the story of inkjs.
 * @param {any} client - the client of `@peripety/client` or `@peripety/client/web`.
 * @param {any} session - its session, which is updated.
 * @returns {AsyncGenerator<Told, void>} lines and events in order.
 * @throws PeripetyError of `@peripety/client` - a turn was refused; the story is as before the step.
 */
export async function* tell(story, client, session) {
  /** Results of the turns of this step, in order. */
  let results = [];
  let calls = 0;
  let wanted;
  story.BindExternalFunctionGeneral(
    "turn",
    ([action = "", input = ""]) => {
      const result = results[calls++];
      if (result === undefined) {
        wanted ??= { actions: action === "" ? [] : [{ actionId: action }], input };
        return "";
      }
      follow(story, result.changes);
      return STATUSES[result.status.kind] ?? "";
    },
    false, // ink must not look ahead over a turn
  );
  try {
    if (session.state?.length) follow(story, leaves(parsed(session.state), ""));
    while (story.canContinue) {
      const before = story.state.toJson();
      results = [];
      for (;;) {
        [calls, wanted] = [0, undefined];
        const line = story.Continue();
        const tags = story.currentTags;
        if (wanted === undefined) {
          if (line.trim() !== "") yield { line, tags };
          break;
        }
        story.state.LoadJson(before);
        let result = ABANDONED;
        for await (const event of client.play(session, wanted)) {
          if (event.event.case === "committed") result = event.event.value;
          yield { event };
        }
        results.push(result);
      }
    }
  } finally {
    story.UnbindExternalFunction("turn");
  }
}

/** Set the variables of a story that follow changed values. */
function follow(story, changes) {
  for (const { path, after } of changes) {
    const name = path.replace(/^state\./, "").replaceAll(".", "_");
    const value = after instanceof Uint8Array ? parsed(after) : after;
    const isPlain = ["number", "string", "boolean"].includes(typeof value);
    if (isPlain && story.variablesState.GlobalVariableExistsWithName(name)) story.variablesState[name] = value;
  }
}

function parsed(bytes) {
  return JSON.parse(new TextDecoder().decode(bytes));
}

/** Return the values of a state as changes, with their paths. */
function leaves(value, path) {
  if (value === null || typeof value !== "object") return [{ path, after: value }];
  return Object.entries(value).flatMap(([key, item]) => leaves(item, path === "" ? key : `${path}.${key}`));
}
