//! First matching pattern of many, without a test of each pattern.
//!
//! Each pattern is found by one of its predicates, its anchor: the whole text, or a literal that the text
//! must contain. Anchors without a literal are regular expressions, which are searched as a set. Candidates
//! are then verified in the order of the patterns.

mod anchors;
mod literal_index;
mod predicate;

use anchors::Anchors;
pub use predicate::Predicate;

/// A pattern: the numbers of its predicates, one for each text of a subject. A missing predicate always
/// holds.
pub struct Row {
    /// The predicates of the text, the model and the tool result.
    pub predicates: [Option<usize>; 3],
    /// The predicate that the pattern is found by.
    pub anchor: Option<usize>,
    /// Minimum number of earlier answers.
    pub first: i64,
    /// Maximum number of earlier answers.
    pub last: i64,
}

/// The input that patterns are compared with.
pub struct Subject<'a> {
    /// The text, the model and the tool result.
    pub texts: [Option<&'a str>; 3],
    /// Number of earlier answers.
    pub message_index: i64,
}

/// Index of many patterns: immutable, safe to share between threads.
pub struct Patterns {
    predicates: [Vec<Predicate>; 3],
    rows: Vec<Row>,
    anchors: [Anchors; 3],
    everywhere: Vec<usize>,
}

impl Patterns {
    /// Build an index of patterns that refer to predicates by number.
    #[must_use]
    pub fn new(predicates: [Vec<Predicate>; 3], rows: Vec<Row>) -> Self {
        let mut by_predicate = predicates.each_ref().map(|known| vec![Vec::new(); known.len()]);
        let mut everywhere = Vec::new();
        for (number, row) in rows.iter().enumerate() {
            let rows = row.anchor.and_then(|field| {
                let predicate = (*row.predicates.get(field)?)?;
                by_predicate.get_mut(field)?.get_mut(predicate)
            });
            rows.unwrap_or(&mut everywhere).push(number);
        }
        let [texts, models, results] = &predicates;
        let [by_text, by_model, by_result] = by_predicate;
        let anchors =
            [Anchors::new(texts, by_text), Anchors::new(models, by_model), Anchors::new(results, by_result)];
        Self { predicates, rows, anchors, everywhere }
    }

    /// Return the number of patterns.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Return True if the index is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Return the number of the first matching pattern that is not skipped.
    pub fn first(&self, subject: &Subject<'_>, mut skip: impl FnMut(usize) -> bool) -> Option<usize> {
        let mut matches = |number, proven| self.holds(number, subject, proven) && !skip(number);
        let mut best = self.everywhere.iter().copied().find(|&number| matches(number, None));
        let mut found = Vec::new();
        for ((anchors, text), field) in self.anchors.iter().zip(subject.texts).zip(0..) {
            if let Some(text) = text {
                anchors.find(text, |number, proven| {
                    if best.is_none_or(|best| number < best) {
                        found.push((number, proven.then_some(field)));
                    }
                });
            }
        }
        found.sort_unstable();
        found.dedup_by_key(|&mut (number, _)| number);
        for (number, proven) in found {
            if best.is_some_and(|best| number >= best) {
                break;
            }
            if matches(number, proven) {
                best = Some(number);
                break;
            }
        }
        for (anchors, text) in self.anchors.iter().zip(subject.texts) {
            if let Some(text) = text {
                anchors.search(text, &mut best, |number| matches(number, None));
            }
        }
        best
    }

    /// Return True if one pattern matches.
    #[must_use]
    pub fn matches(&self, number: usize, subject: &Subject<'_>) -> bool {
        self.holds(number, subject, None)
    }

    /// Return True if a pattern matches. One predicate may already be proven.
    fn holds(&self, number: usize, subject: &Subject<'_>, proven: Option<usize>) -> bool {
        let Some(row) = self.rows.get(number) else { return false };
        (row.first..=row.last).contains(&subject.message_index)
            && (0..).zip(&self.predicates).zip(row.predicates).zip(subject.texts).all(
                |(((field, predicates), wanted), text)| match (wanted, text) {
                    (None, _) => true,
                    (Some(_), None) => false,
                    (Some(_), Some(_)) if proven == Some(field) => true,
                    (Some(wanted), Some(text)) => {
                        predicates.get(wanted).is_some_and(|predicate| predicate.holds(text))
                    }
                },
            )
    }
}
