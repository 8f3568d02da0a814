//! Parser of requests: each text and each list of roles is read once.

use std::collections::HashMap;
use std::sync::Arc;

use super::requests::{ArgumentValues, Request, Requests, Text};
use super::tools::{Tool, Tools, to_number};
use crate::document;
use crate::error::Result;
use crate::strict_json;
use crate::value::Value;

/// Parser of requests for the tools of a policy.
pub struct RequestParser<'p> {
    tools: &'p Tools,
    read: Requests,
    texts: HashMap<Arc<str>, u32>,
    callers: HashMap<Box<[Arc<str>]>, u32>,
    /// The roles of the last request. Most requests have the same roles.
    last: (Box<[Arc<str>]>, u32),
}

impl<'p> RequestParser<'p> {
    pub(super) fn new(tools: &'p Tools) -> Self {
        let (texts, callers) = (HashMap::new(), HashMap::new());
        Self { tools, read: Requests::default(), texts, callers, last: (Box::default(), u32::MAX) }
    }

    /// Add a request from its document, the JSON of `{server_name, tool_name, arguments, roles}`.
    ///
    /// # Errors
    ///
    /// `SPEC_INVALID`, or an error of the strict JSON parser.
    pub fn add_document(&mut self, request: &[u8]) -> Result<()> {
        let given = strict_json::parse(request)?;
        let request = document::object(&given)?;
        let name = |key| document::text(document::field(request, key)?);
        let roles = document::list(document::field(request, "roles")?)?;
        let mut names = Vec::with_capacity(roles.len());
        for role in roles {
            names.push(document::text(role)?.into());
        }
        let arguments = document::field(request, "arguments")?;
        self.add(name("server_name")?, name("tool_name")?, arguments.clone(), names.into());
        Ok(())
    }

    /// Add a request whose arguments are within the limits of the strict JSON parser.
    pub fn add(&mut self, server: &str, tool: &str, arguments: Value, roles: Box<[Arc<str>]>) {
        let request = self.tools.number(server, tool).and_then(|number| {
            let tool = self.tools.get(number)?;
            let first = to_number(self.read.arguments.len());
            self.arguments(tool, &arguments);
            Some(Request { tool: number, first, caller: self.caller(roles), arguments })
        });
        self.read.all.push(request);
    }

    /// Return the parsed requests.
    #[must_use]
    pub fn finish(self) -> Requests {
        self.read
    }

    fn arguments(&mut self, tool: &Tool, arguments: &Value) {
        for argument in &tool.paths {
            let start = to_number(self.read.values.len());
            let is_broken = match argument.of(arguments) {
                None | Some(Value::Null) => false,
                Some(Value::Array(items)) => !items.iter().all(|item| self.text(item)),
                Some(value) => !self.text(value),
            };
            let values = start..to_number(self.read.values.len());
            self.read.arguments.push(ArgumentValues { values, is_broken });
        }
    }

    /// Store a value if it is a text. Return True if it is one.
    fn text(&mut self, value: &Value) -> bool {
        let Value::Text(text) = value else { return false };
        let next = to_number(self.read.texts.len());
        let number = *self.texts.entry(Arc::clone(text)).or_insert_with(|| {
            self.read.texts.push(Text::new(text));
            next
        });
        self.read.values.push(number);
        true
    }

    fn caller(&mut self, roles: Box<[Arc<str>]>) -> u32 {
        if self.last.0 != roles || self.last.1 == u32::MAX {
            let next = to_number(self.read.callers.len());
            let number = *self.callers.entry(roles.clone()).or_insert_with(|| {
                self.read.callers.push(roles.iter().map(Value::from).collect());
                next
            });
            self.last = (roles, number);
        }
        self.last.1
    }
}
