//! One turn in its order: due schedules; actions; changes of the narrator; one random event and lasting
//! events; decay; conditions.

mod choices;
mod rule_execution;

use std::sync::{Arc, LazyLock};

use crate::canonical_json::{self, Members};
use crate::change_log::{ChangeLog, Draw, Failure};
use crate::effects::{Compiling, Effect, Transaction};
use crate::error::{Code, Error, Result};
use crate::jsonlogic::Rule;
use crate::program::{Action, Condition, Program};
use crate::rng::{draw, stream_key, unit};
use crate::state::{Lasting, State, Status};
use crate::strict_json;
use crate::value::{EMPTY_OBJECT, Object, Value, count};

pub(crate) use choices::{Choice, PARAM_TRIES, PolicyDraws, legal_choices, open_copy};
pub(crate) use rule_execution::with_root;

const EVENT_STREAM: &str = "event";

static EVENT_KEY: LazyLock<u64> = LazyLock::new(|| stream_key(EVENT_STREAM));
static DECAY: LazyLock<Arc<str>> = LazyLock::new(|| Arc::from("decay"));
static NARRATOR: LazyLock<Arc<str>> = LazyLock::new(|| Arc::from("narrator"));

impl Program {
    /// Return the initial state under a seed.
    #[must_use]
    pub fn new_state(&self, seed: u64) -> State {
        let mut state = State::undealt(self, seed);
        deal(self, &mut state);
        state
    }

    /// Return the ids of the legal actions as a JSON list.
    ///
    /// # Errors
    ///
    /// `STATE_LIMIT` if the scheduled effects of the turn cannot be applied; `TURN_LIMIT`.
    pub fn legal_actions(&self, state: &State) -> Result<String> {
        let choices = legal_choices(self, state, &mut PolicyDraws::new(state), &mut ChangeLog::new(false))?;
        canonical_json::text(&choices.iter().map(|choice| Value::from(&choice.action.id)).collect())
    }

    /// Take an action. Return the JSON of an `ActResult`: accepted with its changes, or rejected with reasons
    /// and no changes.
    ///
    /// # Errors
    ///
    /// `UNKNOWN_ACTION`, `RUN_ENDED`, `STATE_LIMIT` or `TURN_LIMIT`. The call is then rolled back.
    pub fn act(&self, state: &mut State, action_id: &str, params: &[u8]) -> Result<String> {
        let params = strict_json::parse_canonical(params)?;
        let mut record = ChangeLog::new(true);
        let reasons = act(self, state, action_id, &params, &mut record)?;
        act_result(&reasons, &record)
    }

    /// Apply all or none of the narrator's changes, a list of `{op, path, value?}`. Return the JSON of an
    /// `ActResult`.
    ///
    /// # Errors
    ///
    /// `RUN_ENDED`, `STATE_LIMIT` or `TURN_LIMIT`. The call is then rolled back.
    pub fn narrate(&self, state: &mut State, changes: &[u8]) -> Result<String> {
        let changes = strict_json::parse_canonical(changes)?;
        let mut record = ChangeLog::new(true);
        let reasons = narrate(self, state, &changes, &mut record)?;
        act_result(&reasons, &record)
    }

    /// Finish the turn. Return the JSON of a `StepResult`.
    ///
    /// # Errors
    ///
    /// `RUN_ENDED`, `STATE_LIMIT` or `TURN_LIMIT`. The call is then rolled back.
    pub fn step(&self, state: &mut State) -> Result<String> {
        let mut record = ChangeLog::new(true);
        let event = step(self, state, &mut record)?;
        let event = event.and_then(|index| self.events.get(index));
        let mut out = String::new();
        let mut result = Members::new(&mut out, 1);
        record.write_changes(&mut result)?;
        result.value("draws", &record.draws_value())?;
        result.value("errors", &record.failures_value())?;
        result.value("event", &event.map_or(Value::Null, |event| Value::from(&event.id)))?;
        result.value("log", &record.log_value())?;
        result.value("status", &state.status.value(self))?;
        result.value("turn", &count(state.turn))?;
        result.end();
        Ok(out)
    }
}

/// Return the JSON of an `ActResult`.
fn act_result(reasons: &[Failure], record: &ChangeLog) -> Result<String> {
    let mut out = String::new();
    let mut result = Members::new(&mut out, 1);
    result.value("accepted", &Value::Bool(reasons.is_empty()))?;
    record.write_changes(&mut result)?;
    result.value("errors", &record.failures_value())?;
    result.value("log", &record.log_value())?;
    result.value("reasons", &reasons.iter().map(Failure::value).collect())?;
    result.end();
    Ok(out)
}

/// Return true if the condition of a solution or of a step holds. One that fails counts as false.
pub(crate) fn is_for(program: &Program, state: &State, when: Option<&Rule>) -> bool {
    let mut record = ChangeLog::new(false);
    let holds = |when| rule_execution::holds(program, state, when, &EMPTY_OBJECT, &mut record);
    when.map_or(Ok(true), holds).unwrap_or(false)
}

/// Take an action. Return the reasons for its rejection, if any.
pub(crate) fn act(
    program: &Program,
    state: &mut State,
    action_id: &str,
    params: &Value,
    record: &mut ChangeLog,
) -> Result<Vec<Failure>> {
    in_transaction(state, record, |state, record| {
        let action = program.actions.iter().find(|action| &*action.id == action_id).ok_or_else(|| {
            let shown: String = action_id.chars().take(64).collect();
            Error::new(Code::UnknownAction, format!("the scenario has no action '{shown}'"))
        })?;
        open(state, record)?;
        attempt(program, state, action, params, record)
    })
}

fn attempt(
    program: &Program,
    state: &mut State,
    action: &Action,
    params: &Value,
    record: &mut ChangeLog,
) -> Result<Vec<Failure>> {
    let place = &action.rule.consequence.place;
    let problems = action.params.problems(params);
    if !problems.is_empty() {
        let rule = format!("{place}/params");
        let failure = |message| Failure { code: Code::IllegalParam, rule: rule.clone(), message };
        return Ok(problems.into_iter().map(failure).collect());
    }
    let rule = action.rule_for(params);
    match rule_execution::holds(program, state, &rule.preconditions, params, record) {
        Ok(true) => {}
        Ok(false) => {
            let message = format!("the preconditions of '{}' do not hold", action.id);
            let place = format!("{place}/preconditions");
            return Ok(vec![Failure { code: Code::PreconditionFailed, rule: place, message }]);
        }
        Err(error) => return Ok(vec![record.fail(error, format_args!("{place}/preconditions"))?]),
    }
    Ok(rule_execution::apply_rule(program, state, &rule.consequence, params, record)?.into_iter().collect())
}

/// Apply the narrator's changes. Return the reasons for their rejection, if any.
fn narrate(
    program: &Program,
    state: &mut State,
    changes: &Value,
    record: &mut ChangeLog,
) -> Result<Vec<Failure>> {
    in_transaction(state, record, |state, record| {
        open(state, record)?;
        let reasons = program.scope().find_violations(changes, &program.bounds);
        if !reasons.is_empty() {
            return Ok(reasons);
        }
        let effects = Effect::list(changes, &mut Compiling::new(program.turn_minutes, &program.bounds))?;
        let place = format_args!("/state_changes");
        let failure = rule_execution::apply(state, &effects, &Object::default(), &NARRATOR, record, place)?;
        Ok(failure.into_iter().collect())
    })
}

/// Finish the turn. Return the index of the event that occurred, if any.
pub(crate) fn step(program: &Program, state: &mut State, record: &mut ChangeLog) -> Result<Option<usize>> {
    in_transaction(state, record, |state, record| {
        open(state, record)?;
        let early = if program.ends_early { find_ending(program, state, record)? } else { Status::Ongoing };
        let mut event = None;
        if early == Status::Ongoing {
            event = apply_events(program, state, record)?;
            decay(program, state, record)?;
            state.status = find_ending(program, state, record)?;
        } else {
            state.status = early;
        }
        state.turn += 1;
        state.opened = false;
        state.rolls.clear();
        Ok(event)
    })
}

/// Draw the hidden truths of a run, and write them to the state of the document.
pub(crate) fn deal(program: &Program, state: &mut State) {
    state.is_dealt = true;
    for deal in &program.deals {
        let Some(outcome) = deal.outcomes.get(deal.drawn(state.seed)) else { continue };
        let (derives, mut record) = (Object::default(), ChangeLog::new(false));
        let transaction = Transaction::new(state, &mut record, &derives, &deal.cause);
        // A validated scenario has no deal that fails.
        drop(transaction.apply(std::slice::from_ref(outcome)));
    }
}

/// Reject an operation on a run that has ended.
pub(crate) fn check_ongoing(state: &State) -> Result<()> {
    if state.status == Status::Ongoing {
        return Ok(());
    }
    Err(Error::new(Code::RunEnded, "the run has ended; nothing more can happen in it"))
}

/// Run an operation as a transaction: a failure rolls the state back.
fn in_transaction<T>(
    state: &mut State,
    record: &mut ChangeLog,
    work: impl FnOnce(&mut State, &mut ChangeLog) -> Result<T>,
) -> Result<T> {
    check_ongoing(state)?;
    record.clear();
    let mark = record.mark(state);
    let (opened, lasting, scheduled) = (state.opened, state.lasting.clone(), Arc::clone(&state.scheduled));
    let result = work(state, record);
    if result.is_err() {
        record.roll_back(mark, state);
        (state.opened, state.lasting, state.scheduled) = (opened, lasting, scheduled);
    }
    result
}

/// Open the turn once: apply the due schedules.
fn open(state: &mut State, record: &mut ChangeLog) -> Result<()> {
    if state.opened {
        return Ok(());
    }
    state.opened = true;
    for entry in state.take_due() {
        let cause: Arc<str> = format!("schedule:{}", entry.id).into();
        rule_execution::apply(
            state,
            &entry.effects,
            &Object::default(),
            &cause,
            record,
            format_args!("{cause}"),
        )?;
    }
    Ok(())
}

/// Apply at most one random event, then the lasting events.
fn apply_events(program: &Program, state: &mut State, record: &mut ChangeLog) -> Result<Option<usize>> {
    let now = state.turn + 1;
    let mut lasting: Vec<Lasting> =
        state.lasting.iter().filter(|entry| entry.until >= now).copied().collect();
    let fired = draw_event(program, state, &lasting, record)?;
    let started = match fired {
        Some(event) => start_event(program, state, event, record)?,
        None => None,
    };
    for entry in &lasting {
        apply_event(program, state, entry.event, record)?;
    }
    lasting.extend(started);
    lasting.retain(|entry| entry.until > now);
    state.lasting = lasting;
    Ok(fired)
}

fn draw_event(
    program: &Program,
    state: &State,
    lasting: &[Lasting],
    record: &mut ChangeLog,
) -> Result<Option<usize>> {
    let mut eligible = Vec::new();
    let mut total = 0.0;
    for (index, event) in program.events.iter().enumerate() {
        if lasting.iter().any(|entry| entry.event == index) {
            continue;
        }
        if can_occur(program, state, index, record)? {
            eligible.push((index, event.weight));
            total += event.weight;
        }
    }
    if eligible.is_empty() {
        return Ok(None);
    }
    let turn = state.turn + 1;
    let value = draw(state.seed, *EVENT_KEY, turn, 0);
    record.draws.push(Draw { stream: EVENT_STREAM.into(), turn, index: 0, value });
    let threshold = if total <= 1.0 { unit(value) } else { unit(value) * total };
    let mut cumulative = 0.0;
    Ok(eligible.into_iter().find_map(|(index, weight)| {
        cumulative += weight;
        (threshold < cumulative).then_some(index)
    }))
}

/// Apply an event. Return its entry if it lasts.
fn start_event(
    program: &Program,
    state: &mut State,
    event: usize,
    record: &mut ChangeLog,
) -> Result<Option<Lasting>> {
    let turns = program.events.get(event).map_or(1, |event| event.turns);
    let failed = apply_event(program, state, event, record)?;
    Ok(if failed { None } else { Some(Lasting { event, until: state.turn + turns }) })
}

/// Apply an event outside of the draw if it can occur now. Return True if it did. The event does not start to
/// last.
pub(crate) fn try_event(
    program: &Program,
    state: &mut State,
    event: usize,
    record: &mut ChangeLog,
) -> Result<bool> {
    in_transaction(state, record, |state, record| {
        let now = state.turn + 1;
        let lasts = state.lasting.iter().any(|entry| entry.event == event && entry.until >= now);
        if lasts || !can_occur(program, state, event, record)? {
            return Ok(false);
        }
        Ok(!apply_event(program, state, event, record)?)
    })
}

/// Return True if the condition of an event holds. A condition that fails does not hold.
fn can_occur(program: &Program, state: &State, event: usize, record: &mut ChangeLog) -> Result<bool> {
    let Some(event) = program.events.get(event) else { return Ok(false) };
    match rule_execution::holds(program, state, &event.when, &EMPTY_OBJECT, record) {
        Ok(holds) => Ok(holds),
        Err(error) => {
            record.fail(error, format_args!("{}/when", event.consequence.place))?;
            Ok(false)
        }
    }
}

/// Apply the effects of an event. Return True if they failed.
fn apply_event(program: &Program, state: &mut State, event: usize, record: &mut ChangeLog) -> Result<bool> {
    let Some(event) = program.events.get(event) else { return Ok(true) };
    Ok(rule_execution::apply_rule(program, state, &event.consequence, &EMPTY_OBJECT, record)?.is_some())
}

fn decay(program: &Program, state: &mut State, record: &mut ChangeLog) -> Result<()> {
    program
        .decay
        .iter()
        .try_for_each(|(place, effect)| rule_execution::decay(state, effect, place, &DECAY, record))
}

/// Check the end conditions: losses in order, then wins. The first one that holds ends the run.
pub(crate) fn find_ending(program: &Program, state: &State, record: &mut ChangeLog) -> Result<Status> {
    if let Some(index) = first_holding(program, state, &program.losses, "loss_conditions", record)? {
        return Ok(Status::Lost(index));
    }
    let won = first_holding(program, state, &program.wins, "win_conditions", record)?;
    Ok(won.map_or(Status::Ongoing, Status::Won))
}

fn first_holding(
    program: &Program,
    state: &State,
    conditions: &[Condition],
    section: &str,
    record: &mut ChangeLog,
) -> Result<Option<usize>> {
    for (index, condition) in conditions.iter().enumerate() {
        match rule_execution::holds(program, state, &condition.when, &EMPTY_OBJECT, record) {
            Ok(true) => return Ok(Some(index)),
            Ok(false) => {}
            Err(error) => {
                record.fail(error, format_args!("/{section}/{index}/when"))?;
            }
        }
    }
    Ok(None)
}
