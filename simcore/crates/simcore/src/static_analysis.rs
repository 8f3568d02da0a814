//! Static analysis: abstract interpretation that shows quickly that a scenario has no findings.
//!
//! # Design
//!
//! The analysis computes the reachable states of a plan, turn by turn, as intervals and sets of texts
//! (`fixpoint`, `interval`, `texts`). It answers one question: is it certain that nothing can be proved about
//! the scenario? Most scenarios have no findings, so this answer avoids the slower analysis in Python.
//!
//! # Invariants
//!
//! - `peripety.engine.static_analysis.claims` is the only author of findings. This module creates no messages.
//! - The abstract domain is at least as precise as that of the reference. Otherwise a finding of the
//!   reference could be missed.
//! - The answer is positive only if each condition may hold, no loss is certain, no rule can fail, and no
//!   value is unbounded.
//! - An unsupported case is [`Unknown`]. The caller then runs the reference.
//!
//! # Rejected alternatives
//!
//! - Findings in Rust: their proofs and texts would exist twice, and would have to stay equal.
//! - Approximation for speed: a less precise set of states lets more conditions hold. It would hide findings.

mod expressions;
mod fixpoint;
mod interval;
mod states;
mod texts;

use crate::program::Program;

use fixpoint::ReachableStates;

/// Maximum work, in evaluated values. Larger programs are left to the reference.
const MOST_WORK: usize = 20_000_000;

/// An unsupported case: the reference must decide.
#[derive(Debug)]
struct Unknown;

type Known<T> = Result<T, Unknown>;

impl Program {
    /// Return True if it is certain that nothing can be proved within `horizon` turns.
    #[must_use]
    pub fn has_no_findings(&self, horizon: u64) -> bool {
        let Some(machine) = self.machine() else { return false };
        let plan = &machine.plan;
        let rules = plan.actions.len() + plan.events.len() + plan.losses.len() + plan.wins.len();
        let work =
            rules.saturating_mul(plan.columns).saturating_mul(usize::try_from(horizon).unwrap_or(usize::MAX));
        work <= MOST_WORK
            && ReachableStates::new(plan, horizon).is_ok_and(|runs| runs.has_no_findings().unwrap_or(false))
    }
}

#[cfg(test)]
mod tests {
    use crate::ir::examples::program;

    const GAIN: &str = r#"[{"id": "up", "params": {}, "preconditions": {}, "effects": [{"op": "inc", "path": "state.n", "value": 1}]},
        {"id": "down", "params": {}, "preconditions": {}, "effects": [{"op": "dec", "path": "state.n", "value": 2}]}]"#;
    const LOSSES: &str = r#"[{"id": "out", "when": {"<=": [{"var": "state.n"}, 0]}}]"#;

    /// Return True if nothing can be proved; `sections` replace those above.
    fn has_no_findings(sections: &[(&str, &str)], horizon: u64) -> bool {
        let default = [("actions", GAIN), ("loss_conditions", LOSSES)];
        program(r#"{"n": 10, "word": "x", "list": [1]}"#, &[sections, &default].concat())
            .has_no_findings(horizon)
    }

    #[test]
    fn a_loss_in_the_last_turn_is_possible() {
        assert!(has_no_findings(&[], 5));
        assert!(!has_no_findings(&[], 4));
    }

    #[test]
    fn a_certain_loss_is_left_to_the_reference() {
        let decay = ("negativity_budget", r#"{"decay_per_turn": {"state.n": 2}}"#);
        assert!(has_no_findings(&[decay], 9));
        assert!(!has_no_findings(&[decay], 10));
    }

    #[test]
    fn texts_are_distinguished() {
        let wins =
            |word: &str| format!(r#"[{{"id": "w", "when": {{"==": [{{"var": "state.word"}}, "{word}"]}}}}]"#);
        let rename = r#"[{"id": "a", "params": {}, "preconditions": {}, "effects": [
            {"op": "set", "path": "state.word", "value": "z"}, {"op": "dec", "path": "state.n", "value": 2}]}]"#;
        assert!(has_no_findings(&[("actions", rename), ("win_conditions", &wins("z"))], 9));
        assert!(!has_no_findings(&[("actions", rename), ("win_conditions", &wins("y"))], 9));
    }

    #[test]
    fn failures_and_unbounded_numbers_are_left_to_the_reference() {
        for effect in
            [r#"{"op": "pop", "path": "state.list"}"#, r#"{"op": "mul", "path": "state.n", "value": 1000}"#]
        {
            let actions = GAIN.replace(r#"{"op": "inc", "path": "state.n", "value": 1}"#, effect);
            assert!(!has_no_findings(&[("actions", &actions)], 9), "{effect}");
        }
    }
}
