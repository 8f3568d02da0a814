//! What conditions read of a request, however that is kept.

use super::entries::Among;
use super::value_kinds::ValueError;
use crate::value::Value;

/// What conditions read of a request.
pub(super) trait Attributes {
    /// What the tool is called with.
    fn arguments(&self) -> &Value;

    /// The roles of the caller, as expressions see them.
    fn roles(&self) -> &Value;

    /// Whether the caller has one of some roles, which are in order.
    fn has_role(&self, wanted: &[Box<str>]) -> bool;

    /// Tell of each text at an argument whether it is among what a matcher names, which has a number in its condition.
    ///
    /// # Errors
    ///
    /// About the first that is no text, or cannot be read.
    fn compare(
        &mut self,
        argument: u32,
        matcher: usize,
        among: &Among,
        tell: impl FnMut(bool),
    ) -> Result<(), ValueError>;
}

/// Whether a role is one of some, which are in order.
pub(super) fn is_role_in(role: &str, wanted: &[Box<str>]) -> bool {
    wanted.binary_search_by(|name| (**name).cmp(role)).is_ok()
}
