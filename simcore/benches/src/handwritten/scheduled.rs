//! Handwritten loop of the scenario `scheduled`.

use super::{Draws, Scenario, choose, members, set_bit};

/// State: twelve numbers, scheduled entries, and lasting events.
#[derive(Clone, Debug)]
pub struct Scheduled {
    f: [f64; 12],
    /// The turn in which the entry of each action is due; 0 if not scheduled.
    later: [u64; 5],
    /// True if the first entry is the one of the last action, which has the same id.
    last: bool,
    /// The turn in which the effects that an entry scheduled are due; 0 if not scheduled.
    again: u64,
    /// The last turn of each event.
    until: [u64; 5],
}

const WEIGHTS: [f64; 5] = [0.1, 0.15, 0.2, 0.25, 0.3];
/// Turns between an action and its entry.
const AFTER: [u64; 6] = [1, 2, 3, 4, 1, 2];

impl Scheduled {
    /// Apply the due entries.
    ///
    /// Only `again` and the entry of action 4 write the same number. If both are due in one turn, `again` was
    /// scheduled first.
    fn open(&mut self, turn: u64) {
        if self.again == turn {
            self.f[4] *= 0.9;
            self.again = 0;
        }
        for id in 0..5 {
            if self.later[id] == turn {
                self.later[id] = 0;
                let index = if id == 0 && self.last { 5 } else { id };
                self.f[index] += 1.0;
                self.f[index + 6] -= 0.5;
                if index == 2 {
                    self.again = turn + 2;
                }
            }
        }
    }

    fn act(&mut self, turn: u64, draw: impl FnOnce() -> u64) {
        let legal = (0..6).fold(0, |legal, index| legal | u32::from(self.f[index] > 2.0) << index);
        if legal == 0 {
            return;
        }
        let index = set_bit(legal, choose(draw(), legal.count_ones().into())) as usize;
        if let (Some(field), Some(after)) = (self.f.get_mut(index), AFTER.get(index)) {
            *field -= 1.5;
            let id = if index == 5 { 0 } else { index };
            self.later[id] = turn + after;
            if id == 0 {
                self.last = index == 5;
            }
        }
    }

    fn apply_event(&mut self, turn: u64, draw: impl FnOnce() -> f64) {
        let lasting = self.until.map(|until| until >= turn);
        let eligible: [bool; 5] = std::array::from_fn(|index| !lasting[index] && self.f[index + 2] > 1.0);
        if eligible != [false; 5] {
            let threshold = draw();
            let mut cumulative = 0.0;
            for index in 0..5 {
                if eligible[index] {
                    cumulative += WEIGHTS[index];
                    if threshold < cumulative {
                        self.decay(index);
                        self.until[index] = turn + index as u64;
                        break;
                    }
                }
            }
        }
        // Each event writes its own numbers, so their order does not matter.
        for (index, lasts) in lasting.into_iter().enumerate() {
            if lasts {
                self.decay(index);
            }
        }
    }

    fn decay(&mut self, index: usize) {
        self.f[index] -= [2.0, 3.0, 4.0, 5.0, 6.0][index];
        self.f[index + 6] *= 0.95;
    }
}

impl Scenario for Scheduled {
    fn initial() -> Self {
        Self {
            f: [20.0, 21.0, 22.0, 23.0, 24.0, 25.0, 26.0, 27.0, 28.0, 29.0, 30.0, 31.0],
            later: [0; 5],
            last: false,
            again: 0,
            until: [0; 5],
        }
    }

    fn turn(&mut self, turn: u64, draws: &Draws) -> Option<usize> {
        self.open(turn);
        self.act(turn, || draws.policy(turn, 0));
        self.apply_event(turn, || draws.event(turn));
        self.f[3] -= 0.25;
        self.f[7] -= 0.5;
        self.f[..3].iter().position(|&field| field <= 0.0)
    }

    fn tree(&self) -> String {
        let (low, high) = self.f.split_at(6);
        format!(r#"{{"g0":{{{}}},"g1":{{{}}}}}"#, members(0, low), members(6, high))
    }
}
