//! Single tool calls: a call that is decided once, with lazy parsing.

use std::cell::OnceCell;

use super::attributes::{Attributes, is_role_in};
use super::entries::Among;
use super::tools::Tool;
use super::value_kinds::ValueError;
use crate::json_node::{Json, Node, View};
use crate::value::Value;

/// A tool call by a caller with some roles.
#[derive(Debug)]
pub struct Call<'a> {
    /// `None` if the policy does not cover the tool.
    pub(super) tool: Option<u32>,
    pub(super) arguments: Node<'a>,
    pub(super) roles: &'a [&'a str],
}

impl<'a> Call<'a> {
    /// Return the attributes of the call of a tool.
    pub(super) fn attributes<'c>(&'c self, tool: &'c Tool) -> impl Attributes + use<'a, 'c> {
        SingleCall { call: self, tool, arguments: OnceCell::new(), roles: OnceCell::new() }
    }
}

/// A call during its decision. Shared values are created only if an expression is evaluated.
struct SingleCall<'c, 'a> {
    call: &'c Call<'a>,
    tool: &'c Tool,
    arguments: OnceCell<Value>,
    roles: OnceCell<Value>,
}

impl Attributes for SingleCall<'_, '_> {
    fn arguments(&self) -> &Value {
        self.arguments.get_or_init(|| self.call.arguments.to_value())
    }

    fn roles(&self) -> &Value {
        self.roles.get_or_init(|| self.call.roles.iter().copied().map(Value::from).collect())
    }

    fn has_role(&self, wanted: &[Box<str>]) -> bool {
        self.call.roles.iter().any(|role| is_role_in(role, wanted))
    }

    fn compare(
        &mut self,
        argument: u32,
        _matcher: usize,
        among: &Among,
        mut report: impl FnMut(bool),
    ) -> Result<(), ValueError> {
        let mut compare = |text: &str| {
            report(among.contains(&among.kind().parse(text)?));
            Ok(())
        };
        let argument = self.tool.paths.get(argument as usize);
        match argument.and_then(|argument| argument.of(&self.call.arguments)).map(Json::view) {
            None | Some(View::Null) => Ok(()),
            Some(View::Text(text)) => compare(text),
            Some(View::Array(items)) => items.iter().try_for_each(|item| match item.view() {
                View::Text(text) => compare(text),
                _ => Err(ValueError::NO_TEXT),
            }),
            Some(_) => Err(ValueError::NO_TEXT),
        }
    }
}
