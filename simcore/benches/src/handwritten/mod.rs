//! Reference scenarios written by hand, as a good Rust programmer would who knew them beforehand: plain fields, no
//! interpretation, the same draws in the same order. They are the limit that the engine is measured against.

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

/// Most turns of a run.
const HORIZON: u64 = 50;
/// The most loss conditions that one of the scenarios has.
const LOSSES: usize = 3;
/// The first eight bytes of SHA-256 of `event`.
const EVENT: u64 = 0xb8e1_f80b_d70a_e078;
/// The first eight bytes of SHA-256 of `policy`.
const POLICY: u64 = 0x8234_12d1_eacb_6795;
const INCREMENT: u64 = 0x9E37_79B9_7F4A_7C15;

/// A scenario, and the state of one run of it.
pub trait Scenario {
    /// The state in which every run begins.
    fn initial() -> Self;

    /// Play a turn, the first being 1: one legal action drawn, one event drawn, decay. The loss condition that then
    /// holds, if one does.
    fn turn(&mut self, turn: u64, draws: &Draws) -> Option<usize>;

    /// The state tree as JSON.
    fn tree(&self) -> String;
}

/// The draws of one run; what depends on the run alone is computed once.
#[derive(Clone, Copy, Debug)]
pub struct Draws {
    policy: u64,
    event: u64,
}

impl Draws {
    /// The draws under the seed of a run.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { policy: mix(seed ^ POLICY), event: mix(seed ^ EVENT) }
    }

    /// What the persona draws.
    fn policy(&self, turn: u64, index: u64) -> u64 {
        at(self.policy, turn, index)
    }

    /// A number in [0, 1) that decides about the event.
    fn event(&self, turn: u64) -> f64 {
        simcore::rng::unit(at(self.event, turn, 0))
    }
}

fn at(base: u64, turn: u64, index: u64) -> u64 {
    mix(base.wrapping_add(INCREMENT.wrapping_mul((turn << 32) + index + 1)))
}

/// A choice among `count`, which is small.
fn choose(value: u64, count: u64) -> u64 {
    ((value >> 32) * count) >> 32
}

/// Play runs 0 … `runs` − 1 and count what came of them.
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

/// The digest of the same runs, as the engine's own.
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

/// One run: the condition that it was lost by, the turns it took, the state it ended in.
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

/// The place of the `number`-th bit that is set.
fn set_bit(mut mask: u32, number: u64) -> u32 {
    for _ in 0..number {
        mask &= mask - 1;
    }
    mask.trailing_zeros()
}

/// Fields as members of an object; `first` is the number of the first of them.
fn members(first: usize, fields: &[f64]) -> String {
    let member = |(index, value)| format!(r#""f{}":{value}"#, first + index);
    fields.iter().enumerate().map(member).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use simcore::rng::{draw, stream_key};

    #[test]
    fn the_draws_are_those_of_the_engine() {
        let draws = Draws::new(7);
        assert_eq!(draws.policy(3, 2), draw(7, stream_key("policy"), 3, 2));
        assert_eq!(at(draws.event, 50, 0), draw(7, stream_key("event"), 50, 0));
    }

    #[test]
    fn a_set_bit_is_found_by_its_number() {
        assert_eq!([0, 1, 2].map(|number| set_bit(0b10_1100, number)), [2, 3, 5]);
    }
}
