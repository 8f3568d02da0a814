//! Index of anchors: candidate patterns by one text of a subject.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use regex::bytes::RegexSet;

use super::literal_index::LiteralIndex;
use super::predicate::{Predicate, Test, compile_set, contains};

const SEARCHED_TOGETHER: usize = 64;

/// Patterns with an anchor in one of the texts.
pub(super) struct Anchors {
    /// Lengths of the texts that patterns are equal to.
    lengths: HashSet<usize>,
    equal: HashMap<Box<str>, Vec<usize>>,
    equal_folded: HashMap<Box<str>, Vec<usize>>,
    parts: LiteralIndex,
    /// For each literal, its candidate patterns.
    by_literal: Vec<Vec<Candidate>>,
    anything: Vec<usize>,
    searches: Vec<Searches>,
}

/// A candidate pattern of a literal.
struct Candidate {
    row: usize,
    proof: Evidence,
}

/// The conclusion from the occurrence of a literal.
enum Evidence {
    /// The predicate holds.
    Holds,
    /// The predicate holds if this exact text occurs there.
    Exactly(Box<str>),
    /// The predicate may hold if one literal of each list occurs too.
    Besides(Arc<[Vec<String>]>),
}

/// Regular expressions without a required literal, in the order of the patterns.
struct Searches {
    first: usize,
    patterns: Vec<(String, Vec<usize>)>,
    set: OnceLock<Option<RegexSet>>,
}

impl Anchors {
    /// Build the index. `rows` lists the patterns of each predicate.
    pub(super) fn new(predicates: &[Predicate], rows: Vec<Vec<usize>>) -> Self {
        let mut anchors = Self {
            lengths: HashSet::new(),
            equal: HashMap::new(),
            equal_folded: HashMap::new(),
            parts: LiteralIndex::default(),
            by_literal: Vec::new(),
            anything: Vec::new(),
            searches: Vec::new(),
        };
        let mut numbers = HashMap::<&str, usize>::new();
        let mut searched = Vec::new();
        for (predicate, rows) in predicates.iter().zip(rows) {
            if rows.is_empty() {
                continue;
            }
            match (&predicate.test, &predicate.literals) {
                (Test::Equals { text, folds }, _) => {
                    anchors.lengths.insert(text.len());
                    let equal = if *folds { &mut anchors.equal_folded } else { &mut anchors.equal };
                    equal.entry(text.as_str().into()).or_default().extend(rows);
                }
                (test, Some(literals)) => {
                    for literal in literals {
                        let next = numbers.len();
                        let number = *numbers.entry(literal).or_insert(next);
                        if number == next {
                            anchors.by_literal.push(Vec::new());
                        }
                        if let Some(found) = anchors.by_literal.get_mut(number) {
                            found.extend(
                                rows.iter().map(|&row| Candidate { row, proof: Evidence::from_test(test) }),
                            );
                        }
                    }
                }
                (Test::Search(search), None) => searched.push((search.pattern.clone(), rows)),
                (_, None) => anchors.anything.extend(rows),
            }
        }
        let mut literals = vec![Box::<[u8]>::default(); numbers.len()];
        for (literal, number) in numbers {
            if let Some(place) = literals.get_mut(number) {
                *place = literal.as_bytes().into();
            }
        }
        anchors.parts = LiteralIndex::new(literals);
        searched.sort_unstable_by_key(|(_, rows)| rows.first().copied());
        while !searched.is_empty() {
            let rest = searched.split_off(searched.len().min(SEARCHED_TOGETHER));
            let patterns = std::mem::replace(&mut searched, rest);
            let first = patterns.iter().filter_map(|(_, rows)| rows.first().copied()).min();
            anchors.searches.push(Searches {
                first: first.unwrap_or_default(),
                patterns,
                set: OnceLock::new(),
            });
        }
        anchors
    }

    /// Report each candidate pattern, and True if its predicate is known to hold. Searched expressions are
    /// not included.
    pub(super) fn find(&self, text: &str, mut report: impl FnMut(usize, bool)) {
        self.anything.iter().for_each(|&row| report(row, true));
        if self.by_literal.is_empty() && self.lengths.is_empty() {
            return;
        }
        let folded = text.to_ascii_lowercase();
        if self.lengths.contains(&text.len()) {
            self.equal.get(text).into_iter().flatten().for_each(|&row| report(row, true));
            self.equal_folded.get(folded.as_str()).into_iter().flatten().for_each(|&row| report(row, true));
        }
        self.parts.find(folded.as_bytes(), |literal, place| {
            for found in self.by_literal.get(literal).into_iter().flatten() {
                match &found.proof {
                    Evidence::Holds => report(found.row, true),
                    Evidence::Exactly(wanted) => report(found.row, occurs_at(text, place, wanted)),
                    Evidence::Besides(lists) if occur(&folded, lists) => report(found.row, false),
                    Evidence::Besides(_) => {}
                }
            }
        });
    }

    /// Search for expressions without a required literal, if they can be the first match. Each hit must be
    /// verified.
    pub(super) fn search(
        &self,
        text: &str,
        best: &mut Option<usize>,
        mut matches: impl FnMut(usize) -> bool,
    ) {
        for searches in &self.searches {
            if best.is_some_and(|best| searches.first >= best) {
                break;
            }
            let patterns = searches.patterns.iter().map(|(pattern, _)| pattern.as_str());
            let Some(set) = searches.set.get_or_init(|| compile_set(patterns)) else { continue };
            // `is_match` takes half the time of `matches`, and mostly nothing matches.
            if !set.is_match(text.as_bytes()) {
                continue;
            }
            for (_, rows) in
                set.matches(text.as_bytes()).iter().filter_map(|number| searches.patterns.get(number))
            {
                let earlier = rows.iter().copied().take_while(|row| best.is_none_or(|best| *row < best));
                if let Some(row) = { earlier }.find(|&row| matches(row)) {
                    *best = Some(row);
                }
            }
        }
    }
}

impl Evidence {
    fn from_test(test: &Test) -> Self {
        match test {
            Test::Contains { folds: true, .. } => Self::Holds,
            Test::Contains { text, .. } | Test::Equals { text, .. } => Self::Exactly(text.as_str().into()),
            Test::Search(search) => Self::Besides(Arc::clone(&search.besides)),
        }
    }
}

fn occurs_at(text: &str, place: usize, wanted: &str) -> bool {
    text.as_bytes().get(place..).is_some_and(|rest| rest.starts_with(wanted.as_bytes()))
}

fn occur(text: &str, lists: &[Vec<String>]) -> bool {
    lists.iter().all(|literals| literals.iter().any(|literal| contains(text, literal)))
}
