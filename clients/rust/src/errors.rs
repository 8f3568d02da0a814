//! Typed errors of calls.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use tonic::{Code, Status};
use tonic_types::StatusExt;

use crate::api::common::v1::{ErrorReason, FieldViolation, ItemError};

/// Result of this crate.
pub type Result<Value> = std::result::Result<Value, Error>;

/// Error of a call, or of one item of a batch. Decide by its `reason`.
#[derive(Clone, Debug)]
pub struct Error {
    /// Status code of the call.
    pub code: Code,
    /// Reason of the server; unspecified if it sent none, or one that this version does not know.
    pub reason: ErrorReason,
    /// Reason as the server sent it, such as `STALE_TURN` or the code of a finding; empty if the error did not come
    /// from a Peripety server.
    pub reason_name: String,
    /// One sentence for display: the problem and the remedy.
    pub message: String,
    /// Invalid fields of the request.
    pub violations: Vec<FieldViolation>,
    /// Time to wait before a retry, if the server sent one.
    pub retry_after: Option<Duration>,
    /// Identifiers and limits that the message refers to.
    pub metadata: HashMap<String, String>,
}

impl Error {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            reason: ErrorReason::Unspecified,
            reason_name: String::new(),
            message: message.into(),
            violations: Vec::new(),
            retry_after: None,
            metadata: HashMap::new(),
        }
    }

    pub(crate) fn invalid(message: String) -> Self {
        Self::new(Code::InvalidArgument, message)
    }

    /// Returns true if the connection or the server was lost, so that the effect of the call is unknown. Send the same
    /// request with the same `request_id` again.
    #[must_use]
    pub fn is_lost_connection(&self) -> bool {
        match self.code {
            Code::Unavailable => true,
            // Of a broken stream, or of a proxy.
            Code::Aborted | Code::Cancelled | Code::DataLoss | Code::Internal | Code::Unknown => {
                self.reason_name.is_empty()
            }
            _ => false,
        }
    }
}

fn reason_of(name: &str) -> ErrorReason {
    ErrorReason::from_str_name(&format!("ERROR_REASON_{name}")).unwrap_or(ErrorReason::Unspecified)
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}", self.code)?;
        if !self.reason_name.is_empty() {
            write!(formatter, " {}", self.reason_name)?;
        }
        write!(formatter, ": {}", self.message)?;
        for violation in &self.violations {
            write!(formatter, "\n  {}: {}", violation.field, violation.description)?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

impl From<Status> for Error {
    fn from(status: Status) -> Self {
        let mut error = Self::new(status.code(), status.message());
        let details = status.get_error_details();
        if let Some(info) = details.error_info().filter(|info| info.domain == "peripety") {
            error.reason = reason_of(&info.reason);
            error.reason_name.clone_from(&info.reason);
            error.metadata.clone_from(&info.metadata);
        }
        if let Some(request) = details.bad_request() {
            error.violations = (request.field_violations.iter())
                .map(|violation| FieldViolation {
                    field: violation.field.clone(),
                    description: violation.description.clone(),
                })
                .collect();
        }
        error.retry_after = details.retry_info().and_then(|info| info.retry_delay);
        if error.reason_name.is_empty() {
            let problem = std::mem::take(&mut error.message);
            error.message = match error.code {
                Code::Unavailable => {
                    format!("server does not respond ({problem}); check that it runs at this address")
                }
                Code::DeadlineExceeded => {
                    format!("server did not respond in time ({problem}); set a later deadline")
                }
                Code::Unimplemented => {
                    format!("server does not implement this call ({problem}); it may be an older version")
                }
                _ => problem,
            };
        }
        error
    }
}

impl From<ItemError> for Error {
    fn from(item: ItemError) -> Self {
        Self {
            code: Code::from_i32(item.code),
            reason: reason_of(&item.reason),
            reason_name: item.reason,
            message: item.message,
            violations: item.violations,
            retry_after: item.retry_after.and_then(|delay| delay.try_into().ok()),
            metadata: item.metadata,
        }
    }
}
