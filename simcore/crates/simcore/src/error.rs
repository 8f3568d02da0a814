//! Why the engine refused something.

use std::fmt;

/// A refusal: a stable code, one sentence, and the place it concerns.
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

/// The result of anything that the engine may refuse.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// A refusal that concerns no particular place.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self(Box::new(Reason { code, message: message.into(), path: String::new() }))
    }

    /// The same refusal, with the place it concerns: a JSON Pointer.
    #[must_use]
    pub fn at(mut self, path: impl Into<String>) -> Self {
        self.0.path = path.into();
        self
    }

    /// The stable reason.
    #[must_use]
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// One sentence for people.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Where: a JSON Pointer, or empty.
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
        /// Every reason for which the engine refuses something.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Code {
            $($(#[$doc])* $name,)*
        }

        impl Code {
            /// The code as it is written in answers, such as `BAD_PATH`.
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
    /// A value is no host, or a URL without one.
    BadDomain = "BAD_DOMAIN",
    /// The text of a duration is malformed.
    BadDuration = "BAD_DURATION",
    /// A value is no address of e-mail.
    BadEmail = "BAD_EMAIL",
    /// The text of a path is malformed.
    BadPath = "BAD_PATH",
    /// An argument has a role that only texts have, and is none.
    BadValue = "BAD_VALUE",
    /// What the narrator proposes is no change.
    ChangeInvalid = "CHANGE_INVALID",
    /// A value looks like an operation or a template.
    CodeInValue = "CODE_IN_VALUE",
    /// A divisor is zero.
    DivisionByZero = "DIVISION_BY_ZERO",
    /// The document has too many bytes.
    DocumentTooLarge = "DOCUMENT_TOO_LARGE",
    /// An object has the same key twice.
    DuplicateKey = "DUPLICATE_KEY",
    /// There is nothing to remove from an array.
    EmptyArray = "EMPTY_ARRAY",
    /// A key is dangerous to clients in other languages.
    ForbiddenKey = "FORBIDDEN_KEY",
    /// An expression costs more than its budget.
    FuelExhausted = "FUEL_EXHAUSTED",
    /// A parameter of an action is not legal.
    IllegalParam = "ILLEGAL_PARAM",
    /// An operator was given arguments that it cannot take.
    InvalidArguments = "INVALID_ARGUMENTS",
    /// The text is not JSON.
    InvalidJson = "INVALID_JSON",
    /// The bytes are not UTF-8.
    InvalidUtf8 = "INVALID_UTF8",
    /// A key has too many bytes.
    KeyTooLong = "KEY_TOO_LONG",
    /// Half of a surrogate pair stands alone.
    LoneSurrogate = "LONE_SURROGATE",
    /// There is nothing at a path that is to be changed.
    MissingPath = "MISSING_PATH",
    /// Something that is no number stands where one is needed.
    NotANumber = "NOT_A_NUMBER",
    /// Something that JSON cannot hold.
    NotJson = "NOT_JSON",
    /// A number, or the result of an operation, does not fit.
    NumberRange = "NUMBER_RANGE",
    /// The result of an operation is no finite number.
    NumericRange = "NUMERIC_RANGE",
    /// The options of a dry-run are not what they must be.
    OptionsInvalid = "OPTIONS_INVALID",
    /// A change that the narrator may not make.
    OutOfScope = "OUT_OF_SCOPE",
    /// The preconditions of an action do not hold.
    PreconditionFailed = "PRECONDITION_FAILED",
    /// A roll is asked for that cannot be made.
    RollInvalid = "ROLL_INVALID",
    /// The run has ended.
    RunEnded = "RUN_ENDED",
    /// A snapshot was not made by this engine.
    SnapshotInvalid = "SNAPSHOT_INVALID",
    /// A document that was to be compiled is not a valid one.
    SpecInvalid = "SPEC_INVALID",
    /// A state would outgrow its limits.
    StateLimit = "STATE_LIMIT",
    /// A string has too many bytes.
    StringTooLong = "STRING_TOO_LONG",
    /// Values are nested too deeply.
    TooDeep = "TOO_DEEP",
    /// The document has too many values.
    TooManyNodes = "TOO_MANY_NODES",
    /// A call takes more steps than it may.
    TurnLimit = "TURN_LIMIT",
    /// A value is of another type than an operation needs.
    TypeMismatch = "TYPE_MISMATCH",
    /// The scenario has no such action.
    UnknownAction = "UNKNOWN_ACTION",
    /// No such operator.
    UnknownOperator = "UNKNOWN_OPERATOR",
}
