//! Optional statistics of a dry-run. All counts are integers, so the order of additions has no effect.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::paths::{self, Segment, parse_path};
use crate::program::Program;
use crate::value::{Value, count, object};

/// Maximum movement of a watched number, in units of its scale.
const MOST_SCALES: f64 = 4096.0;
/// Fixed-point resolution of a movement, in parts of the scale.
const PARTS: f64 = 1_048_576.0;

/// Counts over runs.
#[derive(Debug)]
pub(crate) struct Statistics {
    /// Number of lost and of won runs for each turn.
    lost_turns: BTreeMap<u64, u64>,
    won_turns: BTreeMap<u64, u64>,
    /// For each action: turns in which it was legal, and turns in which it was chosen.
    pub(crate) legal: Vec<u64>,
    pub(crate) taken: Vec<u64>,
    /// For each event: number of draws.
    pub(crate) drawn: Vec<u64>,
    /// For each watched number: total movement of all runs.
    pub(crate) moves: Vec<i64>,
    /// Number of won runs for each sequence of accepted actions.
    win_paths: BTreeMap<Vec<usize>, u64>,
}

/// A number that is compared between the first and the last state of a run.
#[derive(Debug)]
pub(crate) struct WatchedPath {
    text: Arc<str>,
    path: Vec<Segment>,
    /// Always positive.
    scale: f64,
}

impl Statistics {
    pub(crate) fn new(program: &Program, watched: &[WatchedPath]) -> Self {
        Self {
            lost_turns: BTreeMap::new(),
            won_turns: BTreeMap::new(),
            legal: vec![0; program.actions.len()],
            taken: vec![0; program.actions.len()],
            drawn: vec![0; program.events.len()],
            moves: vec![0; watched.len()],
            win_paths: BTreeMap::new(),
        }
    }

    /// Count a run that was lost after `turns` turns.
    pub(crate) fn count_lost(&mut self, turns: u64) {
        *self.lost_turns.entry(turns).or_default() += 1;
    }

    /// Count a run that was won after `turns` turns.
    pub(crate) fn count_won(&mut self, turns: u64) {
        *self.won_turns.entry(turns).or_default() += 1;
    }

    /// Count the accepted actions of a won run.
    pub(crate) fn count_win_path(&mut self, path: Vec<usize>) {
        *self.win_paths.entry(path).or_default() += 1;
    }

    /// Return the sequences of actions of won runs with their numbers, the most frequent first.
    pub(crate) fn win_paths_value(&self, program: &Program) -> Value {
        let ids = |path: &Vec<usize>| -> Vec<Arc<str>> {
            path.iter()
                .filter_map(|index| program.actions.get(*index))
                .map(|action| Arc::clone(&action.id))
                .collect()
        };
        let mut paths: Vec<_> = self.win_paths.iter().map(|(path, number)| (ids(path), *number)).collect();
        paths.sort_by(|(one, more), (other, less)| less.cmp(more).then_with(|| one.cmp(other)));
        let paths = paths.iter().map(|(path, number)| {
            Value::from(vec![path.iter().map(Value::from).collect::<Value>(), count(*number)])
        });
        paths.collect()
    }

    /// Add the counts of other runs.
    pub(crate) fn append(&mut self, other: &Self) {
        add_by_turn(&mut self.lost_turns, &other.lost_turns);
        add_by_turn(&mut self.won_turns, &other.won_turns);
        add(&mut self.legal, &other.legal);
        add(&mut self.taken, &other.taken);
        add(&mut self.drawn, &other.drawn);
        self.moves.iter_mut().zip(&other.moves).for_each(|(to, moved)| *to += moved);
        for (path, count) in &other.win_paths {
            *self.win_paths.entry(path.clone()).or_default() += count;
        }
    }

    /// Return the statistics as a member of a report.
    pub(crate) fn value(&self, program: &Program, watched: &[WatchedPath]) -> Value {
        let uses = self.legal.iter().zip(&self.taken);
        let uses = uses.map(|(legal, taken)| object([("legal", count(*legal)), ("taken", count(*taken))]));
        let actions = program.actions.iter().map(|action| Arc::clone(&action.id)).zip(uses);
        let drawn = self.drawn.iter().map(|&number| count(number));
        let events = program.events.iter().map(|event| Arc::clone(&event.id)).zip(drawn);
        let moves = watched.iter().zip(&self.moves);
        object([
            ("lost_turns", by_turn(&self.lost_turns)),
            ("won_turns", by_turn(&self.won_turns)),
            ("actions", actions.collect()),
            ("events", events.collect()),
            ("moves", moves.map(|(watched, moved)| (Arc::clone(&watched.text), number(*moved))).collect()),
        ])
    }
}

impl WatchedPath {
    /// Create from a path of the state and a scale. Return `None` if either is invalid.
    pub(crate) fn new(text: Arc<str>, scale: f64) -> Option<Self> {
        let path = parse_path(&text).ok()?;
        match path.split_first() {
            Some((Segment::Key(root), below)) if &**root == "state" && scale > 0.0 => {
                Some(Self { path: below.to_vec(), text, scale })
            }
            _ => None,
        }
    }

    /// Return the path below `state`.
    pub(crate) fn path(&self) -> &[Segment] {
        &self.path
    }

    /// Return the number at the path in a state, if any.
    pub(crate) fn number(&self, tree: &Value) -> Option<f64> {
        paths::lookup(tree, &self.path)?.as_number()
    }

    /// Return the movement between two numbers, in parts of the scale.
    #[expect(clippy::cast_possible_truncation, reason = "at most 2^32")]
    pub(crate) fn movement(&self, first: f64, last: f64) -> i64 {
        let scales = ((last - first) / self.scale).clamp(-MOST_SCALES, MOST_SCALES);
        (scales * PARTS).floor() as i64
    }
}

/// Add counts elementwise.
pub(crate) fn add(to: &mut [u64], counts: &[u64]) {
    to.iter_mut().zip(counts).for_each(|(to, count)| *to += count);
}

fn add_by_turn(to: &mut BTreeMap<u64, u64>, counts: &BTreeMap<u64, u64>) {
    for (turn, count) in counts {
        *to.entry(*turn).or_default() += count;
    }
}

fn by_turn(counts: &BTreeMap<u64, u64>) -> Value {
    counts.iter().map(|(turn, number)| Value::from(vec![count(*turn), count(*number)])).collect()
}

#[expect(clippy::cast_precision_loss, reason = "a million moves of 2^32 at most")]
fn number(moved: i64) -> Value {
    Value::Number(moved as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_move_is_rounded_down_and_bounded() {
        let watched = WatchedPath::new("state.a".into(), 2.0).unwrap();
        for (first, last, expected) in [
            (1.0, 3.0, 1 << 20),
            (3.0, 1.0, -(1 << 20)),
            (0.0, 1e-7, 0),
            (0.0, -1e-7, -1),
            (0.0, 1e9, 1 << 32),
            (1e308, -1e308, -(1 << 32)),
        ] {
            assert_eq!(watched.movement(first, last), expected, "{first} {last}");
        }
    }

    #[test]
    fn a_watched_path_needs_a_state_path_and_a_positive_scale() {
        for (path, scale) in
            [("a", 1.0), ("params.a", 1.0), ("state.", 1.0), ("state.a", 0.0), ("state.a", -1.0)]
        {
            assert!(WatchedPath::new(path.into(), scale).is_none(), "{path} {scale}");
        }
    }
}
