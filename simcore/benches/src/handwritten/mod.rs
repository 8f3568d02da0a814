//! Handwritten loops of reference scenarios: the upper bound for the engine.
//!
//! They use plain fields and no interpretation. They make the same draws in the same order as the engine.

mod mixed;
mod numeric;
mod scheduled;

use std::fmt::Write as _;

use simcore::rng::{mix, run_seed};
use simcore::{Result, canonical_json, strict_json};

use crate::cases::Counts;

pub use mixed::Mixed;
pub use numeric::Numeric;
pub use scheduled::Scheduled;

/// Maximum turns of a run.
const HORIZON: u64 = 50;
/// Maximum number of loss conditions of these scenarios.
const LOSSES: usize = 3;
/// The first eight bytes of SHA-256 of `event`.
const EVENT: u64 = 0xb8e1_f80b_d70a_e078;
/// The first eight bytes of SHA-256 of `policy`.
const POLICY: u64 = 0x8234_12d1_eacb_6795;
const INCREMENT: u64 = 0x9E37_79B9_7F4A_7C15;

/// A scenario, and the state of one run of it.
pub trait Scenario {
    /// Return the initial state of a run.
    fn initial() -> Self;

    /// Play a turn, from 1: one legal action drawn, one event drawn, decay. Return the loss condition that
    /// holds.
    fn turn(&mut self, turn: u64, draws: &Draws) -> Option<usize>;

    /// Return the state tree as JSON.
    fn tree(&self) -> String;
}

/// The draws of one run. The part that depends on the run alone is computed once.
#[derive(Clone, Copy, Debug)]
pub struct Draws {
    policy: u64,
    event: u64,
}

impl Draws {
    /// Create the draws under the seed of a run.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { policy: mix(seed ^ POLICY), event: mix(seed ^ EVENT) }
    }

    /// Return a draw of the persona.
    fn policy(&self, turn: u64, index: u64) -> u64 {
        at(self.policy, turn, index)
    }

    /// Return the number in [0, 1) that selects the event.
    fn event(&self, turn: u64) -> f64 {
        simcore::rng::unit(at(self.event, turn, 0))
    }
}

fn at(base: u64, turn: u64, index: u64) -> u64 {
    mix(base.wrapping_add(INCREMENT.wrapping_mul((turn << 32) + index + 1)))
}

/// Choose one of `count` options; `count` is small.
fn choose(value: u64, count: u64) -> u64 {
    ((value >> 32) * count) >> 32
}

/// Play runs 0 … `runs` − 1 and count their outcomes.
#[must_use]
pub fn dry_run<S: Scenario>(seed: u64, runs: u64) -> Counts {
    let mut losses = [0; LOSSES];
    let (mut turns, mut survived) = (0, 0);
    for run in 0..runs {
        let (lost, played, _) = play::<S>(run_seed(seed, run));
        turns += played;
        match lost.and_then(|index| losses.get_mut(index)) {
            Some(count) => *count += 1,
            None => survived += 1,
        }
    }
    Counts { turns, losses: losses.to_vec(), survived, digest: String::new() }
}

/// Return the digest of the same runs in the engine's format.
///
/// # Errors
///
/// None, unless a state is not JSON.
pub fn digest<S: Scenario>(seed: u64, runs: u64) -> Result<String> {
    let mut lines = String::new();
    for run in 0..runs {
        let (lost, turns, state) = play::<S>(run_seed(seed, run));
        let outcome = if lost.is_some() { "lost" } else { "survived" };
        let tree = canonical_json::text(&strict_json::parse_canonical(state.tree().as_bytes())?)?;
        let _ = writeln!(lines, "{outcome} {turns} {}", canonical_json::sha256_hex(tree.as_bytes()));
    }
    Ok(canonical_json::sha256_hex(lines.as_bytes()))
}

/// Play one run. Return the loss condition, the number of turns and the final state.
fn play<S: Scenario>(seed: u64) -> (Option<usize>, u64, S) {
    let draws = Draws::new(seed);
    let mut state = S::initial();
    for turn in 1..=HORIZON {
        if let Some(lost) = state.turn(turn, &draws) {
            return (Some(lost), turn, state);
        }
    }
    (None, HORIZON, state)
}

/// Return the position of the `number`-th set bit.
fn set_bit(mut mask: u32, number: u64) -> u32 {
    for _ in 0..number {
        mask &= mask - 1;
    }
    mask.trailing_zeros()
}

/// Format fields as members of an object; `first` is the number of the first field.
fn members(first: usize, fields: &[f64]) -> String {
    let member = |(index, value)| format!(r#""f{}":{value}"#, first + index);
    fields.iter().enumerate().map(member).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use simcore::rng::{draw, stream_key};

    #[test]
    fn draws_equal_those_of_the_engine() {
        let draws = Draws::new(7);
        assert_eq!(draws.policy(3, 2), draw(7, stream_key("policy"), 3, 2));
        assert_eq!(at(draws.event, 50, 0), draw(7, stream_key("event"), 50, 0));
    }

    #[test]
    fn set_bit_returns_the_position_of_a_set_bit() {
        assert_eq!([0, 1, 2].map(|number| set_bit(0b10_1100, number)), [2, 3, 5]);
    }
}
