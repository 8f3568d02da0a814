//! Abstract states: the possible values of each column and of each array.

use super::interval::Interval;
use crate::ir::Layout;

/// Arrays with a range of lengths, whose elements are within an interval. `None` if they have no elements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct List {
    pub(super) least: usize,
    pub(super) most: usize,
    pub(super) element: Option<Interval>,
}

/// A set of states: the values that expressions may read.
#[derive(Clone, Debug, Default)]
pub(super) struct States {
    pub(super) columns: Vec<Interval>,
    pub(super) lists: Vec<List>,
    /// The current element of an iteration, and the accumulator of a fold.
    pub(super) element: Interval,
    pub(super) accumulator: Interval,
}

const ZERO: Interval = Interval { low: 0.0, high: 0.0, whole: true, texts: 0 };

impl List {
    pub(super) fn from_items(items: &[f64]) -> Self {
        let element = items.iter().map(|item| Interval::exact(*item)).reduce(Interval::join);
        Self { least: items.len(), most: items.len(), element }
    }

    /// Return the possible numbers of elements.
    #[expect(clippy::cast_precision_loss, reason = "an array has fewer elements than 2^53")]
    pub(super) fn length(self) -> Interval {
        Interval::new(self.least as f64, self.most as f64, true)
    }

    /// Narrow to arrays with some of the possible lengths.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "within the interval of `length`"
    )]
    pub(super) fn of_length(self, length: Interval) -> Self {
        Self { least: length.low as usize, most: length.high as usize, element: self.element }
    }

    fn join(self, other: Self) -> Self {
        Self {
            least: self.least.min(other.least),
            most: self.most.max(other.most),
            element: join_options(self.element, other.element),
        }
    }
}

/// Join two optional intervals.
pub(super) fn join_options(one: Option<Interval>, other: Option<Interval>) -> Option<Interval> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.join(other)),
        (one, other) => one.or(other),
    }
}

impl States {
    /// Create the set with the initial state only.
    pub(super) fn initial(layout: &Layout, columns: usize) -> Self {
        let mut initial: Vec<Interval> =
            layout.slots.iter().map(|slot| Interval::exact(slot.initial)).collect();
        initial.resize(columns, ZERO);
        let lists = layout.lists.iter().map(|list| List::from_items(&list.initial)).collect();
        Self { columns: initial, lists, element: ZERO, accumulator: ZERO }
    }

    pub(super) fn column(&self, column: usize) -> Interval {
        self.columns.get(column).copied().unwrap_or(ZERO)
    }

    pub(super) fn put(&mut self, column: usize, value: Interval) {
        if let Some(place) = self.columns.get_mut(column) {
            *place = value;
        }
    }

    pub(super) fn list(&self, list: usize) -> List {
        self.lists.get(list).copied().unwrap_or(List { least: 0, most: 0, element: None })
    }

    pub(super) fn put_list(&mut self, list: usize, value: List) {
        if let Some(place) = self.lists.get_mut(list) {
            *place = value;
        }
    }

    /// Join other states. Only the first `slots` columns, the slots of the state, are joined.
    pub(super) fn join(&mut self, other: &Self, slots: usize) {
        for (own, new) in self.columns.iter_mut().zip(&other.columns).take(slots) {
            *own = own.join(*new);
        }
        for (own, new) in self.lists.iter_mut().zip(&other.lists) {
            *own = own.join(*new);
        }
    }
}
