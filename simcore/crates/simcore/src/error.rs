//! Errors of the engine: stable codes, one sentence, and a JSON Pointer.

use std::fmt;

/// An error: a stable code, one sentence, and the place it concerns.
///
/// Both cores give the same code, message and path for the same input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(Box<Reason>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Reason {
    code: Code,
    message: String,
    path: String,
}

/// The result of an operation of the engine.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Create an error without a place.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self(Box::new(Reason { code, message: message.into(), path: String::new() }))
    }

    /// Return the same error with a place: a JSON Pointer.
    #[must_use]
    pub fn at(mut self, path: impl Into<String>) -> Self {
        self.0.path = path.into();
        self
    }

    /// Return the stable code.
    #[must_use]
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// Return the message: one sentence for humans.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Return the place as a JSON Pointer, or empty.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.0.path
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code().as_str(), self.message())
    }
}

impl std::error::Error for Error {}

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// Error codes of the engine.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Code {
            $($(#[$doc])* $name,)*
        }

        impl Code {
            /// Return the code as clients see it, such as `BAD_PATH`.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

codes! {
    /// A value is not a host or a URL with a host.
    BadDomain = "BAD_DOMAIN",
    /// The text of a duration is malformed.
    BadDuration = "BAD_DURATION",
    /// A value is not an e-mail address.
    BadEmail = "BAD_EMAIL",
    /// The text of a path is malformed.
    BadPath = "BAD_PATH",
    /// An argument has a role that only texts can have, and is not a text.
    BadValue = "BAD_VALUE",
    /// A proposal of the narrator is not a change.
    ChangeInvalid = "CHANGE_INVALID",
    /// A value looks like an operation or a template.
    CodeInValue = "CODE_IN_VALUE",
    /// A divisor is zero.
    DivisionByZero = "DIVISION_BY_ZERO",
    /// The document has too many bytes.
    DocumentTooLarge = "DOCUMENT_TOO_LARGE",
    /// An object has the same key twice.
    DuplicateKey = "DUPLICATE_KEY",
    /// An array is empty, so an item cannot be removed.
    EmptyArray = "EMPTY_ARRAY",
    /// A key is dangerous to clients in other languages.
    ForbiddenKey = "FORBIDDEN_KEY",
    /// An expression costs more than its budget.
    FuelExhausted = "FUEL_EXHAUSTED",
    /// A parameter of an action is not legal.
    IllegalParam = "ILLEGAL_PARAM",
    /// An operator got arguments that it does not accept.
    InvalidArguments = "INVALID_ARGUMENTS",
    /// The text is not JSON.
    InvalidJson = "INVALID_JSON",
    /// The bytes are not UTF-8.
    InvalidUtf8 = "INVALID_UTF8",
    /// A key has too many bytes.
    KeyTooLong = "KEY_TOO_LONG",
    /// A lone surrogate: half of a pair.
    LoneSurrogate = "LONE_SURROGATE",
    /// The path of a change does not exist.
    MissingPath = "MISSING_PATH",
    /// A value is not a number, and a number is required.
    NotANumber = "NOT_A_NUMBER",
    /// A value cannot be represented in JSON.
    NotJson = "NOT_JSON",
    /// A number, or the result of an operation, does not fit.
    NumberRange = "NUMBER_RANGE",
    /// The result of an operation is not a finite number.
    NumericRange = "NUMERIC_RANGE",
    /// The options of a dry-run are invalid.
    OptionsInvalid = "OPTIONS_INVALID",
    /// A change is outside of the narrator's scope.
    OutOfScope = "OUT_OF_SCOPE",
    /// The preconditions of an action do not hold.
    PreconditionFailed = "PRECONDITION_FAILED",
    /// A roll request is invalid.
    RollInvalid = "ROLL_INVALID",
    /// The run has ended.
    RunEnded = "RUN_ENDED",
    /// A snapshot was not made by this engine.
    SnapshotInvalid = "SNAPSHOT_INVALID",
    /// A document to compile is not valid.
    SpecInvalid = "SPEC_INVALID",
    /// A state would exceed its limits.
    StateLimit = "STATE_LIMIT",
    /// A string has too many bytes.
    StringTooLong = "STRING_TOO_LONG",
    /// Values are nested too deeply.
    TooDeep = "TOO_DEEP",
    /// The document has too many values.
    TooManyNodes = "TOO_MANY_NODES",
    /// A call needs more steps than its limit.
    TurnLimit = "TURN_LIMIT",
    /// An operation requires a value of another type.
    TypeMismatch = "TYPE_MISMATCH",
    /// The scenario has no such action.
    UnknownAction = "UNKNOWN_ACTION",
    /// An operator is unknown.
    UnknownOperator = "UNKNOWN_OPERATOR",
}
