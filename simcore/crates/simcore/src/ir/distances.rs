//! Lowering of condition distances, if their operands can be lowered.

use crate::condition_distance::{self, Comparison};
use crate::value::{Value, object};

use super::expressions::Names;
use super::rules::Builder;
use super::types::{Condition, Kind, Relation, Scalar};

/// The distances of the loss and win conditions.
#[derive(Debug)]
pub(crate) struct Distances {
    pub(crate) losses: Vec<Distance>,
    pub(crate) wins: Vec<Distance>,
}

/// The distance of a condition.
#[derive(Debug)]
pub(crate) enum Distance {
    Greatest(Vec<Distance>),
    Least(Vec<Distance>),
    Graded(Graded),
    /// 0 if it holds, otherwise 1.
    Whole(Condition),
}

/// A comparison of two numbers: equality, or an upper limit of the first.
#[derive(Debug)]
pub(crate) struct Graded {
    pub(crate) relation: Relation,
    pub(crate) first: Scalar,
    pub(crate) second: Scalar,
    pub(crate) scale: f64,
    /// The offset that is added to the gap.
    pub(crate) least: f64,
}

impl Distances {
    /// Return True if a test is true for all evaluated conditions.
    pub(super) fn all(&self, test: &impl Fn(&Condition) -> bool) -> bool {
        self.losses.iter().chain(&self.wins).all(|distance| distance.all(test))
    }
}

impl Distance {
    fn all(&self, test: &impl Fn(&Condition) -> bool) -> bool {
        match self {
            Self::Greatest(parts) | Self::Least(parts) => parts.iter().all(|part| part.all(test)),
            Self::Graded(Graded { relation, first, second, .. }) => {
                test(&Condition::Compare(*relation, first.clone(), second.clone()))
            }
            Self::Whole(condition) => test(condition),
        }
    }
}

impl Builder<'_> {
    /// Return the distances, or `None` if an operand needs the interpreter.
    pub(super) fn distances(&mut self) -> Option<Distances> {
        let distances = self.program.distances();
        let losses = self.each_distance(&distances.losses)?;
        Some(Distances { losses, wins: self.each_distance(&distances.wins)? })
    }

    fn each_distance(&mut self, distances: &[condition_distance::Distance]) -> Option<Vec<Distance>> {
        distances.iter().map(|distance| self.distance(distance)).collect()
    }

    fn distance(&mut self, distance: &condition_distance::Distance) -> Option<Distance> {
        Some(match distance {
            condition_distance::Distance::Greatest(parts) => Distance::Greatest(self.each_distance(parts)?),
            condition_distance::Distance::Least(parts) => Distance::Least(self.each_distance(parts)?),
            condition_distance::Distance::Whole(whole) => {
                let condition = self.free_condition(&whole.logic, &[])?.0;
                Distance::Whole(if whole.opposite { Condition::Not(Box::new(condition)) } else { condition })
            }
            condition_distance::Distance::Compared(comparison) => self.lower_comparison(comparison)?,
        })
    }

    fn lower_comparison(&mut self, comparison: &Comparison) -> Option<Distance> {
        let operands = &comparison.operands;
        let whole = object([(comparison.relation.name(), operands.to_vec().into())]);
        Some(match self.free_condition(&whole, operands)? {
            (Condition::Compare(relation, first, second), true) if relation != Relation::Unequal => {
                let (scale, least) = (comparison.scale, comparison.least());
                Distance::Graded(Graded { relation, first, second, scale, least })
            }
            (condition, _) => Distance::Whole(condition),
        })
    }

    /// Return a condition that is evaluated without charge, and True if its operands are numbers.
    fn free_condition(&mut self, logic: &Value, operands: &[Value]) -> Option<(Condition, bool)> {
        let lower = |scope: &super::expressions::Scope<'_>, logic: &Value| {
            let is_number =
                |operand| scope.value(operand).is_some_and(|operand| operand.kind == Kind::Number);
            Some((scope.condition(logic)?, operands.iter().all(is_number)))
        };
        self.expression(logic, &Names::new(), &Names::new(), 0, lower, |_, _| None)
    }
}

#[cfg(test)]
mod tests {
    use crate::ir::examples::{plan_of, program};

    #[test]
    fn a_fallback_operand_gives_a_plan_without_distances() {
        for (condition, has_distances) in [
            (r#"{"<": [{"var": "state.n"}, 0]}"#, true),
            (
                r#"{"!": {"and": [{"==": [{"var": "state.t"}, "x"]}, {"in": [1, {"var": "state.list"}]}]}}"#,
                true,
            ),
            (r#"{"<": [{"var": "state.n"}, {"var": "entities.0.size"}]}"#, false),
            (
                r#"{"or": [{"<": [{"var": "state.n"}, 0]}, {"==": [{"cat": [{"var": "state.t"}]}, "x"]}]}"#,
                false,
            ),
        ] {
            let losses = format!(r#"[{{"id": "x", "when": {condition}}}]"#);
            let program = program(r#"{"n": 1, "t": "x", "list": [1]}"#, &[("loss_conditions", &losses)]);
            let plan = plan_of(&program).unwrap();
            assert_eq!(plan.distances.is_some(), has_distances, "{condition}");
        }
    }
}
