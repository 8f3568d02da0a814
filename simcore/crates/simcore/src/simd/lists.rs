//! Arrays of 64 lanes: each index is a column, and the lengths are a column.

use super::vectors::{Column, Mask, Numbers};

/// An array of the state with a length in each lane.
#[derive(Debug)]
pub(super) struct List {
    length: Column,
    /// The elements at each index. They are valid if the array is long enough.
    items: Vec<Column>,
}

impl List {
    pub(super) fn new() -> Self {
        Self { length: Column::ZERO, items: Vec::new() }
    }

    #[inline(always)]
    pub(super) fn length(&self) -> &Column {
        &self.length
    }

    /// Return the elements at an index.
    #[inline(always)]
    pub(super) fn items(&self, index: usize) -> Option<&Column> {
        self.items.get(index)
    }

    /// Return the length in one lane.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a length")]
    pub(super) fn len(&self, lane: usize) -> usize {
        self.length.get(lane) as usize
    }

    /// Iterate over the elements in one lane.
    pub(super) fn elements(&self, lane: usize) -> impl Iterator<Item = f64> {
        self.items.iter().take(self.len(lane)).map(move |column| column.get(lane))
    }

    pub(super) fn item_mut(&mut self, lane: usize, index: usize) -> Option<&mut f64> {
        if index < self.len(lane) { self.items.get_mut(index)?.0.get_mut(lane) } else { None }
    }

    /// Append an element in one lane. Return the new length.
    pub(super) fn push(&mut self, lane: usize, element: f64) -> usize {
        let index = self.len(lane);
        if index == self.items.len() {
            self.items.push(Column::ZERO);
        }
        if let Some(column) = self.items.get_mut(index) {
            column.set(lane, element);
        }
        self.length.set(lane, self.length.get(lane) + 1.0);
        index + 1
    }

    /// Remove the last element in one lane, or return `None` if the array is empty.
    pub(super) fn pop(&mut self, lane: usize) -> Option<()> {
        let length = self.length.get(lane);
        (length > 0.0).then(|| self.length.set(lane, length - 1.0))
    }

    /// Remove the last element in the lanes of the mask. The length becomes negative if the array was empty.
    #[inline(always)]
    pub(super) fn pop_where(&mut self, mask: &Mask) {
        self.length.subtract_where(mask, Numbers::All(1.0));
    }

    pub(super) fn assign(&mut self, lane: usize, elements: &[f64]) {
        self.length.set(lane, 0.0);
        for element in elements {
            self.push(lane, *element);
        }
    }

    /// Copy another array.
    #[inline(always)]
    pub(super) fn copy_from(&mut self, other: &Self) {
        self.length.clone_from(&other.length);
        self.items.clone_from(&other.items);
    }

    /// Return the length of the longest array.
    #[inline(always)]
    pub(super) fn longest(&self) -> usize {
        self.items.len()
    }
}

/// Narrow a mask to the lanes whose array is longer than an index.
#[inline(always)]
#[expect(clippy::cast_precision_loss, reason = "an index")]
pub(super) fn narrow_to_longer(lengths: &Column, index: usize, to: &mut Mask) {
    let index = index as f64;
    for (to, length) in to.0.iter_mut().zip(&lengths.0) {
        *to &= 0_u64.wrapping_sub(u64::from(*length > index));
    }
}
