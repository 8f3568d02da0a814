//! Counters for statistics of each lane, until its run turns out to be ordinary.

use crate::dry_run::statistics::{Statistics, WatchedPath};
use crate::ir::{Plan, Spot};

use super::registers::Registers;
use super::vectors::{Column, Integers, Mask};

/// Counters of the runs in progress, and the watched numbers.
#[derive(Debug)]
pub(super) struct Counters<'a> {
    /// For each action, the turns in which it was legal, and those in which it was chosen.
    legal: Vec<Integers>,
    taken: Vec<Integers>,
    /// For each event, the number of its draws.
    drawn: Vec<Integers>,
    watched: Vec<WatchedNumber<'a>>,
}

/// A watched number and its location, if it exists.
#[derive(Debug)]
struct WatchedNumber<'a> {
    watched: &'a WatchedPath,
    /// Its location and its initial value.
    from: Option<(Spot, f64)>,
    /// The initial value in each lane, if it differs between runs.
    dealt: Option<Box<Column>>,
}

impl<'a> Counters<'a> {
    pub(super) fn new(plan: &Plan, watched: &'a [WatchedPath]) -> Self {
        let columns = |number| vec![Integers::ZERO; number];
        let watched_number = |watched: &'a WatchedPath| {
            let from = plan.layout.number(watched.path());
            let is_dealt = |slot| plan.start.deals.iter().any(|deal| deal.slot == slot);
            let dealt = matches!(from, Some((Spot::Slot(slot), _)) if is_dealt(slot));
            WatchedNumber { watched, from, dealt: dealt.then(|| Box::new(Column::ZERO)) }
        };
        Self {
            legal: columns(plan.actions.len()),
            taken: columns(plan.actions.len()),
            drawn: columns(plan.events.len()),
            watched: watched.iter().map(watched_number).collect(),
        }
    }

    #[inline(always)]
    pub(super) fn count_legal(&mut self, action: usize, mask: &Mask) {
        count(&mut self.legal, action, mask);
    }

    #[inline(always)]
    pub(super) fn count_chosen(&mut self, action: usize, mask: &Mask) {
        count(&mut self.taken, action, mask);
    }

    #[inline(always)]
    pub(super) fn count_drawn(&mut self, event: usize, mask: &Mask) {
        count(&mut self.drawn, event, mask);
    }

    /// Reset the counters of a lane whose run starts.
    pub(super) fn start(&mut self, registers: &Registers, lane: usize) {
        for WatchedNumber { from, dealt, .. } in &mut self.watched {
            if let (Some(dealt), Some((Spot::Slot(slot), _))) = (dealt, *from) {
                dealt.set(lane, registers.number(slot, lane));
            }
        }
        for counts in self.legal.iter_mut().chain(&mut self.taken).chain(&mut self.drawn) {
            counts.set(lane, 0);
        }
    }

    /// Add the counters of a lane whose ordinary run has ended.
    pub(super) fn add_to(&self, detail: &mut Statistics, registers: &Registers, lane: usize) {
        add(&mut detail.legal, &self.legal, lane);
        add(&mut detail.taken, &self.taken, lane);
        add(&mut detail.drawn, &self.drawn, lane);
        for (moved, WatchedNumber { watched, from, dealt }) in detail.moves.iter_mut().zip(&self.watched) {
            if let Some((spot, first)) = *from
                && let Some(last) = last(spot, registers, lane)
            {
                let first = dealt.as_ref().map_or(first, |dealt| dealt.get(lane));
                *moved += watched.movement(first, last);
            }
        }
    }
}

#[inline(always)]
fn count(counts: &mut [Integers], index: usize, mask: &Mask) {
    if let Some(counts) = counts.get_mut(index) {
        counts.count(mask);
    }
}

fn add(to: &mut [u64], counts: &[Integers], lane: usize) {
    to.iter_mut().zip(counts).for_each(|(to, counts)| *to += counts.get(lane));
}

fn last(spot: Spot, registers: &Registers, lane: usize) -> Option<f64> {
    match spot {
        Spot::Slot(column) => Some(registers.number(column, lane)),
        Spot::Item(list, index) => registers.list(list).elements(lane).nth(index),
    }
}
