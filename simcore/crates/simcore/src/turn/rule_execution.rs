//! Rule execution: conditions, derived values and effects.

use std::fmt;
use std::sync::Arc;

use crate::change_log::{ChangeLog, Failure};
use crate::effects::{Effect, Transaction};
use crate::error::Result;
use crate::jsonlogic::{Data, Rule};
use crate::paths::escape_pointer;
use crate::program::{Consequence, Program};
use crate::state::State;
use crate::value::{EMPTY_OBJECT, Object, Value, count};

/// Evaluate a condition. An empty one always holds.
pub(super) fn holds(
    program: &Program,
    state: &State,
    condition: &Rule,
    params: &Value,
    record: &mut ChangeLog,
) -> Result<bool> {
    let mut spent = 0;
    let holds =
        with_root(program, state, params, &EMPTY_OBJECT, |root| condition.holds_metered(root, &mut spent));
    record.charge(spent)?;
    holds
}

/// Derive values, then apply the effects of an action or event. Return the failure, if any.
pub(super) fn apply_rule(
    program: &Program,
    state: &mut State,
    consequence: &Consequence,
    params: &Value,
    record: &mut ChangeLog,
) -> Result<Option<Failure>> {
    let place = &consequence.place;
    match derive(program, state, &consequence.derives, params, record) {
        Err(error) => record.fail(error, format_args!("{place}/derives")).map(Some),
        Ok(derives) => {
            let empty = Object::default();
            let derives = derives.as_object().unwrap_or(&empty);
            let place = format_args!("{place}/effects");
            apply(state, &consequence.effects, derives, &consequence.cause, record, place)
        }
    }
}

/// Apply all effects or none. Return the failure, if any.
pub(super) fn apply(
    state: &mut State,
    effects: &[Effect],
    derives: &Object,
    cause: &Arc<str>,
    record: &mut ChangeLog,
    place: fmt::Arguments<'_>,
) -> Result<Option<Failure>> {
    match Transaction::new(state, record, derives, cause).apply(effects) {
        Ok(()) => Ok(None),
        Err(error) => record.fail(error, place).map(Some),
    }
}

/// Apply the decay of a path. A failure has the place of the path.
pub(super) fn decay(
    state: &mut State,
    effect: &Effect,
    place: &str,
    cause: &Arc<str>,
    record: &mut ChangeLog,
) -> Result<()> {
    let derives = &Object::default();
    let applied = Transaction::new(state, record, derives, cause).apply(std::slice::from_ref(effect));
    if let Err(error) = applied {
        record.fail(error.at(""), format_args!("{place}"))?;
    }
    Ok(())
}

/// Evaluate the derived values in the order of their dependencies.
fn derive(
    program: &Program,
    state: &State,
    rules: &[(Arc<str>, Rule)],
    params: &Value,
    record: &mut ChangeLog,
) -> Result<Value> {
    if rules.is_empty() {
        return Ok(EMPTY_OBJECT.clone());
    }
    let mut derives = Value::from(Object::default());
    for (name, rule) in rules {
        let mut spent = 0;
        let value =
            with_root(program, state, params, &derives, |root| rule.evaluate_metered(root, &mut spent));
        record.charge(spent)?;
        let value = value.map_err(|error| error.at(format!("/{}", escape_pointer(name))))?;
        if let Value::Object(members) = &mut derives {
            Arc::make_mut(members).insert(Arc::clone(name), value);
        }
    }
    Ok(derives)
}

/// Call a function with the data that a rule may read.
pub(crate) fn with_root<T>(
    program: &Program,
    state: &State,
    params: &Value,
    derives: &Value,
    evaluate: impl FnOnce(Data<'_>) -> T,
) -> T {
    evaluate(Data::Members(&[
        ("state", &state.tree),
        ("params", params),
        ("derives", derives),
        ("turn", &count(state.turn + 1)),
        ("entities", &program.entities),
    ]))
}
