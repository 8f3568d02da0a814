//! Patterns: an index that is made once, and asked with the texts of a subject.

use pyo3::prelude::*;
use simcore::patterns::{self, Predicate, Row, Subject};

/// What one text is held against: the text or expression; whether it is an expression, the whole text, and in
/// which case; and what a text like it has to contain, and besides.
type Given = (String, bool, bool, bool, Option<Vec<String>>, Vec<Vec<String>>);

/// A pattern: its predicates, which of them it is found by, and the least and the greatest number of earlier answers.
type GivenRow = ([Option<usize>; 3], Option<usize>, i64, i64);

/// Many patterns as one index: immutable, safe to share between threads.
#[pyclass(frozen, module = "peripety_simcore")]
pub(crate) struct Patterns(patterns::Patterns);

#[pymethods]
impl Patterns {
    /// An index over patterns, each of which names the predicates of its texts by numbers.
    #[new]
    fn new(py: Python<'_>, predicates: [Vec<Given>; 3], rows: Vec<GivenRow>) -> Self {
        py.detach(|| {
            let predicates = predicates.map(|known| known.into_iter().map(predicate).collect());
            let rows = rows.into_iter().map(|(predicates, anchor, first, last)| Row {
                predicates,
                anchor,
                first,
                last,
            });
            Self(patterns::Patterns::new(predicates, rows.collect()))
        })
    }

    /// The number of the first pattern that matches and is not in `skip`.
    #[pyo3(signature = (text, model, tool_result, message_index, skip, /))]
    fn first(
        &self,
        text: &str,
        model: &str,
        tool_result: Option<&str>,
        message_index: i64,
        skip: &Bound<'_, PyAny>,
    ) -> PyResult<Option<usize>> {
        let mut failure = None;
        let found = self.0.first(&subject(text, model, tool_result, message_index), |number| {
            skip.contains(number).unwrap_or_else(|error| {
                failure = Some(error);
                false
            })
        });
        failure.map_or(Ok(found), Err)
    }

    /// Whether one pattern matches.
    #[pyo3(signature = (index, text, model, tool_result, message_index, /))]
    fn matches(
        &self,
        index: usize,
        text: &str,
        model: &str,
        tool_result: Option<&str>,
        message_index: i64,
    ) -> bool {
        self.0.matches(index, &subject(text, model, tool_result, message_index))
    }
}

fn predicate((text, searched, whole, folds, literals, besides): Given) -> Predicate {
    if searched {
        Predicate::search(text, literals, besides)
    } else {
        Predicate::comparison(text, whole, folds, literals)
    }
}

fn subject<'a>(
    text: &'a str,
    model: &'a str,
    tool_result: Option<&'a str>,
    message_index: i64,
) -> Subject<'a> {
    Subject { texts: [Some(text), Some(model), tool_result], message_index }
}
