//! Interval arithmetic. The operations are monotone in their operands, so outward rounding is unnecessary.

use crate::ir::types::Relation;

use super::{Known, Unknown, texts};

/// A number beyond this limit counts as unbounded, as in the reference.
const LARGE: f64 = 1e15;
/// Integers below this limit have integer neighbours.
const MOST_EXACT: f64 = 9_007_199_254_740_992.0;

/// All numbers from `low` to `high`, or all integers among them. Booleans are 0 and 1. Alternatively a set of
/// texts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Interval {
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) whole: bool,
    /// A set of texts as bits (see `texts`). If it is not empty, the other fields are undefined. It is empty
    /// for numbers, and for a literal text, of which only the position is known.
    pub(super) texts: u64,
}

impl Interval {
    pub(super) fn new(low: f64, high: f64, whole: bool) -> Self {
        Self { low, high, whole, texts: 0 }
    }

    pub(super) fn of_texts(texts: u64) -> Self {
        Self { low: 0.0, high: 0.0, whole: true, texts }
    }

    pub(super) fn exact(number: f64) -> Self {
        Self::new(number, number, number.fract() == 0.0)
    }

    pub(super) fn truth(may_hold: bool, may_not: bool) -> Self {
        Self::new(f64::from(u8::from(!may_not)), f64::from(u8::from(may_hold)), true)
    }

    pub(super) fn join(self, other: Self) -> Self {
        Self {
            low: self.low.min(other.low),
            high: self.high.max(other.high),
            whole: self.whole && other.whole,
            texts: self.texts | other.texts,
        }
    }

    fn is_only(self, number: f64) -> bool {
        self.low == number && self.high == number
    }

    fn may_be_false(self) -> bool {
        self.low <= 0.0 && self.high >= 0.0
    }

    /// Return the true values, or `None` without any.
    pub(super) fn only_true(self) -> Option<Self> {
        if self.texts != 0 {
            return texts::only_true(self.texts);
        }
        let step = if self.whole { 1.0 } else { f64::from_bits(1) };
        let low = if self.low == 0.0 { step } else { self.low };
        let high = if self.high == 0.0 { -step } else { self.high };
        (low <= high).then_some(Self::new(low, high, self.whole))
    }

    /// Return the false values, or `None` without any.
    pub(super) fn only_false(self) -> Option<Self> {
        if self.texts != 0 {
            return texts::only_false(self.texts);
        }
        self.may_be_false().then_some(Self::exact(0.0))
    }

    /// Return the interval if it is bounded.
    pub(super) fn check_bounded(self) -> Known<Self> {
        if self.low >= -LARGE && self.high <= LARGE { Ok(self) } else { Err(Unknown) }
    }

    pub(super) fn sum(self, other: Self) -> Known<Self> {
        finite(self.low + other.low, self.high + other.high, self.whole && other.whole)
    }

    pub(super) fn difference(self, other: Self) -> Known<Self> {
        finite(self.low - other.high, self.high - other.low, self.whole && other.whole)
    }

    pub(super) fn product(self, other: Self) -> Known<Self> {
        let corners =
            [self.low * other.low, self.low * other.high, self.high * other.low, self.high * other.high];
        span(corners, self.whole && other.whole)
    }

    pub(super) fn quotient(self, other: Self) -> Known<Self> {
        if other.may_be_false() {
            return Err(Unknown);
        }
        let corners =
            [self.low / other.low, self.low / other.high, self.high / other.low, self.high / other.high];
        span(corners, false)
    }

    pub(super) fn remainder(self, other: Self) -> Known<Self> {
        if other.may_be_false() {
            return Err(Unknown);
        }
        if self.low == self.high && other.low == other.high {
            return Ok(Self::exact(self.low % other.low + 0.0));
        }
        let most = other.high.max(-other.low);
        let (low, high) = (self.low.min(0.0).max(-most), self.high.max(0.0).min(most));
        Ok(Self::new(low, high, self.whole && other.whole))
    }

    pub(super) fn least(self, other: Self) -> Self {
        Self::new(self.low.min(other.low), self.high.min(other.high), self.whole && other.whole)
    }

    pub(super) fn greatest(self, other: Self) -> Self {
        Self::new(self.low.max(other.low), self.high.max(other.high), self.whole && other.whole)
    }
}

fn span(corners: [f64; 4], whole: bool) -> Known<Interval> {
    let low = corners.into_iter().fold(f64::INFINITY, f64::min);
    let high = corners.into_iter().fold(f64::NEG_INFINITY, f64::max);
    finite(low, high, whole)
}

fn finite(low: f64, high: f64, whole: bool) -> Known<Interval> {
    if low.is_finite() && high.is_finite() { Ok(Interval::new(low, high, whole)) } else { Err(Unknown) }
}

/// An order relation between two values, in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Less,
    AtMost,
    More,
    AtLeast,
    Same,
    Other,
}

impl Order {
    /// Return the relation, or its negation.
    pub(super) fn from_relation(relation: Relation, holds: bool) -> Self {
        match (relation, holds) {
            (Relation::Less, true) => Self::Less,
            (Relation::Less, false) => Self::AtLeast,
            (Relation::AtMost, true) => Self::AtMost,
            (Relation::AtMost, false) => Self::More,
            (Relation::Equal, true) | (Relation::Unequal, false) => Self::Same,
            (Relation::Equal, false) | (Relation::Unequal, true) => Self::Other,
        }
    }

    /// Return the relation with exchanged operands.
    pub(super) fn flip(self) -> Self {
        match self {
            Self::Less => Self::More,
            Self::AtMost => Self::AtLeast,
            Self::More => Self::Less,
            Self::AtLeast => Self::AtMost,
            Self::Same | Self::Other => self,
        }
    }

    /// Return True if it holds between two numbers.
    pub(super) fn holds(self, one: f64, other: f64) -> bool {
        match self {
            Self::Less => one < other,
            Self::AtMost => one <= other,
            Self::More => one > other,
            Self::AtLeast => one >= other,
            Self::Same => one == other,
            Self::Other => one != other,
        }
    }

    /// Return True if it holds between some two numbers of two intervals.
    pub(super) fn may_hold(self, one: Interval, other: Interval) -> bool {
        match self {
            Self::Less => one.low < other.high,
            Self::AtMost => one.low <= other.high,
            Self::More => one.high > other.low,
            Self::AtLeast => one.high >= other.low,
            Self::Same => one.low.max(other.low) <= one.high.min(other.high),
            Self::Other => !(one.is_only(one.low) && other.is_only(one.low)),
        }
    }

    /// Narrow an interval to the numbers that have the relation to some number of another.
    pub(super) fn narrow(self, value: Interval, other: Interval) -> Option<Interval> {
        let Interval { mut low, mut high, whole, .. } = value;
        if matches!(self, Self::AtMost | Self::Same) {
            high = high.min(other.high);
        }
        if matches!(self, Self::AtLeast | Self::Same) {
            low = low.max(other.low);
        }
        if self == Self::Less && other.high <= high {
            high = below(other.high, whole);
        }
        if self == Self::More && other.low >= low {
            low = above(other.low, whole);
        }
        if self == Self::Other && other.low == other.high {
            low = if low == other.low { above(low, whole) } else { low };
            high = if high == other.high { below(high, whole) } else { high };
        }
        if whole && low > -MOST_EXACT && high < MOST_EXACT && low <= high {
            (low, high) = (low.ceil(), high.floor());
        }
        (low <= high).then_some(Interval::new(low, high, whole))
    }
}

/// Return the greatest number less than a bound.
fn below(bound: f64, whole: bool) -> f64 {
    if whole && bound.abs() < MOST_EXACT { bound.ceil() - 1.0 } else { bound.next_down() }
}

fn above(bound: f64, whole: bool) -> f64 {
    -below(-bound, whole)
}
