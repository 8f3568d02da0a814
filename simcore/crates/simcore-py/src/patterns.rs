//! Patterns: an index that is built once and searched with the texts of a subject.

use pyo3::prelude::*;
use simcore::patterns::{self, Predicate, Row, Subject};

/// A predicate from Python: text or expression, is an expression, is the whole text, folds case, required
/// literals, further required literals.
type Given = (String, bool, bool, bool, Option<Vec<String>>, Vec<Vec<String>>);

/// A pattern from Python: predicates, anchor, minimum and maximum number of earlier answers.
type GivenRow = ([Option<usize>; 3], Option<usize>, i64, i64);

/// Index of many patterns: immutable, safe to share between threads.
#[pyclass(frozen, module = "peripety_simcore")]
pub(crate) struct Patterns(patterns::Patterns);

#[pymethods]
impl Patterns {
    /// Build an index of patterns that refer to predicates by number.
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

    /// Return the number of the first matching pattern that is not in `skip`.
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

    /// Return True if one pattern matches.
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
