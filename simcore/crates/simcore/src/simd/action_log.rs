//! What effects do to a single run: where all of them at once will not do.

use crate::ir::Plan;
use crate::ir::types::{Consequence, Deed, Scalar, Write};

use super::registers::Registers;
use super::single_run::{Place, finite};

/// Carry out a rule in one run. `None` when the run is not for this executor.
pub(super) fn consequence(
    plan: &Plan,
    registers: &mut Registers,
    lane: usize,
    consequence: &Consequence,
) -> Option<()> {
    for (column, value) in &consequence.derives {
        let value = Place::new(plan, registers, lane).value(value)?;
        registers.set_number(*column, lane, value);
    }
    consequence.deeds.iter().try_for_each(|deed| one(plan, registers, lane, deed))
}

/// Carry out a deed in one run.
pub(super) fn one(plan: &Plan, registers: &mut Registers, lane: usize, deed: &Deed) -> Option<()> {
    let value_of = |registers: &Registers, value: &Scalar| Place::new(plan, registers, lane).value(value);
    match deed {
        Deed::Write { slot, write, value } => {
            let value = value_of(registers, value)?;
            let old = registers.number(*slot, lane);
            registers.set_number(*slot, lane, written(*write, old, value)?);
        }
        Deed::WriteItem { list, index, write, value } => {
            let value = value_of(registers, value)?;
            let item = registers.list_mut(*list).item_mut(lane, *index)?;
            *item = written(*write, *item, value)?;
        }
        Deed::Push { list, value } => {
            let value = value_of(registers, value)?;
            let length = registers.list_mut(*list).push(lane, value);
            (length <= plan.most_elements).then_some(())?;
        }
        Deed::Pop { list } => {
            registers.list_mut(*list).pop(lane)?;
        }
        Deed::Assign { list, items } => {
            registers.list_mut(*list).assign(lane, items);
            (items.len() <= plan.most_elements).then_some(())?;
        }
        Deed::Schedule { site } => registers.schedule_in(plan, lane, *site)?,
    }
    Some(())
}

fn written(write: Write, old: f64, value: f64) -> Option<f64> {
    finite(match write {
        Write::Set => value,
        Write::Add => old + value,
        Write::Subtract => old - value,
        Write::Multiply => old * value,
    })
}
