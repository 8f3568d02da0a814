//! Who plays a dry-run, and what the numbers are by which the personas that look ahead decide.

use std::sync::LazyLock;

use crate::rng::stream_key;

/// The value of a run that is lost, or that its limits ended.
pub(crate) const LOST: f64 = -2.0;
/// The value of a run that is won.
const WON: f64 = 2.0;

/// How often the planner plays on from each candidate.
pub(crate) const ROLLOUTS: u64 = 4;
/// How many turns it plays then, that of the candidate among them.
pub(crate) const ROLLOUT_TURNS: u64 = 8;

/// The value of a run that is lost in a turn of a rollout, from 1: the later, the better.
#[expect(clippy::cast_precision_loss, reason = "few turns")]
pub(crate) fn lost_in(turn: u64) -> f64 {
    LOST + (turn as f64 - 1.0) / ROLLOUT_TURNS as f64
}

/// The value of a run that is won in a turn of a rollout: the sooner, the better.
#[expect(clippy::cast_precision_loss, reason = "few turns")]
pub(crate) fn won_in(turn: u64) -> f64 {
    WON + (ROLLOUT_TURNS as f64 - turn as f64) / ROLLOUT_TURNS as f64
}

/// The stream that the seeds of rollouts are drawn from.
pub(crate) static ROLLOUT_KEY: LazyLock<u64> = LazyLock::new(|| stream_key("rollout"));

/// Who acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Persona {
    /// Takes no action at all.
    Idle,
    /// Takes one of the legal actions at random.
    Random,
    /// Takes what is best right after it.
    Greedy,
    /// Takes what is best if the worst event follows.
    Cautious,
    /// Takes what is best after some turns at random.
    Planner,
    /// Takes what is worst right after it.
    Saboteur,
}

const NAMES: [(&str, Persona); 6] = [
    ("idle", Persona::Idle),
    ("random", Persona::Random),
    ("greedy", Persona::Greedy),
    ("cautious", Persona::Cautious),
    ("planner", Persona::Planner),
    ("saboteur", Persona::Saboteur),
];

impl Persona {
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        NAMES.into_iter().find(|(other, _)| *other == name).map(|(_, persona)| persona)
    }

    pub(crate) fn name(self) -> &'static str {
        NAMES.into_iter().find(|(_, persona)| *persona == self).map_or("", |(name, _)| name)
    }
}
