//! Actions of a turn: legality, random choice, and execution.

use crate::ir::types::Relation;
use crate::ir::{Domain, Param};
use crate::rng::{INCREMENT, choose, mix, unit};
use crate::turn::PARAM_TRIES;

use super::block::Block;
use super::isa::Vectors;
use super::turn::evaluate_condition;
use super::vectors::{Column, Combine, Integers, LANES, Mask, Numbers};

impl Block<'_> {
    /// Take a random legal action.
    #[inline(always)]
    pub(super) fn act_at_random<V: Vectors>(&mut self) {
        let (cursor, mut pick) = self.draw_choices::<V>();
        for ((pick, policy), cursor) in pick.0.iter_mut().zip(&self.policy.0).zip(&cursor.0) {
            *pick = ((mix(policy.wrapping_add(*cursor)) >> 32) * *pick) >> 32;
        }
        self.apply_choices::<V>(|_, legal| {
            let mut hit = Mask::NONE;
            pick.count_down(legal, &mut hit);
            hit
        });
    }

    /// Draw parameters and find the legal actions. Return the cursor of the next draw and the number of
    /// choices.
    #[inline(always)]
    pub(super) fn draw_choices<V: Vectors>(&mut self) -> (Integers, Integers) {
        let machine = self.machine;
        let acting = self.lanes_to_act();
        // Each draw of a turn adds one increment.
        let mut cursor = self.counter.clone();
        cursor.add(INCREMENT);
        let mut choices = Integers::ZERO;
        for (index, (action, code)) in machine.plan.actions.iter().zip(&machine.legal).enumerate() {
            if action.depends_on_params {
                self.try_params::<V>(index, &acting, &mut cursor);
            }
            let Some(legal) = self.legal.get_mut(index) else { continue };
            if !action.depends_on_params {
                evaluate_condition::<V>(&mut self.registers, &machine.plan, code, &acting, legal);
                if let Some(drawn) = self.drawn.get_mut(index) {
                    drawn.clone_from(&cursor);
                    let draws = INCREMENT.wrapping_mul(action.params.len() as u64);
                    cursor.add(draws.wrapping_mul(PARAM_TRIES as u64));
                    // If it is legal, it used one try only.
                    cursor.add_where(legal, draws.wrapping_mul(1_u64.wrapping_sub(PARAM_TRIES as u64)));
                }
            }
            choices.count(legal);
            if let Some(counters) = &mut self.counters {
                counters.count_legal(index, legal);
            }
        }
        (cursor, choices)
    }

    /// Return the lanes in which the persona acts in this turn.
    #[inline(always)]
    fn lanes_to_act(&self) -> Mask {
        let mut acting = self.playing.clone();
        if let Some(turn) = self.acted_in {
            let mut has_acted = Mask::NONE;
            let now = Numbers::Each(self.registers.column(self.machine.plan.turn));
            has_acted.compare(Combine::Set, Relation::Equal, now, Numbers::All(turn));
            acting.and_not(&has_acted);
        }
        acting
    }

    /// Apply the chosen actions. `chosen` maps an action and its legal lanes to the lanes that take it.
    #[inline(always)]
    pub(super) fn apply_choices<V: Vectors>(&mut self, mut chosen: impl FnMut(usize, &Mask) -> Mask) {
        let machine = self.machine;
        let mut chosen_actions = Integers([u64::MAX; LANES]);
        for index in 0..machine.plan.actions.len() {
            let Some(legal) = self.legal.get(index) else { continue };
            let mut hit = chosen(index, legal);
            self.set_params(index, &mut hit);
            if let Some(counters) = &mut self.counters {
                counters.count_chosen(index, &hit);
            }
            if machine.actions_masked {
                self.run_action::<V>(index, &hit);
            } else {
                chosen_actions.set_where(&hit, index as u64);
            }
        }
        if !machine.actions_masked {
            self.run_rule_per_lane(&chosen_actions, Self::consequence_in);
        }
    }

    /// Set the parameters of an action. The mask stays set in lanes with legal parameters.
    #[inline(always)]
    pub(super) fn set_params(&mut self, index: usize, mask: &mut Mask) {
        let machine = self.machine;
        if let Some(action) = machine.plan.actions.get(index).filter(|action| !action.params.is_empty()) {
            self.draw_params(index, mask);
            self.reject_illegal(&action.params, mask);
        }
    }

    /// Draw parameters until the action is legal, with a limited number of tries.
    #[inline(always)]
    fn try_params<V: Vectors>(&mut self, index: usize, acting: &Mask, cursor: &mut Integers) {
        let machine = self.machine;
        let (Some(action), Some(code)) = (machine.plan.actions.get(index), machine.legal.get(index)) else {
            return;
        };
        let mut open = acting.clone();
        for _ in 0..PARAM_TRIES {
            if let Some(drawn) = self.drawn.get_mut(index) {
                for ((drawn, cursor), open) in drawn.0.iter_mut().zip(&cursor.0).zip(&open.0) {
                    *drawn = (*cursor & open) | (*drawn & !open);
                }
            }
            self.draw_params(index, &open);
            cursor.add_where(&open, INCREMENT.wrapping_mul(action.params.len() as u64));
            let mut holds = Mask::NONE;
            evaluate_condition::<V>(&mut self.registers, &machine.plan, code, &open, &mut holds);
            open.and_not(&holds);
            if !open.any() {
                break;
            }
        }
        if let Some(legal) = self.legal.get_mut(index) {
            legal.clone_from(acting);
            legal.and_not(&open);
        }
    }

    /// Draw the parameters of an action from the position of its draws.
    #[inline(always)]
    fn draw_params(&mut self, index: usize, mask: &Mask) {
        let (Some(action), Some(drawn)) = (self.machine.plan.actions.get(index), self.drawn.get(index))
        else {
            return;
        };
        let mut offset = 0_u64;
        for param in &action.params {
            let mut value = Column::ZERO;
            for ((value, policy), cursor) in value.0.iter_mut().zip(&self.policy.0).zip(&drawn.0) {
                *value = param.domain.pick(mix(policy.wrapping_add(cursor.wrapping_add(offset))));
            }
            self.registers.column_mut(param.column).set_where(mask, Numbers::Each(&value));
            offset = offset.wrapping_add(INCREMENT);
        }
    }

    /// Rounding may exceed the bounds of a number. Such an action is rejected, which is not a failure.
    #[inline(always)]
    fn reject_illegal(&mut self, params: &[Param], hit: &mut Mask) {
        for param in params {
            if let Domain::Numbers { low, high } = param.domain {
                let column = self.registers.column(param.column);
                for (hit, number) in hit.0.iter_mut().zip(&column.0) {
                    *hit &= 0_u64.wrapping_sub(u64::from(low <= *number && *number <= high));
                }
            }
        }
    }
}

impl Domain {
    /// Convert a draw to a value of the domain.
    #[inline(always)]
    #[expect(clippy::cast_precision_loss, reason = "fewer than 2^32 integers")]
    fn pick(&self, draw: u64) -> f64 {
        match self {
            Self::Only(value) => *value,
            Self::Options(options) => {
                let index = usize::try_from(choose(draw, options.len() as u64)).unwrap_or(0);
                options.get(index).copied().unwrap_or(0.0)
            }
            Self::Integers { low, count } => low + (((draw >> 32) * count) >> 32) as f64,
            Self::Numbers { low, high } => low + unit(draw) * (high - low) + 0.0,
        }
    }
}
