//! Which of many patterns is the first to match, without trying them all.
//!
//! A pattern is found by one of its predicates, its anchor: by the whole text, by a literal that the text has to
//! contain, or, where it requires none, by regular expressions that are searched together. What is found is then
//! tried as a whole, in the order of the patterns.

mod anchors;
mod literal_index;
mod predicate;

use anchors::Anchors;
pub use predicate::Predicate;

/// A pattern: predicates by their numbers, one for each text of a subject; none holds always.
pub struct Row {
    /// The predicates of the text, the model and the tool result.
    pub predicates: [Option<usize>; 3],
    /// The one by which the pattern is found.
    pub anchor: Option<usize>,
    /// Lowest number of earlier answers.
    pub first: i64,
    /// Highest number of earlier answers.
    pub last: i64,
}

/// What patterns are held against.
pub struct Subject<'a> {
    /// The text, the model and the tool result.
    pub texts: [Option<&'a str>; 3],
    /// How many answers came before.
    pub message_index: i64,
}

/// Many patterns as one index: immutable, safe to share between threads.
pub struct Patterns {
    predicates: [Vec<Predicate>; 3],
    rows: Vec<Row>,
    anchors: [Anchors; 3],
    everywhere: Vec<usize>,
}

impl Patterns {
    /// An index over patterns, which name the predicates of their texts by numbers.
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

    /// How many patterns there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The number of the first pattern that matches and is not to be skipped.
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

    /// Whether one pattern matches.
    #[must_use]
    pub fn matches(&self, number: usize, subject: &Subject<'_>) -> bool {
        self.holds(number, subject, None)
    }

    /// Whether a pattern matches; of one predicate that may be known.
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
