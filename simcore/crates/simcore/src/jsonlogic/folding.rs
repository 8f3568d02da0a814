//! Constant folding: parts that do not depend on the data are evaluated once, at compile time.

use std::borrow::Cow;

use super::Data;
use super::evaluation::Evaluation;
use super::expression::{Constant, Expression};
use crate::value::{EMPTY_OBJECT, Value};

/// Replace the largest constant parts of an expression by their values.
///
/// All parts together may cost as much as one evaluation, so compilation is bounded. A part that fails is not
/// replaced: it fails when it is evaluated.
pub(super) fn fold(expression: &mut Expression) {
    let mut evaluation = Evaluation::new();
    if fold_parts(expression, &mut evaluation) {
        replace(expression, &mut evaluation);
    }
}

/// Fold the constant parts of an expression. Return True if the whole expression is constant.
fn fold_parts(expression: &mut Expression, evaluation: &mut Evaluation) -> bool {
    let reads_data = matches!(
        expression,
        Expression::Field(_)
            | Expression::Variable { .. }
            | Expression::Missing(_)
            | Expression::MissingSome(_)
    );
    let mut constant = Vec::new();
    expression.for_each_part(|part| constant.push(fold_parts(part, evaluation)));
    let whole = match (&*expression, constant.as_slice()) {
        _ if reads_data => false,
        // The body of an iterator reads the elements, not the data.
        (Expression::Iteration(_), [source, _body, start @ ..]) => {
            *source && start.iter().all(|start| *start)
        }
        (_, parts) => parts.iter().all(|part| *part),
    };
    if !whole {
        let mut constant = constant.into_iter();
        expression.for_each_part(|part| {
            if constant.next() == Some(true) {
                replace(part, evaluation);
            }
        });
    }
    whole
}

fn replace(expression: &mut Expression, evaluation: &mut Evaluation) {
    if matches!(expression, Expression::Literal(_) | Expression::Invalid(_)) {
        return;
    }
    let before = evaluation.clone();
    let value = evaluation.value(expression, Data::Value(&EMPTY_OBJECT)).map(Cow::into_owned);
    if let Ok(value) = value {
        let (steps, output) = evaluation.usage_since(&before);
        let original = std::mem::replace(expression, Expression::Literal(Value::Null));
        *expression = Expression::Constant(Box::new(Constant { value, steps, output, original }));
    }
}
