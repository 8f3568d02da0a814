//! Code of the heuristic value of a run, for personas with lookahead.

use crate::condition_distance::MOST;
use crate::ir::types::{Operation, Relation};
use crate::ir::{Distance, Distances, Graded};

use super::code::{ACTIVE, Code, Compiler, Operand, Step};
use super::vectors::Combine;

impl Compiler {
    /// Emit code for the value in the lanes of `ACTIVE`: the distance of the nearest loss minus that of the
    /// nearest win.
    pub(super) fn value_code(&mut self, distances: &Distances, to: usize) -> Code {
        self.join_distances(&distances.losses, to, Operation::Least);
        if !distances.wins.is_empty() {
            let with = self.column();
            self.join_distances(&distances.wins, with, Operation::Least);
            self.apply(to, Operation::Subtract, Operand::Column(with));
        }
        self.finish()
    }

    /// Emit the minimum or maximum of distances; 1 for an empty list.
    fn join_distances(&mut self, distances: &[Distance], to: usize, operation: Operation) {
        let Some((first, others)) = distances.split_first() else {
            return self.push(Step::Load { to, from: Operand::Constant(1.0) });
        };
        self.distance(first, to);
        let with = self.column();
        for distance in others {
            let before = self.next_column;
            self.distance(distance, with);
            self.next_column = before;
            self.apply(to, operation, Operand::Column(with));
        }
    }

    fn distance(&mut self, distance: &Distance, to: usize) {
        match distance {
            Distance::Greatest(parts) => self.join_distances(parts, to, Operation::Greatest),
            Distance::Least(parts) => self.join_distances(parts, to, Operation::Least),
            Distance::Graded(graded) => self.graded(graded, to),
            Distance::Whole(condition) => {
                let mask = self.mask();
                self.condition(condition, mask, ACTIVE, Combine::Set);
                self.push(Step::Invert { to: mask });
                self.push(Step::Truth { to, mask });
            }
        }
    }

    fn graded(&mut self, graded: &Graded, to: usize) {
        let (a, b) = (self.operand(&graded.first, ACTIVE), self.operand(&graded.second, ACTIVE));
        self.push(Step::Load { to, from: a });
        self.apply(to, Operation::Subtract, b);
        if graded.relation == Relation::Equal {
            let other = self.column();
            self.push(Step::Load { to: other, from: b });
            self.apply(other, Operation::Subtract, a);
            self.apply(to, Operation::Greatest, Operand::Column(other));
        }
        self.apply(to, Operation::Least, Operand::Constant(MOST));
        self.apply(to, Operation::Add, Operand::Constant(graded.least));
        let total = self.column();
        self.push(Step::Load { to: total, from: Operand::Column(to) });
        self.apply(total, Operation::Add, Operand::Constant(graded.scale));
        self.apply(to, Operation::Divide, Operand::Column(total));
        let mask = self.mask();
        self.push(Step::Compare { to: mask, combine: Combine::Set, relation: graded.relation, a, b });
        self.push(Step::Select { to, mask, with: Operand::Constant(0.0) });
    }

    fn apply(&mut self, to: usize, operation: Operation, with: Operand) {
        self.push(Step::Apply { to, operation, with });
    }
}
