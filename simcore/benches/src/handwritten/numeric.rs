//! Handwritten loop of the scenario `numeric`.

use super::{Draws, Scenario, choose, members, set_bit};

/// State: twelve numbers.
#[derive(Clone, Debug)]
pub struct Numeric {
    f: [f64; 12],
}

const WEIGHTS: [f64; 5] = [0.1, 0.15, 0.2, 0.25, 0.3];

impl Numeric {
    fn act(&mut self, value: impl FnOnce(u64) -> u64) {
        let f = &mut self.f;
        let legal = u32::from(f[0] > 2.0 && f[6] < 60.0)
            | u32::from(f[1] > 2.0 && f[7] < 60.0) << 1
            | u32::from(f[2] > 2.0 && f[8] < 60.0) << 2
            | u32::from(f[3] > 2.0 && f[9] < 60.0) << 3
            | u32::from(f[4] > 2.0 && f[10] < 60.0) << 4
            | u32::from(f[5] > 2.0 && f[11] < 60.0) << 5;
        if legal == 0 {
            return;
        }
        match set_bit(legal, choose(value(0), legal.count_ones().into())) {
            0 => exchange(f, 0),
            1 => exchange(f, 1),
            2 => exchange(f, 2),
            3 => exchange(f, 3),
            4 => exchange(f, 4),
            _ => exchange(f, 5),
        }
    }

    fn apply_event(&mut self, value: impl FnOnce() -> f64) {
        let f = &mut self.f;
        let eligible = [f[2] > 1.0, f[3] > 1.0, f[4] > 1.0, f[5] > 1.0, f[6] > 1.0];
        if eligible == [false; 5] {
            return;
        }
        // The sum of the weights is 1, so they need no scaling.
        let threshold = value();
        let mut cumulative = 0.0;
        for (index, weight) in WEIGHTS.iter().enumerate() {
            if eligible[index] {
                cumulative += weight;
                if threshold < cumulative {
                    match index {
                        0 => decay(f, 0, 2.0),
                        1 => decay(f, 1, 3.0),
                        2 => decay(f, 2, 4.0),
                        3 => decay(f, 3, 5.0),
                        _ => decay(f, 4, 6.0),
                    }
                    return;
                }
            }
        }
    }
}

#[inline]
fn exchange(f: &mut [f64; 12], index: usize) {
    f[index] -= 1.5;
    f[index + 1] += 1.0;
    f[index + 6] += 0.5;
}

#[inline]
fn decay(f: &mut [f64; 12], index: usize, amount: f64) {
    f[index] -= amount;
    f[index + 6] *= 0.95;
}

impl Scenario for Numeric {
    fn initial() -> Self {
        Self { f: [20.0, 21.0, 22.0, 23.0, 24.0, 25.0, 26.0, 27.0, 28.0, 29.0, 30.0, 31.0] }
    }

    fn turn(&mut self, turn: u64, draws: &Draws) -> Option<usize> {
        self.act(|index| draws.policy(turn, index));
        self.apply_event(|| draws.event(turn));
        self.f[3] -= 0.25;
        self.f[7] -= 0.5;
        self.f[..3].iter().position(|&field| field <= 0.0)
    }

    fn tree(&self) -> String {
        let (low, high) = self.f.split_at(6);
        format!(r#"{{"g0":{{{}}},"g1":{{{}}}}}"#, members(0, low), members(6, high))
    }
}
