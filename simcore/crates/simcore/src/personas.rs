//! Personas of a dry-run, and the values that the ones with lookahead compare.

use std::sync::LazyLock;

use crate::rng::stream_key;

/// The value of a run that is lost or that exceeded its limits.
pub(crate) const LOST: f64 = -2.0;
/// The value of a run that is won.
const WON: f64 = 2.0;

/// Rollouts of the planner for each candidate.
pub(crate) const ROLLOUTS: u64 = 4;
/// Turns of a rollout, with the turn of the candidate.
pub(crate) const ROLLOUT_TURNS: u64 = 8;

/// Return the value of a run that is lost in a turn of a rollout, from 1. A later loss is better.
#[expect(clippy::cast_precision_loss, reason = "few turns")]
pub(crate) fn lost_in(turn: u64) -> f64 {
    LOST + (turn as f64 - 1.0) / ROLLOUT_TURNS as f64
}

/// Return the value of a run that is won in a turn of a rollout. An earlier win is better.
#[expect(clippy::cast_precision_loss, reason = "few turns")]
pub(crate) fn won_in(turn: u64) -> f64 {
    WON + (ROLLOUT_TURNS as f64 - turn as f64) / ROLLOUT_TURNS as f64
}

/// The stream of the rollout seeds.
pub(crate) static ROLLOUT_KEY: LazyLock<u64> = LazyLock::new(|| stream_key("rollout"));

/// A persona: the policy of the player.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Persona {
    /// Takes no action at all.
    Idle,
    /// Takes one of the legal actions at random.
    Random,
    /// Takes the action with the best immediate result.
    Greedy,
    /// Takes the action with the best result if the worst event follows.
    Cautious,
    /// Takes the action with the best result after some random turns.
    Planner,
    /// Takes the action with the worst immediate result.
    Saboteur,
    /// Takes the action and parameters that it has used least.
    Curious,
    /// Follows a solution of the document.
    Par,
}

const NAMES: [(&str, Persona); 8] = [
    ("idle", Persona::Idle),
    ("random", Persona::Random),
    ("greedy", Persona::Greedy),
    ("cautious", Persona::Cautious),
    ("planner", Persona::Planner),
    ("saboteur", Persona::Saboteur),
    ("curious", Persona::Curious),
    ("par", Persona::Par),
];

impl Persona {
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        NAMES.into_iter().find(|(other, _)| *other == name).map(|(_, persona)| persona)
    }

    pub(crate) fn name(self) -> &'static str {
        NAMES.into_iter().find(|(_, persona)| *persona == self).map_or("", |(name, _)| name)
    }
}
