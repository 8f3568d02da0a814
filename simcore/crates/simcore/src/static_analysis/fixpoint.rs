//! All runs at once, turn by turn, with at most one action a turn.

use std::collections::BTreeMap;

use crate::effects::Due;
use crate::ir::types::{Condition, Consequence, Deed, Kind, Scalar, Site, Write};
use crate::ir::{Domain, Plan};

use super::expressions::Reader;
use super::interval::Interval;
use super::states::{List, States, joined};
use super::texts::Texts;
use super::{Sure, Unsure};

/// What is pending of a schedule: the values that it keeps, each with its column.
type Kept = Vec<(usize, Interval)>;

/// All runs, as they go on together.
pub(super) struct Runs<'a> {
    plan: &'a Plan,
    reader: Reader,
    horizon: u64,
    turn: u64,
    /// What may be due, by turn and site.
    pending: BTreeMap<u64, BTreeMap<usize, Kept>>,
    /// Until which turn each event may last.
    lasting: BTreeMap<usize, u64>,
    /// Which conditions may hold: of actions, events, losses and wins.
    holding: [Vec<bool>; 4],
    /// What rules are applied to, kept to save its making.
    scratch: States,
}

const ACTIONS: usize = 0;
const EVENTS: usize = 1;
const LOSSES: usize = 2;
const WINS: usize = 3;

impl<'a> Runs<'a> {
    /// The runs of a plan.
    pub(super) fn new(plan: &'a Plan, horizon: u64) -> Sure<Self> {
        let reader = Reader { texts: Texts::of(plan)? };
        let mut states = States::initial(&plan.layout, plan.columns);
        for (column, slot) in plan.layout.slots.iter().enumerate().filter(|(_, slot)| slot.kind == Kind::Text)
        {
            states.put(column, reader.texts.text(Interval::only(slot.initial))?);
        }
        for (index, list) in plan.layout.lists.iter().enumerate() {
            states.put_list(index, list_of(&list.initial, list.element(), &reader)?);
        }
        for param in plan.actions.iter().flat_map(|action| &action.params) {
            states.put(param.column, domain(&param.domain, param.kind, &reader)?);
        }
        Ok(Self {
            plan,
            reader,
            horizon,
            turn: 0,
            pending: BTreeMap::new(),
            lasting: BTreeMap::new(),
            holding: [plan.actions.len(), plan.events.len(), plan.losses.len(), plan.wins.len()]
                .map(|count| vec![false; count]),
            scratch: states,
        })
    }

    /// Whether every condition may hold, no loss is certain, and no rule fails on the way.
    pub(super) fn show_nothing(mut self) -> Sure<bool> {
        let mut states = self.scratch.clone();
        let mut goes_on = true;
        while goes_on && self.turn < self.horizon {
            self.turn += 1;
            #[expect(clippy::cast_precision_loss, reason = "a horizon has four digits")]
            states.put(self.plan.turn, Interval::only(self.turn as f64));
            self.open(&mut states)?;
            self.act(&mut states)?;
            self.happen(&mut states)?;
            self.decay(&mut states)?;
            goes_on = self.judge(&mut states)?;
        }
        // Where every run has ended, a loss was certain unless some could be won before.
        let escapes = goes_on || !self.plan.wins.is_empty();
        Ok(escapes && self.holding.iter().flatten().all(|holds| *holds))
    }

    // --- the parts of a turn ---

    fn open(&mut self, states: &mut States) -> Sure<()> {
        let due: Vec<(usize, Kept)> = self.pending.remove(&self.turn).into_iter().flatten().collect();
        self.in_any_order(states, &due, |runs, (site, kept), after| {
            for (column, value) in kept {
                after.put(*column, *value);
            }
            let Some(site) = runs.plan.sites.get(*site) else { return Err(Unsure) };
            runs.carry_out(&site.deeds, after)
        })
    }

    fn act(&mut self, states: &mut States) -> Sure<()> {
        let plan = self.plan;
        let mut result = states.clone();
        for (index, action) in plan.actions.iter().enumerate() {
            if let Some(after) = self.after(ACTIONS, index, &action.legal, &action.consequence, states)? {
                result.join(&after, plan.turn);
                self.scratch = after;
            }
        }
        *states = result;
        Ok(())
    }

    fn happen(&mut self, states: &mut States) -> Sure<()> {
        let plan = self.plan;
        let continuing: Vec<usize> =
            self.lasting.iter().filter(|(_, until)| **until >= self.turn).map(|(event, _)| *event).collect();
        let mut begun = Vec::new();
        let mut fresh = states.clone();
        for (index, event) in plan.events.iter().enumerate() {
            let Some(after) = self.after(EVENTS, index, &event.when, &event.consequence, states)? else {
                continue;
            };
            if event.turns > 1 {
                self.lasting.insert(index, self.turn + event.turns - 1);
            }
            if continuing.contains(&index) {
                begun.push((index, after));
            } else {
                fresh.join(&after, plan.turn);
                self.scratch = after;
            }
        }
        self.go_on(&mut fresh, &continuing)?;
        for (index, mut after) in begun {
            // What begins does not last already, so it happens once in the turn either way.
            let others: Vec<usize> = continuing.iter().copied().filter(|other| *other != index).collect();
            self.go_on(&mut after, &others)?;
            fresh.join(&after, plan.turn);
        }
        *states = fresh;
        Ok(())
    }

    /// The effects of some of the events that may have begun in earlier turns.
    fn go_on(&mut self, states: &mut States, events: &[usize]) -> Sure<()> {
        self.in_any_order(states, events, |runs, index, after| {
            let Some(event) = runs.plan.events.get(*index) else { return Err(Unsure) };
            runs.apply(&event.consequence, after)
        })
    }

    fn decay(&mut self, states: &mut States) -> Sure<()> {
        for (slot, amount) in &self.plan.decay {
            let less = states.column(*slot).difference(Interval::only(*amount))?;
            states.put(*slot, less.tame()?);
        }
        Ok(())
    }

    /// Whether some run goes on, and the states in which one does.
    fn judge(&mut self, states: &mut States) -> Sure<bool> {
        let plan = self.plan;
        for (section, conditions) in [(LOSSES, &plan.losses), (WINS, &plan.wins)] {
            for (index, condition) in conditions.iter().enumerate() {
                self.scratch.clone_from(states);
                if self.reader.assume(condition, true, &mut self.scratch)? {
                    self.note(section, index);
                }
                if !self.reader.assume(condition, false, states)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    // --- rules ---

    fn note(&mut self, section: usize, index: usize) {
        if let Some(holds) = self.holding.get_mut(section).and_then(|section| section.get_mut(index)) {
            *holds = true;
        }
    }

    /// The states after a rule, if its condition may hold.
    fn after(
        &mut self,
        section: usize,
        index: usize,
        condition: &Condition,
        consequence: &Consequence,
        states: &States,
    ) -> Sure<Option<States>> {
        let mut after = std::mem::take(&mut self.scratch);
        after.clone_from(states);
        if !self.reader.assume(condition, true, &mut after)? {
            self.scratch = after;
            return Ok(None);
        }
        self.note(section, index);
        self.apply(consequence, &mut after)?;
        Ok(Some(after))
    }

    fn apply(&mut self, consequence: &Consequence, states: &mut States) -> Sure<()> {
        for (column, derived) in &consequence.derives {
            states.put(*column, self.reader.value(derived, states)?);
        }
        self.carry_out(&consequence.deeds, states)
    }

    fn carry_out(&mut self, deeds: &[Deed], states: &mut States) -> Sure<()> {
        for deed in deeds {
            match deed {
                Deed::Write { slot, write, value: amount } => {
                    let kind = self.plan.layout.slots.get(*slot).map(|slot| slot.kind);
                    let amount = self.read(amount, kind, states)?;
                    let after = written(*write, states.column(*slot), amount)?;
                    states.put(*slot, after);
                }
                Deed::WriteItem { list, index, write, value: amount } => {
                    let mut found = states.list(*list);
                    let element = found.element.filter(|_| *index < found.least).ok_or(Unsure)?;
                    let after = written(*write, element, self.read(amount, self.element(*list), states)?)?;
                    let is_alone = found.least == 1 && found.most == 1;
                    found.element = Some(if is_alone { after } else { element.join(after) });
                    states.put_list(*list, found);
                }
                Deed::Push { list, value: item } => {
                    let found = states.list(*list);
                    let item = self.read(item, self.element(*list), states)?.tame()?;
                    let element = joined(found.element.filter(|_| found.most > 0), Some(item));
                    let grown = List { least: found.least + 1, most: found.most + 1, element };
                    self.put_list(*list, grown, states)?;
                }
                Deed::Pop { list } => {
                    let mut found = states.list(*list);
                    found.least = found.least.checked_sub(1).ok_or(Unsure)?;
                    found.most -= 1;
                    states.put_list(*list, found);
                }
                Deed::Assign { list, items } => {
                    let kind = self.element(*list).unwrap_or(Kind::Number);
                    self.put_list(*list, list_of(items, kind, &self.reader)?, states)?;
                }
                Deed::Schedule { site } => self.schedule(*site, states)?,
            }
        }
        Ok(())
    }

    fn element(&self, list: usize) -> Option<Kind> {
        Some(self.plan.layout.lists.get(list)?.element())
    }

    /// A value for a place of a kind.
    fn read(&self, scalar: &Scalar, kind: Option<Kind>, states: &States) -> Sure<Interval> {
        let found = self.reader.value(scalar, states)?;
        if kind == Some(Kind::Text) { self.reader.texts.text(found) } else { Ok(found) }
    }

    /// Put an array somewhere, as long as no budget can run out for its length.
    fn put_list(&self, list: usize, value: List, states: &mut States) -> Sure<()> {
        if value.most > self.plan.most_elements {
            return Err(Unsure);
        }
        states.put_list(list, value);
        Ok(())
    }

    fn schedule(&mut self, index: usize, states: &States) -> Sure<()> {
        let plan = self.plan;
        let Some(Site { when, frozen, .. }) = plan.sites.get(index) else { return Err(Unsure) };
        let due = match when {
            Due::At(turn) => (*turn).max(self.turn + 1),
            Due::After(turns) => self.turn + turns,
        };
        let kept = frozen.iter().map(|(column, kept)| Ok((*column, self.reader.value(kept, states)?)));
        let kept = kept.collect::<Sure<Kept>>()?;
        if due <= self.horizon {
            let before = self.pending.entry(due).or_default().entry(index);
            before
                .and_modify(|before| {
                    for ((_, mine), (_, theirs)) in before.iter_mut().zip(&kept) {
                        *mine = mine.join(*theirs);
                    }
                })
                .or_insert(kept);
        }
        Ok(())
    }

    /// Do some of several things, each at most once, in whatever order.
    fn in_any_order<T>(
        &mut self,
        states: &mut States,
        things: &[T],
        mut carry_out: impl FnMut(&mut Self, &T, &mut States) -> Sure<()>,
    ) -> Sure<()> {
        // Every order of n things is part of n times their list.
        for _ in 0..things.len() {
            for thing in things {
                let mut after = states.clone();
                carry_out(self, thing, &mut after)?;
                states.join(&after, self.plan.turn);
            }
        }
        Ok(())
    }
}

/// What stands somewhere after a write.
fn written(write: Write, before: Interval, amount: Interval) -> Sure<Interval> {
    let after = match write {
        Write::Set => amount,
        Write::Add => before.sum(amount)?,
        Write::Subtract => before.difference(amount)?,
        Write::Multiply => before.product(amount)?,
    };
    after.tame()
}

/// An array of some items.
fn list_of(items: &[f64], kind: Kind, reader: &Reader) -> Sure<List> {
    let mut list = List::of(items);
    if kind == Kind::Text {
        list.element = any_of(items, kind, reader)?;
    }
    Ok(list)
}

/// One of some values.
fn any_of(values: &[f64], kind: Kind, reader: &Reader) -> Sure<Option<Interval>> {
    let values = values.iter().map(|value| Interval::only(*value));
    if kind != Kind::Text {
        return Ok(values.reduce(Interval::join));
    }
    let texts = values.map(|value| reader.texts.text(value)).collect::<Sure<Vec<Interval>>>()?;
    Ok(texts.into_iter().reduce(Interval::join))
}

/// All legal values of a parameter.
fn domain(domain: &Domain, kind: Kind, reader: &Reader) -> Sure<Interval> {
    match domain {
        Domain::Options(options) => any_of(options, kind, reader)?.ok_or(Unsure),
        Domain::Only(_) => Err(Unsure), // any text is legal, though only the empty one is drawn
        #[expect(clippy::cast_precision_loss, reason = "fewer than 2^32")]
        Domain::Integers { low, count } => Ok(Interval::new(*low, low + (*count as f64 - 1.0), true)),
        Domain::Numbers { low, high } => Ok(Interval::new(*low, *high, false)),
    }
}
