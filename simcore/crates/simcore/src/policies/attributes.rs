//! Attributes of a request that conditions read, for each representation of a request.

use super::entries::Among;
use super::value_kinds::ValueError;
use crate::value::Value;

/// Attributes of a request that conditions read.
pub(super) trait Attributes {
    /// Return the arguments of the tool call.
    fn arguments(&self) -> &Value;

    /// Return the roles of the caller, for expressions.
    fn roles(&self) -> &Value;

    /// Return True if the caller has one of some roles, which are sorted.
    fn has_role(&self, wanted: &[Box<str>]) -> bool;

    /// Report for each text at an argument if it matches the entries of a matcher. `number` is the number of
    /// the matcher in its condition.
    ///
    /// # Errors
    ///
    /// The first value that is not a text or cannot be parsed.
    fn compare(
        &mut self,
        argument: u32,
        matcher: usize,
        among: &Among,
        report: impl FnMut(bool),
    ) -> Result<(), ValueError>;
}

/// Return True if a role is one of some roles, which are sorted.
pub(super) fn is_role_in(role: &str, wanted: &[Box<str>]) -> bool {
    wanted.binary_search_by(|name| (**name).cmp(role)).is_ok()
}
