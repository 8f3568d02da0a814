//! Legal choices, and the draws of a persona.

use std::borrow::Cow;
use std::sync::LazyLock;

use crate::change_log::ChangeLog;
use crate::error::Result;
use crate::program::{Action, Program};
use crate::rng::{choose, draw, stream_key};
use crate::state::State;
use crate::value::Value;

use super::{open, rule_execution};

/// Draws of parameters before an action counts as illegal.
pub(crate) const PARAM_TRIES: usize = 8;

static POLICY_KEY: LazyLock<u64> = LazyLock::new(|| stream_key("policy"));

/// A legal action with drawn parameters.
pub(crate) struct Choice<'a> {
    /// The index of the action in the document.
    pub(crate) index: usize,
    pub(crate) action: &'a Action,
    pub(crate) params: Value,
}

/// The draws of a persona within a turn, in order.
pub(crate) struct PolicyDraws {
    seed: u64,
    turn: u64,
    index: u64,
}

impl PolicyDraws {
    pub(crate) fn new(state: &State) -> Self {
        Self { seed: state.seed, turn: state.turn + 1, index: 0 }
    }

    /// Return the next draw.
    pub(crate) fn next_draw(&mut self) -> u64 {
        let value = draw(self.seed, *POLICY_KEY, self.turn, self.index);
        self.index += 1;
        value
    }

    /// Pick a random choice, if there are any.
    pub(crate) fn pick<'c, 'a>(&mut self, choices: &'c [Choice<'a>]) -> Option<&'c Choice<'a>> {
        if choices.is_empty() { None } else { choices.get(self.index_below(choices.len())) }
    }

    /// Draw an index below a count of at least 1.
    pub(crate) fn index_below(&mut self, count: usize) -> usize {
        usize::try_from(choose(self.next_draw(), count as u64)).unwrap_or(0)
    }
}

/// Return the legal actions with drawn parameters, in the order of the document.
///
/// If the preconditions depend on parameters, a few draws are tried. If all fail, the action counts as
/// illegal. A precondition that fails is recorded as a failure and never counts as true.
pub(crate) fn legal_choices<'a>(
    program: &'a Program,
    state: &State,
    draws: &mut PolicyDraws,
    record: &mut ChangeLog,
) -> Result<Vec<Choice<'a>>> {
    let state = open_copy(state, record)?;
    let mut choices = Vec::new();
    for (index, action) in program.actions.iter().enumerate() {
        let tries = if action.params.is_empty() { 1 } else { PARAM_TRIES };
        for _ in 0..tries {
            let params = action.params.sample(&[], || draws.next_draw())?;
            match rule_execution::holds(
                program,
                &state,
                &action.rule_for(&params).preconditions,
                &params,
                record,
            ) {
                Ok(false) => {}
                Ok(true) => {
                    choices.push(Choice { index, action, params });
                    break;
                }
                Err(error) => {
                    record.fail(error, format_args!("/actions/{index}/preconditions"))?;
                }
            }
        }
    }
    Ok(choices)
}

/// Return the state with its turn opened. It is copied only if that changes it.
pub(crate) fn open_copy<'a>(state: &'a State, record: &mut ChangeLog) -> Result<Cow<'a, State>> {
    if state.opened || !state.is_due() {
        return Ok(Cow::Borrowed(state));
    }
    let (mut opened, mut opening) = (state.clone(), ChangeLog::new(false));
    opening.steps = record.steps;
    open(&mut opened, &mut opening)?;
    record.steps = opening.steps;
    Ok(Cow::Owned(opened))
}
