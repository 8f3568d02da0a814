//! Vector operations on 64 lanes: loops over fixed-size arrays that the compiler vectorises.
//!
//! Every function is inlined, so it is compiled for the instruction set of its caller.

use crate::effects::Due;
use crate::ir::types::{Operation, Relation};

/// Number of lanes.
pub(super) const LANES: usize = 64;

/// A number in each lane.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Column(pub(super) [f64; LANES]);

/// A boolean in each lane: all bits set, or none.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Mask(pub(super) [u64; LANES]);

/// A 64-bit integer in each lane.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Integers(pub(super) [u64; LANES]);

/// A number in each lane, or one number for all lanes.
#[derive(Clone, Copy)]
pub(super) enum Numbers<'a> {
    Each(&'a Column),
    All(f64),
}

/// The way a result is combined with a mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Combine {
    Set,
    And,
    Or,
}

#[inline(always)]
fn to_mask(holds: bool) -> u64 {
    0_u64.wrapping_sub(u64::from(holds))
}

/// Return the number if the mask is set, otherwise 0.
#[inline(always)]
fn masked_number(mask: u64, number: f64) -> f64 {
    f64::from_bits(number.to_bits() & mask)
}

/// Return the due turn of an entry that is scheduled in turn `now`.
#[inline(always)]
#[expect(clippy::cast_precision_loss, reason = "a count of turns")]
pub(super) fn turn_of(when: Due, now: f64) -> f64 {
    match when {
        Due::At(turn) => (turn as f64).max(now + 1.0),
        Due::After(turns) => now + turns as f64,
    }
}

#[inline(always)]
fn select(mask: u64, then: f64, otherwise: f64) -> f64 {
    f64::from_bits((then.to_bits() & mask) | (otherwise.to_bits() & !mask))
}

impl Column {
    pub(super) const ZERO: Self = Self([0.0; LANES]);

    #[inline(always)]
    pub(super) fn fill(&mut self, with: Numbers<'_>) {
        match with {
            Numbers::Each(numbers) => self.0 = numbers.0,
            Numbers::All(number) => self.0 = [number; LANES],
        }
    }

    #[inline(always)]
    fn update(&mut self, with: Numbers<'_>, work: impl Fn(f64, f64) -> f64) {
        match with {
            Numbers::Each(numbers) => {
                for (to, &number) in self.0.iter_mut().zip(&numbers.0) {
                    *to = work(*to, number);
                }
            }
            Numbers::All(number) => {
                for to in &mut self.0 {
                    *to = work(*to, number);
                }
            }
        }
    }

    #[inline(always)]
    fn update_where(&mut self, mask: &Mask, with: Numbers<'_>, work: impl Fn(f64, u64, f64) -> f64) {
        match with {
            Numbers::Each(numbers) => {
                for ((to, &mask), &number) in self.0.iter_mut().zip(&mask.0).zip(&numbers.0) {
                    *to = work(*to, mask, number);
                }
            }
            Numbers::All(number) => {
                for (to, &mask) in self.0.iter_mut().zip(&mask.0) {
                    *to = work(*to, mask, number);
                }
            }
        }
    }

    /// Apply the next operation of a calculation. The result is never −0.
    #[inline(always)]
    pub(super) fn apply(&mut self, operation: Operation, with: Numbers<'_>) {
        match operation {
            Operation::Add => self.update(with, |a, b| a + b),
            Operation::Subtract => self.update(with, |a, b| a - b),
            Operation::Multiply => self.update(with, |a, b| a * b + 0.0),
            Operation::Divide => self.update(with, |a, b| a / b + 0.0),
            Operation::Remainder => self.update(with, |a, b| a % b + 0.0),
            Operation::Least => self.update(with, |a, b| if b < a { b } else { a }),
            Operation::Greatest => self.update(with, |a, b| if b > a { b } else { a }),
        }
    }

    #[inline(always)]
    pub(super) fn negate(&mut self) {
        self.update(Numbers::All(0.0), |number, zero| zero - number);
    }

    #[inline(always)]
    pub(super) fn subtract(&mut self, number: f64) {
        self.update(Numbers::All(number), |a, b| a - b);
    }

    #[inline(always)]
    pub(super) fn set_where(&mut self, mask: &Mask, with: Numbers<'_>) {
        self.update_where(mask, with, |old, mask, new| select(mask, new, old));
    }

    // Adding 0 changes only −0, which is never stored.
    #[inline(always)]
    pub(super) fn add_where(&mut self, mask: &Mask, with: Numbers<'_>) {
        self.update_where(mask, with, |old, mask, amount| old + masked_number(mask, amount));
    }

    #[inline(always)]
    pub(super) fn subtract_where(&mut self, mask: &Mask, with: Numbers<'_>) {
        self.update_where(mask, with, |old, mask, amount| old - masked_number(mask, amount));
    }

    #[inline(always)]
    pub(super) fn multiply_where(&mut self, mask: &Mask, with: Numbers<'_>) {
        self.update_where(mask, with, |old, mask, factor| old * select(mask, factor, 1.0) + 0.0);
    }

    pub(super) fn get(&self, lane: usize) -> f64 {
        self.0.get(lane).copied().unwrap_or(0.0)
    }

    pub(super) fn set(&mut self, lane: usize, number: f64) {
        if let Some(to) = self.0.get_mut(lane) {
            *to = number;
        }
    }

    #[inline(always)]
    pub(super) fn least_where(&mut self, mask: &Mask, with: &Self) {
        self.update_where(mask, Numbers::Each(with), |old, mask, new| {
            let new = select(mask, new, f64::INFINITY);
            if new < old { new } else { old }
        });
    }

    /// Convert the current turn to a due turn.
    #[inline(always)]
    pub(super) fn delay(&mut self, when: Due) {
        for turn in &mut self.0 {
            *turn = turn_of(when, *turn);
        }
    }

    /// Set 1 in the lanes of the mask, otherwise 0.
    #[inline(always)]
    pub(super) fn truth(&mut self, mask: &Mask) {
        for (to, &mask) in self.0.iter_mut().zip(&mask.0) {
            *to = masked_number(mask, 1.0);
        }
    }
}

impl Mask {
    pub(super) const NONE: Self = Self([0; LANES]);

    #[inline(always)]
    fn combine(&mut self, combine: Combine, with: impl Iterator<Item = bool>) {
        let both = self.0.iter_mut().zip(with);
        match combine {
            Combine::Set => both.for_each(|(to, holds)| *to = to_mask(holds)),
            Combine::And => both.for_each(|(to, holds)| *to &= to_mask(holds)),
            Combine::Or => both.for_each(|(to, holds)| *to |= to_mask(holds)),
        }
    }

    #[inline(always)]
    pub(super) fn compare(&mut self, combine: Combine, relation: Relation, a: Numbers<'_>, b: Numbers<'_>) {
        match relation {
            Relation::Equal => self.compare_by(combine, a, b, |a, b| a == b),
            Relation::Unequal => self.compare_by(combine, a, b, |a, b| a != b),
            Relation::Less => self.compare_by(combine, a, b, |a, b| a < b),
            Relation::AtMost => self.compare_by(combine, a, b, |a, b| a <= b),
        }
    }

    #[inline(always)]
    fn compare_by(
        &mut self,
        combine: Combine,
        a: Numbers<'_>,
        b: Numbers<'_>,
        holds: impl Fn(f64, f64) -> bool,
    ) {
        match (a, b) {
            (Numbers::Each(a), Numbers::Each(b)) => {
                self.combine(combine, a.0.iter().zip(&b.0).map(|(&a, &b)| holds(a, b)));
            }
            (Numbers::Each(a), Numbers::All(b)) => self.combine(combine, a.0.iter().map(|&a| holds(a, b))),
            (Numbers::All(a), Numbers::Each(b)) => self.combine(combine, b.0.iter().map(|&b| holds(a, b))),
            (Numbers::All(a), Numbers::All(b)) => {
                let holds = holds(a, b);
                self.combine(combine, std::iter::repeat_n(holds, LANES));
            }
        }
    }

    #[inline(always)]
    pub(super) fn fill(&mut self, holds: bool) {
        self.0 = [to_mask(holds); LANES];
    }

    #[inline(always)]
    fn update(&mut self, with: &Self, work: impl Fn(u64, u64) -> u64) {
        for (to, &mask) in self.0.iter_mut().zip(&with.0) {
            *to = work(*to, mask);
        }
    }

    #[inline(always)]
    pub(super) fn and(&mut self, with: &Self) {
        self.update(with, |a, b| a & b);
    }

    #[inline(always)]
    pub(super) fn and_not(&mut self, with: &Self) {
        self.update(with, |a, b| a & !b);
    }

    #[inline(always)]
    pub(super) fn or(&mut self, with: &Self) {
        self.update(with, |a, b| a | b);
    }

    #[inline(always)]
    pub(super) fn set_to_and(&mut self, a: &Self, b: &Self) {
        for (to, (a, b)) in self.0.iter_mut().zip(a.0.iter().zip(&b.0)) {
            *to = a & b;
        }
    }

    #[inline(always)]
    pub(super) fn invert(&mut self) {
        for to in &mut self.0 {
            *to = !*to;
        }
    }

    /// Add the lanes of a mask with an infinite number.
    #[inline(always)]
    pub(super) fn add_infinite(&mut self, mask: &Self, column: &Column) {
        for ((to, &mask), &number) in self.0.iter_mut().zip(&mask.0).zip(&column.0) {
            *to |= mask & to_mask(!number.is_finite());
        }
    }

    /// Add the lanes of a mask with the number 0.
    #[inline(always)]
    pub(super) fn add_zero(&mut self, mask: &Self, numbers: Numbers<'_>) {
        match numbers {
            Numbers::Each(column) => {
                for ((to, &mask), &number) in self.0.iter_mut().zip(&mask.0).zip(&column.0) {
                    *to |= mask & to_mask(number == 0.0);
                }
            }
            Numbers::All(number) => {
                if number == 0.0 {
                    self.or(mask);
                }
            }
        }
    }

    /// Clear the lanes in which two columns are equal. Return those that were set.
    #[inline(always)]
    pub(super) fn take_where_equal(&mut self, a: &Column, b: &Column) -> Self {
        let mut removed = Self::NONE;
        removed.compare(Combine::Set, Relation::Equal, Numbers::Each(a), Numbers::Each(b));
        removed.and(self);
        self.and_not(&removed);
        removed
    }

    #[inline(always)]
    pub(super) fn any(&self) -> bool {
        self.0.iter().fold(0, |any, &mask| any | mask) != 0
    }

    #[inline(always)]
    pub(super) fn get(&self, lane: usize) -> bool {
        self.0.get(lane).is_some_and(|&mask| mask != 0)
    }

    #[inline(always)]
    pub(super) fn set(&mut self, lane: usize, holds: bool) {
        if let Some(to) = self.0.get_mut(lane) {
            *to = to_mask(holds);
        }
    }

    /// Iterate over the lanes that are set.
    pub(super) fn lanes(&self) -> impl Iterator<Item = usize> + use<> {
        let mut bits = self.0.iter().rev().fold(0_u64, |bits, &mask| (bits << 1) | (mask & 1));
        std::iter::from_fn(move || {
            let lane = bits.trailing_zeros() as usize;
            bits &= bits.wrapping_sub(1);
            (lane < LANES).then_some(lane)
        })
    }
}

impl Integers {
    pub(super) const ZERO: Self = Self([0; LANES]);

    #[inline(always)]
    pub(super) fn add(&mut self, number: u64) {
        for to in &mut self.0 {
            *to = to.wrapping_add(number);
        }
    }

    #[inline(always)]
    pub(super) fn add_where(&mut self, mask: &Mask, number: u64) {
        for (to, &mask) in self.0.iter_mut().zip(&mask.0) {
            *to = to.wrapping_add(mask & number);
        }
    }

    /// Add 1 in the lanes of the mask.
    #[inline(always)]
    pub(super) fn count(&mut self, mask: &Mask) {
        for (to, &mask) in self.0.iter_mut().zip(&mask.0) {
            *to = to.wrapping_sub(mask);
        }
    }

    /// Subtract 1 in the lanes of the mask. `at_zero` gets the masked lanes that were at 0.
    #[inline(always)]
    pub(super) fn count_down(&mut self, mask: &Mask, at_zero: &mut Mask) {
        for ((to, &mask), hit) in self.0.iter_mut().zip(&mask.0).zip(&mut at_zero.0) {
            *hit = mask & to_mask(*to == 0);
            *to = to.wrapping_add(mask);
        }
    }

    /// Return the lanes with a given number.
    #[inline(always)]
    pub(super) fn equals(&self, number: u64) -> Mask {
        let mut equal = Mask::NONE;
        for (to, &own) in equal.0.iter_mut().zip(&self.0) {
            *to = to_mask(own == number);
        }
        equal
    }

    pub(super) fn get(&self, lane: usize) -> u64 {
        self.0.get(lane).copied().unwrap_or(0)
    }

    pub(super) fn set(&mut self, lane: usize, number: u64) {
        if let Some(to) = self.0.get_mut(lane) {
            *to = number;
        }
    }

    #[inline(always)]
    pub(super) fn set_where(&mut self, mask: &Mask, number: u64) {
        for (to, &mask) in self.0.iter_mut().zip(&mask.0) {
            *to = (number & mask) | (*to & !mask);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(holds: impl Fn(usize) -> bool) -> Mask {
        let mut mask = Mask::NONE;
        (0..LANES).for_each(|lane| mask.set(lane, holds(lane)));
        mask
    }

    #[test]
    fn results_are_never_minus_zero() {
        let mut column = Column([-1.0; LANES]);
        column.multiply_where(&mask(|_| true), Numbers::All(0.0));
        column.negate();
        assert!(column.0.iter().all(|number| number.to_bits() == 0));
        column.apply(Operation::Divide, Numbers::All(-2.0));
        assert!(column.0.iter().all(|number| number.to_bits() == 0));
    }

    #[test]
    fn masked_out_lanes_are_unchanged() {
        let even = mask(|lane| lane % 2 == 0);
        let mut column = Column([3.0; LANES]);
        column.multiply_where(&even, Numbers::All(2.0));
        column.subtract_where(&even, Numbers::All(1.0));
        column.set_where(&mask(|lane| lane == 1), Numbers::All(f64::INFINITY));
        assert_eq!(column.0[..4], [5.0, f64::INFINITY, 5.0, 3.0]);
        let mut exceptional = Mask::NONE;
        exceptional.add_infinite(&even, &column);
        assert!(!exceptional.any());
    }

    #[test]
    fn lanes_are_iterated_in_order() {
        let some = mask(|lane| [0, 5, 63].contains(&lane));
        assert_eq!(some.lanes().collect::<Vec<_>>(), [0, 5, 63]);
        assert_eq!(Mask::NONE.lanes().count(), 0);
    }

    #[test]
    fn counting_down_selects_one_of_several() {
        let legal = [mask(|_| true), mask(|lane| lane % 2 == 0), mask(|_| true)];
        let mut left = Integers([1; LANES]);
        let hits = legal.map(|legal| {
            let mut hit = Mask::NONE;
            left.count_down(&legal, &mut hit);
            hit
        });
        assert_eq!(hits.each_ref().map(|hit| hit.get(0)), [false, true, false]);
        assert_eq!(hits.each_ref().map(|hit| hit.get(1)), [false, false, true]);
    }
}
