//! Straight-line code of rules over columns and masks. Control flow is resolved once for 64 lanes.

use crate::ir::types::{
    Condition, Consequence, Fold, Mutation, Operation, Relation, Scalar, Source, Stage, Write,
};

use super::vectors::Combine;

/// The mask of the lanes in which the current code is active.
pub(super) const ACTIVE: usize = 0;
/// The mask with the result of a condition.
pub(super) const RESULT: usize = 1;

/// Straight-line code.
#[derive(Debug, Default)]
pub(super) struct Code(pub(super) Vec<Step>);

#[derive(Clone, Copy, Debug)]
pub(super) enum Operand {
    Column(usize),
    Constant(f64),
}

/// An instruction. Columns and masks are numbers. No instruction reads `to` as another operand.
#[derive(Debug)]
pub(super) enum Step {
    Load {
        to: usize,
        from: Operand,
    },
    Apply {
        to: usize,
        operation: Operation,
        with: Operand,
    },
    Negate {
        to: usize,
    },
    Select {
        to: usize,
        mask: usize,
        with: Operand,
    },
    Truth {
        to: usize,
        mask: usize,
    },
    /// Marks lanes with an infinite number as exceptional. Unless `always`, it is skipped if bounds show that
    /// all numbers are finite.
    CheckFinite {
        column: usize,
        active: usize,
        always: bool,
    },
    CheckNotZero {
        operand: Operand,
        active: usize,
    },
    /// A value that is computed lane by lane.
    EachValue {
        to: usize,
        scalar: Scalar,
        active: usize,
    },
    Compare {
        to: usize,
        combine: Combine,
        relation: Relation,
        a: Operand,
        b: Operand,
    },
    EachCondition {
        to: usize,
        condition: Condition,
        active: usize,
    },
    /// Write to a slot in active lanes.
    Write {
        slot: usize,
        write: Write,
        with: Operand,
    },
    /// Append a value to an array in active lanes.
    Push {
        list: usize,
        with: Operand,
    },
    /// Remove the last element of an array in active lanes.
    Pop {
        list: usize,
    },
    /// Schedule a site in active lanes.
    Schedule {
        site: usize,
    },
    /// A mutation that is applied lane by lane.
    EachMutation {
        mutation: Mutation,
    },
    Iterate(Loop),
    /// Lanes in which an array is not empty.
    NotEmpty {
        to: usize,
        list: usize,
    },
    Fill {
        to: usize,
        holds: bool,
    },
    Copy {
        to: usize,
        from: usize,
    },
    And {
        to: usize,
        with: usize,
    },
    AndNot {
        to: usize,
        with: usize,
    },
    Or {
        to: usize,
        with: usize,
    },
    Invert {
        to: usize,
    },
}

/// A loop over the indices of an array.
#[derive(Debug)]
pub(super) struct Loop {
    pub(super) list: usize,
    /// Lanes in which the loop is active.
    pub(super) active: usize,
    /// Lanes whose array is long enough. The body narrows it.
    pub(super) current: usize,
    /// The column of the element.
    pub(super) element: usize,
    pub(super) body: Code,
}

/// Compiler: emits code, and counts the columns and masks that it needs.
pub(super) struct Compiler {
    steps: Vec<Step>,
    first_column: usize,
    pub(super) next_column: usize,
    next_mask: usize,
    /// The column of the element in an iteration, and of the accumulator in a fold.
    element: usize,
    accumulator: usize,
    pub(super) columns: usize,
    pub(super) masks: usize,
}

impl Compiler {
    /// Create a compiler that allocates columns from a number on.
    pub(super) fn new(first_column: usize) -> Self {
        Self {
            steps: Vec::new(),
            first_column,
            next_column: first_column,
            next_mask: RESULT + 1,
            element: 0,
            accumulator: 0,
            columns: first_column,
            masks: RESULT + 1,
        }
    }

    /// Emit code that computes a condition into `RESULT` for the lanes of `ACTIVE`.
    pub(super) fn condition_code(&mut self, condition: &Condition) -> Code {
        self.condition(condition, RESULT, ACTIVE, Combine::Set);
        self.finish()
    }

    /// Emit code that applies a consequence in the lanes of `ACTIVE`.
    pub(super) fn consequence_code(&mut self, consequence: &Consequence) -> Code {
        for (column, scalar) in &consequence.derives {
            self.value_into(*column, scalar, ACTIVE);
        }
        for mutation in &consequence.mutations {
            match mutation {
                Mutation::Write { slot, write, value } if value.is_simple() => {
                    let with = self.operand(value, ACTIVE);
                    self.push(Step::Write { slot: *slot, write: *write, with });
                    if *write != Write::Set {
                        self.push(Step::CheckFinite { column: *slot, active: ACTIVE, always: false });
                    }
                }
                Mutation::Push { list, value } if value.is_simple() => {
                    let with = self.operand(value, ACTIVE);
                    self.push(Step::Push { list: *list, with });
                }
                Mutation::Pop { list } => self.push(Step::Pop { list: *list }),
                Mutation::Schedule { site } => self.push(Step::Schedule { site: *site }),
                mutation => self.push(Step::EachMutation { mutation: mutation.clone() }),
            }
        }
        self.finish()
    }

    pub(super) fn finish(&mut self) -> Code {
        (self.next_column, self.next_mask) = (self.first_column, RESULT + 1);
        Code(std::mem::take(&mut self.steps))
    }

    pub(super) fn column(&mut self) -> usize {
        self.next_column += 1;
        self.columns = self.columns.max(self.next_column);
        self.next_column - 1
    }

    pub(super) fn mask(&mut self) -> usize {
        self.next_mask += 1;
        self.masks = self.masks.max(self.next_mask);
        self.next_mask - 1
    }

    pub(super) fn push(&mut self, step: Step) {
        self.steps.push(step);
    }

    // --- conditions ---

    pub(super) fn condition(&mut self, condition: &Condition, to: usize, active: usize, combine: Combine) {
        match condition {
            Condition::Constant(holds) => self.constant(*holds, to, combine),
            Condition::True(value) => {
                let a = self.operand(value, active);
                let (relation, b) = (Relation::Unequal, Operand::Constant(0.0));
                self.push(Step::Compare { to, combine, relation, a, b });
            }
            Condition::Compare(relation, a, b) => {
                let (a, b) = (self.operand(a, active), self.operand(b, active));
                self.push(Step::Compare { to, combine, relation: *relation, a, b });
            }
            Condition::All(items) if combine != Combine::Or => {
                self.sequence(items, to, active, combine, Combine::And);
            }
            Condition::Any(items) if combine != Combine::And => {
                self.sequence(items, to, active, combine, Combine::Or);
            }
            Condition::Not(item) => match &**item {
                Condition::Compare(relation, a, b) => {
                    self.condition(&opposite(*relation, a, b), to, active, combine);
                }
                item if combine == Combine::Set => {
                    self.condition(item, to, active, Combine::Set);
                    self.push(Step::Invert { to });
                }
                _ => self.condition_in_own_mask(condition, to, active, combine),
            },
            Condition::Interpreted(_) if combine == Combine::Set => {
                self.push(Step::EachCondition { to, condition: condition.clone(), active });
            }
            Condition::NotEmpty(list) if combine == Combine::Set => {
                self.push(Step::NotEmpty { to, list: *list });
            }
            Condition::Contains { list, needle } if combine == Combine::Set => {
                let needle = self.operand(needle, active);
                let source = Source { list: *list, stages: Vec::new() };
                self.find(&source, to, active, |compiler, element, to, _| {
                    let (a, relation) = (Operand::Column(element), Relation::Equal);
                    compiler.push(Step::Compare { to, combine: Combine::Set, relation, a, b: needle });
                });
            }
            Condition::Some { source, condition } if combine == Combine::Set => {
                self.find(source, to, active, |compiler, _, to, current| {
                    compiler.condition(condition, to, current, Combine::Set);
                });
            }
            Condition::Every { source, condition } if combine == Combine::Set => {
                let none_fails = self.mask();
                self.find(source, none_fails, active, |compiler, _, to, current| {
                    compiler.condition(condition, to, current, Combine::Set);
                    compiler.push(Step::Invert { to });
                });
                self.push(Step::Invert { to: none_fails });
                self.find(source, to, active, |compiler, _, to, _| {
                    compiler.push(Step::Fill { to, holds: true });
                });
                self.push(Step::And { to, with: none_fails });
            }
            _ => self.condition_in_own_mask(condition, to, active, combine),
        }
    }

    fn constant(&mut self, holds: bool, to: usize, combine: Combine) {
        let decides = match combine {
            Combine::Set => true,
            Combine::And => !holds,
            Combine::Or => holds,
        };
        if decides {
            self.push(Step::Fill { to, holds });
        }
    }

    /// Compute a condition into its own mask, then combine.
    fn condition_in_own_mask(&mut self, condition: &Condition, to: usize, active: usize, combine: Combine) {
        let with = self.mask();
        // Only undecided lanes: lane-by-lane code is expensive.
        let active = self.undecided(condition, to, active, combine);
        self.condition(condition, with, active, Combine::Set);
        self.push(if combine == Combine::And { Step::And { to, with } } else { Step::Or { to, with } });
    }

    /// Emit conditions with short-circuit evaluation: a condition that can fail is active only in undecided
    /// lanes.
    fn sequence(&mut self, items: &[Condition], to: usize, active: usize, first: Combine, others: Combine) {
        if items.is_empty() {
            return self.constant(others == Combine::And, to, first);
        }
        let mut combine = first;
        for item in items {
            let active = if combine == others && can_fail(item) {
                self.undecided(item, to, active, others)
            } else {
                active
            };
            self.condition(item, to, active, combine);
            combine = others;
        }
    }

    /// Return the lanes in which a condition still affects the combined result.
    fn undecided(&mut self, condition: &Condition, to: usize, active: usize, combine: Combine) -> usize {
        if combine == Combine::Set || !can_fail(condition) {
            return active;
        }
        let narrowed = self.mask();
        self.push(Step::Copy { to: narrowed, from: active });
        self.push(if combine == Combine::And {
            Step::And { to: narrowed, with: to }
        } else {
            Step::AndNot { to: narrowed, with: to }
        });
        narrowed
    }

    // --- iterations ---

    /// Find the lanes in which an element passes a test.
    ///
    /// The test gets the column of the element, its result mask, and the active lanes. After a hit, further
    /// elements are not tested. They still pass through the stages, as in the interpreter, which completes
    /// the stages first.
    fn find(
        &mut self,
        source: &Source,
        to: usize,
        active: usize,
        test: impl FnOnce(&mut Self, usize, usize, usize),
    ) {
        self.push(Step::Fill { to, holds: false });
        self.iterate(source, active, |compiler, element, current| {
            let found = compiler.mask();
            compiler.push(Step::AndNot { to: current, with: to });
            test(compiler, element, found, current);
            compiler.push(Step::And { to: found, with: current });
            compiler.push(Step::Or { to, with: found });
        });
    }

    fn fold(&mut self, fold: &Fold, to: usize, active: usize) {
        self.value_into(to, &fold.start, active);
        let outer = std::mem::replace(&mut self.accumulator, to);
        self.iterate(&fold.source, active, |compiler, _, current| {
            let with = compiler.operand(&fold.body, current);
            if !matches!(with, Operand::Column(column) if column == to) {
                compiler.push(Step::Select { to, mask: current, with });
            }
        });
        self.accumulator = outer;
    }

    /// Emit a loop over the elements that pass all stages.
    fn iterate(&mut self, source: &Source, active: usize, visit: impl FnOnce(&mut Self, usize, usize)) {
        let (current, element) = (self.mask(), self.column());
        let before = std::mem::take(&mut self.steps);
        let outer = std::mem::replace(&mut self.element, element);
        for stage in &source.stages {
            match stage {
                Stage::Filter(condition) => {
                    let passes = self.mask();
                    self.condition(condition, passes, current, Combine::Set);
                    self.push(Step::And { to: current, with: passes });
                }
                Stage::Map(value) => {
                    let from = self.operand(value, current);
                    if !matches!(from, Operand::Column(column) if column == element) {
                        self.push(Step::Load { to: element, from });
                    }
                }
            }
        }
        visit(self, element, current);
        self.element = outer;
        let body = Code(std::mem::replace(&mut self.steps, before));
        self.push(Step::Iterate(Loop { list: source.list, active, current, element, body }));
    }

    // --- values ---

    pub(super) fn operand(&mut self, scalar: &Scalar, active: usize) -> Operand {
        match scalar {
            Scalar::Constant(number) => Operand::Constant(*number),
            Scalar::Column(column) => Operand::Column(*column),
            Scalar::Element => Operand::Column(self.element),
            Scalar::Accumulator => Operand::Column(self.accumulator),
            scalar => {
                let to = self.column();
                self.value_into(to, scalar, active);
                Operand::Column(to)
            }
        }
    }

    fn value_into(&mut self, to: usize, scalar: &Scalar, active: usize) {
        match scalar {
            Scalar::Constant(_) | Scalar::Column(_) | Scalar::Element | Scalar::Accumulator => {
                let from = self.operand(scalar, active);
                self.push(Step::Load { to, from });
            }
            Scalar::Calculation { operation, first, rest } => {
                self.value_into(to, first, active);
                self.calculation(*operation, to, rest, active);
            }
            Scalar::Negative(value) => {
                self.value_into(to, value, active);
                self.push(Step::Negate { to });
            }
            Scalar::Choice { condition, then, otherwise } => {
                let mask = self.mask();
                self.condition(condition, mask, active, Combine::Set);
                let (chosen, left) = (self.mask(), self.mask());
                self.push(Step::Copy { to: chosen, from: active });
                self.push(Step::And { to: chosen, with: mask });
                self.push(Step::Copy { to: left, from: active });
                self.push(Step::AndNot { to: left, with: mask });
                self.value_into(to, otherwise, left);
                let with = self.operand(then, chosen);
                self.push(Step::Select { to, mask, with });
            }
            Scalar::Truth(condition) => {
                let mask = self.mask();
                self.condition(condition, mask, active, Combine::Set);
                self.push(Step::Truth { to, mask });
            }
            Scalar::Fold(fold) => self.fold(fold, to, active),
            Scalar::Interpreted(_) => {
                self.push(Step::EachValue { to, scalar: scalar.clone(), active });
            }
        }
    }

    fn calculation(&mut self, operation: Operation, to: usize, rest: &[Scalar], active: usize) {
        let divides = matches!(operation, Operation::Divide | Operation::Remainder);
        for value in rest {
            let with = self.operand(value, active);
            if divides {
                self.push(Step::CheckNotZero { operand: with, active });
            }
            self.push(Step::Apply { to, operation, with });
            if divides {
                self.push(Step::CheckFinite { column: to, active, always: true });
            }
        }
        if matches!(operation, Operation::Add | Operation::Subtract | Operation::Multiply) {
            self.push(Step::CheckFinite { column: to, active, always: false });
        }
    }
}

/// Return the negated relation. Without NaN it always exists.
fn opposite(relation: Relation, a: &Scalar, b: &Scalar) -> Condition {
    let (a, b) = (a.clone(), b.clone());
    match relation {
        Relation::Equal => Condition::Compare(Relation::Unequal, a, b),
        Relation::Unequal => Condition::Compare(Relation::Equal, a, b),
        Relation::Less => Condition::Compare(Relation::AtMost, b, a),
        Relation::AtMost => Condition::Compare(Relation::Less, b, a),
    }
}

/// Return True if the evaluation can fail: calculations and fallback expressions can.
fn can_fail(condition: &Condition) -> bool {
    condition.any(&mut |scalar| matches!(scalar, Scalar::Calculation { .. } | Scalar::Interpreted(_)))
}
