//! Sets of texts as bits. An interval of text positions would be too imprecise.

use crate::ir::Plan;
use crate::ir::types::{Kind, Mutation, Scalar};

use super::interval::{Interval, Order};
use super::states::join_options;
use super::{Known, Unknown};

/// The positions of the texts that rules can write, among all texts of a scenario. The empty text is the
/// first.
#[derive(Debug)]
pub(super) struct Texts(Vec<f64>);

/// The bit of the empty text, which counts as false.
const EMPTY: u64 = 1;

impl Texts {
    /// Collect the texts of a plan, if there are at most 64.
    pub(super) fn collect(plan: &Plan) -> Known<Self> {
        let mut places = vec![0.0];
        let layout = &plan.layout;
        let is_text = |slot: usize| layout.slots.get(slot).is_some_and(|slot| slot.kind == Kind::Text);
        let of_texts = |list: usize| layout.lists.get(list).is_some_and(|list| list.element() == Kind::Text);
        places.extend(layout.slots.iter().filter(|slot| slot.kind == Kind::Text).map(|slot| slot.initial));
        places.extend(
            layout.lists.iter().filter(|list| list.element() == Kind::Text).flat_map(|list| &list.initial),
        );
        for deal in plan.start.deals.iter().filter(|deal| is_text(deal.slot)) {
            places.extend(&deal.values);
        }
        for param in plan.actions.iter().flat_map(|action| &action.params) {
            if param.kind == Kind::Text {
                let crate::ir::Domain::Options(options) = &param.domain else { return Err(Unknown) };
                places.extend(options);
            }
        }
        for mutation in plan.mutations() {
            match mutation {
                Mutation::Write { slot, value: Scalar::Constant(place), .. } if is_text(*slot) => {
                    places.push(*place);
                }
                Mutation::WriteItem { list, value: Scalar::Constant(place), .. }
                | Mutation::Push { list, value: Scalar::Constant(place) }
                    if of_texts(*list) =>
                {
                    places.push(*place);
                }
                Mutation::Assign { list, items } if of_texts(*list) => places.extend(items),
                _ => {}
            }
        }
        places.sort_by(f64::total_cmp);
        places.dedup();
        if places.len() <= 64 { Ok(Self(places)) } else { Err(Unknown) }
    }

    /// Convert a text whose position alone may be known.
    pub(super) fn text(&self, value: Interval) -> Known<Interval> {
        if value.texts != 0 {
            return Ok(value);
        }
        let bit = self.0.iter().position(|place| value.low == value.high && *place == value.low);
        bit.map(|bit| Interval::of_texts(1 << bit)).ok_or(Unknown)
    }

    /// Return True if a relation holds between some values of two sets of numbers or texts.
    pub(super) fn may_hold(&self, order: Order, one: Interval, other: Interval) -> Known<bool> {
        if one.texts | other.texts == 0 {
            return Ok(order.may_hold(one, other));
        }
        let others = self.places(other)?;
        Ok(self
            .places(one)?
            .iter()
            .any(|own| others.iter().any(|others_value| order.holds(*own, *others_value))))
    }

    /// Narrow a set to the values that have the relation to some value of another set.
    pub(super) fn narrow(&self, order: Order, value: Interval, other: Interval) -> Known<Option<Interval>> {
        if value.texts == 0 {
            return Ok(order.narrow(value, other));
        }
        let others = self.places(other)?;
        let narrowed = self
            .bits(value.texts)
            .filter(|(_, place)| others.iter().any(|other| order.holds(*place, *other)));
        let narrowed = narrowed.fold(0, |narrowed, (bit, _)| narrowed | bit);
        Ok((narrowed != 0).then_some(Interval::of_texts(narrowed)))
    }

    /// Join two optional sets.
    pub(super) fn join_options(
        &self,
        one: Option<Interval>,
        other: Option<Interval>,
    ) -> Known<Option<Interval>> {
        match (one, other) {
            (Some(one), Some(other)) if one.texts | other.texts != 0 => {
                Ok(Some(self.text(one)?.join(self.text(other)?)))
            }
            _ => Ok(join_options(one, other)),
        }
    }

    fn places(&self, value: Interval) -> Known<Vec<f64>> {
        if value.texts != 0 {
            return Ok(self.bits(value.texts).map(|(_, place)| place).collect());
        }
        if value.low == value.high { Ok(vec![value.low]) } else { Err(Unknown) }
    }

    fn bits(&self, texts: u64) -> impl Iterator<Item = (u64, f64)> {
        let bits = self.0.iter().enumerate().map(|(bit, place)| (1 << bit, *place));
        bits.filter(move |(bit, _)| texts & bit != 0)
    }
}

/// Return the true texts of a set.
pub(super) fn only_true(texts: u64) -> Option<Interval> {
    (texts & !EMPTY != 0).then_some(Interval::of_texts(texts & !EMPTY))
}

/// Return the false texts of a set.
pub(super) fn only_false(texts: u64) -> Option<Interval> {
    (texts & EMPTY != 0).then_some(Interval::of_texts(EMPTY))
}
