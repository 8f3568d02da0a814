//! Mutations of a single lane, for effects that cannot be vectorised.

use crate::ir::Plan;
use crate::ir::types::{Consequence, Mutation, Scalar, Write};

use super::registers::Registers;
use super::single_run::{SingleRun, finite};

/// Apply a consequence in one lane. Return `None` if the run is exceptional.
pub(super) fn apply_consequence(
    plan: &Plan,
    registers: &mut Registers,
    lane: usize,
    consequence: &Consequence,
) -> Option<()> {
    for (column, value) in &consequence.derives {
        let value = SingleRun::new(plan, registers, lane).value(value)?;
        registers.set_number(*column, lane, value);
    }
    consequence.mutations.iter().try_for_each(|mutation| apply_mutation(plan, registers, lane, mutation))
}

/// Apply a mutation in one lane. Return `None` if the run is exceptional.
pub(super) fn apply_mutation(
    plan: &Plan,
    registers: &mut Registers,
    lane: usize,
    mutation: &Mutation,
) -> Option<()> {
    let value_of = |registers: &Registers, value: &Scalar| SingleRun::new(plan, registers, lane).value(value);
    match mutation {
        Mutation::Write { slot, write, value } => {
            let value = value_of(registers, value)?;
            let old = registers.number(*slot, lane);
            registers.set_number(*slot, lane, write_value(*write, old, value)?);
        }
        Mutation::WriteItem { list, index, write, value } => {
            let value = value_of(registers, value)?;
            let item = registers.list_mut(*list).item_mut(lane, *index)?;
            *item = write_value(*write, *item, value)?;
        }
        Mutation::Push { list, value } => {
            let value = value_of(registers, value)?;
            let length = registers.list_mut(*list).push(lane, value);
            (length <= plan.most_elements).then_some(())?;
        }
        Mutation::Pop { list } => {
            registers.list_mut(*list).pop(lane)?;
        }
        Mutation::Assign { list, items } => {
            registers.list_mut(*list).assign(lane, items);
            (items.len() <= plan.most_elements).then_some(())?;
        }
        Mutation::Schedule { site } => registers.schedule_in(plan, lane, *site)?,
    }
    Some(())
}

fn write_value(write: Write, old: f64, value: f64) -> Option<f64> {
    finite(match write {
        Write::Set => value,
        Write::Add => old + value,
        Write::Subtract => old - value,
        Write::Multiply => old * value,
    })
}
