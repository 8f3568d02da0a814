//! Reachable states of all runs, turn by turn, with at most one action in each turn.

use std::collections::BTreeMap;

use crate::effects::Due;
use crate::ir::types::{Condition, Consequence, Kind, Mutation, Scalar, Site, Write};
use crate::ir::{Domain, Plan};

use super::expressions::AbstractEvaluator;
use super::interval::Interval;
use super::states::{List, States, join_options};
use super::texts::Texts;
use super::{Known, Unknown};

/// The values of a pending schedule, each with its column.
type FrozenValues = Vec<(usize, Interval)>;

/// The reachable states of a plan.
pub(super) struct ReachableStates<'a> {
    plan: &'a Plan,
    evaluator: AbstractEvaluator,
    horizon: u64,
    turn: u64,
    /// Entries that may be due, by turn and site.
    pending: BTreeMap<u64, BTreeMap<usize, FrozenValues>>,
    /// For each event the last turn in which it may last.
    lasting: BTreeMap<usize, u64>,
    /// Conditions that may hold: of actions, events, losses and wins.
    holding: [Vec<bool>; 4],
    /// Buffer for the states after a rule.
    scratch: States,
}

const ACTIONS: usize = 0;
const EVENTS: usize = 1;
const LOSSES: usize = 2;
const WINS: usize = 3;

impl<'a> ReachableStates<'a> {
    /// Create the initial states of a plan.
    pub(super) fn new(plan: &'a Plan, horizon: u64) -> Known<Self> {
        let evaluator = AbstractEvaluator { texts: Texts::collect(plan)? };
        let mut states = States::initial(&plan.layout, plan.columns);
        for (column, slot) in plan.layout.slots.iter().enumerate().filter(|(_, slot)| slot.kind == Kind::Text)
        {
            states.put(column, evaluator.texts.text(Interval::exact(slot.initial))?);
        }
        for (index, list) in plan.layout.lists.iter().enumerate() {
            states.put_list(index, list_of(&list.initial, list.element(), &evaluator)?);
        }
        for deal in &plan.start.deals {
            let kind = plan.layout.slots.get(deal.slot).map_or(Kind::Number, |slot| slot.kind);
            states.put(deal.slot, join_values(&deal.values, kind, &evaluator)?.ok_or(Unknown)?);
        }
        for param in plan.actions.iter().flat_map(|action| &action.params) {
            states.put(param.column, domain(&param.domain, param.kind, &evaluator)?);
        }
        Ok(Self {
            plan,
            evaluator,
            horizon,
            turn: 0,
            pending: BTreeMap::new(),
            lasting: BTreeMap::new(),
            holding: [plan.actions.len(), plan.events.len(), plan.losses.len(), plan.wins.len()]
                .map(|count| vec![false; count]),
            scratch: states,
        })
    }

    /// Return True if every condition may hold, no loss is certain, and no rule can fail.
    pub(super) fn has_no_findings(mut self) -> Known<bool> {
        let mut states = self.scratch.clone();
        let mut unfinished = true;
        while unfinished && self.turn < self.horizon {
            self.turn += 1;
            #[expect(clippy::cast_precision_loss, reason = "a horizon has four digits")]
            states.put(self.plan.turn, Interval::exact(self.turn as f64));
            self.open(&mut states)?;
            self.act(&mut states)?;
            if self.plan.ends_early && !self.check_end_conditions(&mut states)? {
                unfinished = false;
                break;
            }
            self.apply_events(&mut states)?;
            self.decay(&mut states)?;
            unfinished = self.check_end_conditions(&mut states)?;
        }
        // If all runs have ended, a loss was certain, unless a win was possible before.
        let escapes = unfinished || !self.plan.wins.is_empty();
        Ok(escapes && self.holding.iter().flatten().all(|holds| *holds))
    }

    // --- the parts of a turn ---

    fn open(&mut self, states: &mut States) -> Known<()> {
        let due: Vec<(usize, FrozenValues)> = self.pending.remove(&self.turn).into_iter().flatten().collect();
        self.in_any_order(states, &due, |runs, (site, frozen_values), after| {
            for (column, value) in frozen_values {
                after.put(*column, *value);
            }
            let Some(site) = runs.plan.sites.get(*site) else { return Err(Unknown) };
            runs.apply_mutations(&site.mutations, after)
        })
    }

    fn act(&mut self, states: &mut States) -> Known<()> {
        let plan = self.plan;
        let mut result = states.clone();
        for (index, action) in plan.actions.iter().enumerate() {
            if action.variants.is_empty()
                && let Some(after) =
                    self.apply_rule(ACTIONS, index, &action.legal, &action.consequence, states)?
            {
                result.join(&after, plan.turn);
                self.scratch = after;
            }
            for variant in &action.variants {
                let mut fixed = states.clone();
                for (column, value) in &variant.values {
                    fixed.put(*column, self.evaluator.texts.text(Interval::exact(*value))?);
                }
                let (legal, consequence) = (&variant.legal, &variant.consequence);
                if let Some(mut after) = self.apply_rule(ACTIONS, index, legal, consequence, &fixed)? {
                    for (column, _) in &variant.values {
                        after.put(*column, states.column(*column));
                    }
                    result.join(&after, plan.turn);
                }
            }
        }
        *states = result;
        Ok(())
    }

    fn apply_events(&mut self, states: &mut States) -> Known<()> {
        let plan = self.plan;
        let continuing: Vec<usize> =
            self.lasting.iter().filter(|(_, until)| **until >= self.turn).map(|(event, _)| *event).collect();
        let mut restarted = Vec::new();
        let mut fresh = states.clone();
        for (index, event) in plan.events.iter().enumerate() {
            let Some(after) = self.apply_rule(EVENTS, index, &event.when, &event.consequence, states)? else {
                continue;
            };
            if event.turns > 1 {
                self.lasting.insert(index, self.turn + event.turns - 1);
            }
            if continuing.contains(&index) {
                restarted.push((index, after));
            } else {
                fresh.join(&after, plan.turn);
                self.scratch = after;
            }
        }
        self.apply_lasting_events(&mut fresh, &continuing)?;
        for (index, mut after) in restarted {
            // An event that starts now does not last already, so it is applied once in the turn.
            let others: Vec<usize> = continuing.iter().copied().filter(|other| *other != index).collect();
            self.apply_lasting_events(&mut after, &others)?;
            fresh.join(&after, plan.turn);
        }
        *states = fresh;
        Ok(())
    }

    /// Apply some of the events that may have started in earlier turns.
    fn apply_lasting_events(&mut self, states: &mut States, events: &[usize]) -> Known<()> {
        self.in_any_order(states, events, |runs, index, after| {
            let Some(event) = runs.plan.events.get(*index) else { return Err(Unknown) };
            runs.apply(&event.consequence, after)
        })
    }

    fn decay(&mut self, states: &mut States) -> Known<()> {
        if let Some(decay) = &self.plan.masked_decay {
            self.apply(decay, states)?;
        }
        for (slot, amount) in &self.plan.decay {
            let less = states.column(*slot).difference(Interval::exact(*amount))?;
            states.put(*slot, less.check_bounded()?);
        }
        Ok(())
    }

    /// Refine the states to those of unfinished runs. Return False if none exist.
    fn check_end_conditions(&mut self, states: &mut States) -> Known<bool> {
        let plan = self.plan;
        for (section, conditions) in [(LOSSES, &plan.losses), (WINS, &plan.wins)] {
            for (index, condition) in conditions.iter().enumerate() {
                self.scratch.clone_from(states);
                if self.evaluator.assume(condition, true, &mut self.scratch)? {
                    self.mark_holding(section, index);
                }
                if !self.evaluator.assume(condition, false, states)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    // --- rules ---

    fn mark_holding(&mut self, section: usize, index: usize) {
        if let Some(holds) = self.holding.get_mut(section).and_then(|section| section.get_mut(index)) {
            *holds = true;
        }
    }

    /// Return the states after a rule, or `None` if its condition cannot hold.
    fn apply_rule(
        &mut self,
        section: usize,
        index: usize,
        condition: &Condition,
        consequence: &Consequence,
        states: &States,
    ) -> Known<Option<States>> {
        let mut after = std::mem::take(&mut self.scratch);
        after.clone_from(states);
        if !self.evaluator.assume(condition, true, &mut after)? {
            self.scratch = after;
            return Ok(None);
        }
        self.mark_holding(section, index);
        self.apply(consequence, &mut after)?;
        Ok(Some(after))
    }

    fn apply(&mut self, consequence: &Consequence, states: &mut States) -> Known<()> {
        for (column, derived) in &consequence.derives {
            states.put(*column, self.evaluator.value(derived, states)?);
        }
        self.apply_mutations(&consequence.mutations, states)
    }

    fn apply_mutations(&mut self, mutations: &[Mutation], states: &mut States) -> Known<()> {
        for mutation in mutations {
            match mutation {
                Mutation::Write { slot, write, value: amount } => {
                    let kind = self.plan.layout.slots.get(*slot).map(|slot| slot.kind);
                    let amount = self.evaluate(amount, kind, states)?;
                    let after = write_value(*write, states.column(*slot), amount)?;
                    states.put(*slot, after);
                }
                Mutation::WriteItem { list, index, write, value: amount } => {
                    let mut found = states.list(*list);
                    let element = found.element.filter(|_| *index < found.least).ok_or(Unknown)?;
                    let after =
                        write_value(*write, element, self.evaluate(amount, self.element(*list), states)?)?;
                    let is_alone = found.least == 1 && found.most == 1;
                    found.element = Some(if is_alone { after } else { element.join(after) });
                    states.put_list(*list, found);
                }
                Mutation::Push { list, value: item } => {
                    let found = states.list(*list);
                    let item = self.evaluate(item, self.element(*list), states)?.check_bounded()?;
                    let element = join_options(found.element.filter(|_| found.most > 0), Some(item));
                    let grown = List { least: found.least + 1, most: found.most + 1, element };
                    self.put_list(*list, grown, states)?;
                }
                Mutation::Pop { list } => {
                    let mut found = states.list(*list);
                    found.least = found.least.checked_sub(1).ok_or(Unknown)?;
                    found.most -= 1;
                    states.put_list(*list, found);
                }
                Mutation::Assign { list, items } => {
                    let kind = self.element(*list).unwrap_or(Kind::Number);
                    self.put_list(*list, list_of(items, kind, &self.evaluator)?, states)?;
                }
                Mutation::Schedule { site } => self.schedule(*site, states)?,
            }
        }
        Ok(())
    }

    fn element(&self, list: usize) -> Option<Kind> {
        Some(self.plan.layout.lists.get(list)?.element())
    }

    /// Evaluate a value for a place of a kind.
    fn evaluate(&self, scalar: &Scalar, kind: Option<Kind>, states: &States) -> Known<Interval> {
        let found = self.evaluator.value(scalar, states)?;
        if kind == Some(Kind::Text) { self.evaluator.texts.text(found) } else { Ok(found) }
    }

    /// Set an array, if no budget can be exceeded by its length.
    fn put_list(&self, list: usize, value: List, states: &mut States) -> Known<()> {
        if value.most > self.plan.most_elements {
            return Err(Unknown);
        }
        states.put_list(list, value);
        Ok(())
    }

    fn schedule(&mut self, index: usize, states: &States) -> Known<()> {
        let plan = self.plan;
        let Some(Site { when, frozen, .. }) = plan.sites.get(index) else { return Err(Unknown) };
        let due = match when {
            Due::At(turn) => (*turn).max(self.turn + 1),
            Due::After(turns) => self.turn + turns,
        };
        let frozen_values = frozen
            .iter()
            .map(|(column, frozen_values)| Ok((*column, self.evaluator.value(frozen_values, states)?)));
        let frozen_values = frozen_values.collect::<Known<FrozenValues>>()?;
        if due <= self.horizon {
            let before = self.pending.entry(due).or_default().entry(index);
            before
                .and_modify(|before| {
                    for ((_, own), (_, new)) in before.iter_mut().zip(&frozen_values) {
                        *own = own.join(*new);
                    }
                })
                .or_insert(frozen_values);
        }
        Ok(())
    }

    /// Apply any subset of things, each at most once, in any order.
    fn in_any_order<T>(
        &mut self,
        states: &mut States,
        things: &[T],
        mut apply: impl FnMut(&mut Self, &T, &mut States) -> Known<()>,
    ) -> Known<()> {
        // A list that is repeated n times contains every order of its n things.
        for _ in 0..things.len() {
            for thing in things {
                let mut after = states.clone();
                apply(self, thing, &mut after)?;
                states.join(&after, self.plan.turn);
            }
        }
        Ok(())
    }
}

/// Return the possible values after a write.
fn write_value(write: Write, before: Interval, amount: Interval) -> Known<Interval> {
    let after = match write {
        Write::Set => amount,
        Write::Add => before.sum(amount)?,
        Write::Subtract => before.difference(amount)?,
        Write::Multiply => before.product(amount)?,
    };
    after.check_bounded()
}

/// Return an array of constant items.
fn list_of(items: &[f64], kind: Kind, evaluator: &AbstractEvaluator) -> Known<List> {
    let mut list = List::from_items(items);
    if kind == Kind::Text {
        list.element = join_values(items, kind, evaluator)?;
    }
    Ok(list)
}

/// Return the join of constant values.
fn join_values(values: &[f64], kind: Kind, evaluator: &AbstractEvaluator) -> Known<Option<Interval>> {
    let values = values.iter().map(|value| Interval::exact(*value));
    if kind != Kind::Text {
        return Ok(values.reduce(Interval::join));
    }
    let texts = values.map(|value| evaluator.texts.text(value)).collect::<Known<Vec<Interval>>>()?;
    Ok(texts.into_iter().reduce(Interval::join))
}

/// Return all legal values of a parameter.
fn domain(domain: &Domain, kind: Kind, evaluator: &AbstractEvaluator) -> Known<Interval> {
    match domain {
        Domain::Options(options) => join_values(options, kind, evaluator)?.ok_or(Unknown),
        Domain::Only(_) => Err(Unknown), // any text is legal, though only the empty one is drawn
        #[expect(clippy::cast_precision_loss, reason = "fewer than 2^32")]
        Domain::Integers { low, count } => Ok(Interval::new(*low, low + (*count as f64 - 1.0), true)),
        Domain::Numbers { low, high } => Ok(Interval::new(*low, *high, false)),
    }
}
