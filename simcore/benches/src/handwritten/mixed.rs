//! Handwritten loop of the scenario `mixed`.

use super::{Draws, Scenario, choose, members, set_bit};

/// State: numbers, two arrays, and a text with two values.
#[derive(Clone, Debug)]
pub struct Mixed {
    level: [f64; 6],
    items: Vec<Item>,
    samples: Vec<f64>,
    high: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Item {
    X,
    Y,
    Z,
}

/// Actions in the order of the document.
const SHIFT: u32 = 0;
const TAKE: u32 = 1;
const DROP: u32 = 2;
const SPEND: u32 = 3;
const RAISE: u32 = 4;
const SAMPLE: u32 = 5;

/// Draws of the parameters before an action counts as illegal.
const TRIES: u64 = 8;
const MOST_ITEMS: usize = 6;

impl Mixed {
    fn act(&mut self, draw: impl Fn(u64) -> u64) {
        let holds_z = self.items.contains(&Item::Z);
        let mut legal = u32::from(self.level[0] > 2.0 && self.level[3] < 60.0) << SHIFT
            | u32::from(!holds_z && self.items.len() < MOST_ITEMS) << TAKE
            | u32::from(holds_z) << DROP
            | u32::from(!self.high) << RAISE
            | u32::from(self.samples.iter().sum::<f64>() < 30.0) << SAMPLE;
        let mut index = 0;
        let mut amount = 0.0;
        while index < TRIES {
            amount = [1.0, 2.0, 3.0][usize::try_from(choose(draw(index), 3)).unwrap_or(0)];
            index += 1;
            if self.level[2] > amount {
                legal |= 1 << SPEND;
                break;
            }
        }
        if legal == 0 {
            return;
        }
        match set_bit(legal, choose(draw(index), legal.count_ones().into())) {
            SHIFT => {
                self.level[0] -= 1.0;
                self.level[1] += 1.0;
                self.level[3] += 0.5;
            }
            TAKE => {
                self.items.push(Item::Z);
                self.level[1] -= 1.0;
            }
            DROP => {
                self.items.pop();
                self.level[0] += 0.5;
            }
            SPEND => {
                self.level[2] -= amount * 0.75;
                self.level[4] += 1.0;
            }
            RAISE => {
                self.high = true;
                self.level[5] += 2.0;
            }
            _ => {
                self.samples.push(4.0);
                self.level[3] -= 0.25;
            }
        }
    }

    fn apply_event(&mut self, draw: impl FnOnce() -> f64) {
        let eligible = [
            (self.high, 0.2),
            (self.samples.iter().any(|&sample| sample > 3.0), 0.15),
            (self.level[0] > 1.0, 0.3),
            (self.items.contains(&Item::X) && self.items.len() < MOST_ITEMS, 0.1),
        ];
        if eligible.iter().all(|(holds, _)| !holds) {
            return;
        }
        let threshold = draw();
        let mut cumulative = 0.0;
        for (index, (holds, weight)) in eligible.into_iter().enumerate() {
            if holds {
                cumulative += weight;
                if threshold < cumulative {
                    self.event(index);
                    return;
                }
            }
        }
    }

    fn event(&mut self, index: usize) {
        match index {
            0 => {
                self.high = false;
                self.level[5] -= 3.0;
            }
            1 => {
                self.samples.pop();
                self.level[4] -= 2.0;
            }
            2 => {
                self.level[0] -= 1.25;
                self.level[1] *= 0.95;
            }
            _ => {
                self.items.push(Item::Y);
                self.level[2] += 1.5;
            }
        }
    }
}

impl Scenario for Mixed {
    fn initial() -> Self {
        let mut items = Vec::with_capacity(MOST_ITEMS);
        items.extend([Item::X, Item::Y]);
        let mut samples = Vec::with_capacity(16);
        samples.extend([1.0, 2.0, 3.0]);
        Self { level: [20.0, 21.0, 22.0, 23.0, 24.0, 25.0], items, samples, high: false }
    }

    fn turn(&mut self, turn: u64, draws: &Draws) -> Option<usize> {
        self.act(|index| draws.policy(turn, index));
        self.apply_event(|| draws.event(turn));
        self.level[1] -= 0.25;
        self.level[4] -= 0.5;
        [self.level[0] <= 0.0, self.level[2] <= 2.0, self.high && self.level[4] < 5.0]
            .into_iter()
            .position(|holds| holds)
    }

    fn tree(&self) -> String {
        let items: Vec<_> = self.items.iter().map(|item| item.name()).collect();
        let (level, samples) = (members(0, &self.level), &self.samples);
        let mode = if self.high { "high" } else { "low" };
        format!(r#"{{"items":{items:?},"level":{{{level}}},"mode":"{mode}","samples":{samples:?}}}"#)
    }
}

impl Item {
    fn name(self) -> &'static str {
        match self {
            Self::X => "x",
            Self::Y => "y",
            Self::Z => "z",
        }
    }
}
