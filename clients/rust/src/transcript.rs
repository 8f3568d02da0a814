//! Verification of exported sessions, without a server and without an engine.

use std::fmt;
use std::io::{self, BufRead};

use serde_json::{Map, Number, Value, json};
use sha2::{Digest, Sha256};

/// A verified session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transcript {
    /// Number of turns.
    pub turns: u64,
    /// Chain hash after the last turn. It is proof only if you compare it with one from a trusted source.
    pub chain_hash: String,
    /// Hash of the state after the last turn; None without turns.
    pub state_hash: Option<String>,
    /// Hash of the specification.
    pub spec_hash: String,
}

/// First defect of a transcript, or the error of its reader.
#[derive(Debug)]
pub enum TranscriptError {
    /// The first false line.
    Defect {
        /// The line, from 1.
        line: u64,
        /// Its turn, if it is one.
        turn: Option<u64>,
        /// The defect.
        problem: String,
    },
    /// The transcript cannot be read.
    Unreadable(io::Error),
}

impl fmt::Display for TranscriptError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(error) => write!(formatter, "the transcript cannot be read: {error}"),
            Self::Defect { line, turn: None, problem } => {
                write!(formatter, "line {line}: {problem}; export the session again")
            }
            Self::Defect { line, turn: Some(turn), problem } => {
                write!(formatter, "line {line} (turn {turn}): {problem}; export the session again")
            }
        }
    }
}

impl std::error::Error for TranscriptError {}

impl From<io::Error> for TranscriptError {
    fn from(error: io::Error) -> Self {
        Self::Unreadable(error)
    }
}

type Checked<Value> = Result<Value, TranscriptError>;
type Object = Map<String, Value>;

/// Verifies an exported session: every line is canonical, every hash is the computed one, and nothing was left out. It
/// reads one line at a time.
///
/// It proves that the turns are those that led to the chain hash. Only a replay (`ImportSession`) proves that the rules
/// were followed.
///
/// # Errors
///
/// The first false line, or the error of the reader.
pub fn verify_transcript(bundle: impl BufRead) -> Checked<Transcript> {
    let mut lines = Lines::new(bundle)?;
    let header = lines.next(None)?;
    let is_supported = header.get("kind") == Some(&json!("peripety.session"))
        && ["version", "rng_version"].iter().all(|key| header.get(*key).and_then(Value::as_f64) == Some(1.0))
        && header.get("engine_version") == Some(&json!("1.0"));
    lines.check(is_supported, None, || "not a session of a supported version".into())?;
    let known =
        (text(&header, "spec_hash"), header.get("turns").and_then(Value::as_f64), header.get("first_seed"));
    let (Some(spec_hash), Some(turns), Some(seed @ Value::Number(_))) = known else {
        return Err(lines.defect(None, "a key of the header is missing or has another type".into()));
    };
    for key in ["spec_hash", "certificate_hash"] {
        if let Some(hash) = header.get(key).filter(|hash| !hash.is_null()) {
            lines.next(None)?;
            let found = sha256(lines.line.strip_suffix(b"\n").unwrap_or(&lines.line));
            lines
                .check(*hash == found, None, || format!("SHA-256 of the line is not {key} of the header"))?;
        }
    }
    let mut chain = sha256(&canonical(&json!({"seed": seed, "spec_hash": spec_hash})));
    let (mut turn, mut state_hash) = (0, None);
    while !lines.is_before_last() {
        turn += 1;
        (chain, state_hash) = lines.verify_turn(turn, &chain)?;
        lines.check(as_f64(turn) <= turns, Some(turn), || "more turns than the header declares".into())?;
    }
    let (next, defect) =
        (lines.number + 1, |line, problem: String| TranscriptError::Defect { line, turn: None, problem });
    if as_f64(turn) != turns {
        return Err(defect(next, "a turn is missing that the header declares".into()));
    }
    if text(&header, "chain_hash") != Some(&chain) {
        return Err(defect(1, format!("chain_hash: computed {chain}")));
    }
    if lines.ahead != lines.seal() {
        return Err(defect(next, "not the hash of the lines before it".into()));
    }
    Ok(Transcript { turns: turn, chain_hash: chain, state_hash, spec_hash: spec_hash.into() })
}

#[allow(clippy::cast_precision_loss)] // turns are counted one by one
fn as_f64(turn: u64) -> f64 {
    turn as f64
}

fn text<'a>(object: &'a Object, key: &str) -> Option<&'a String> {
    match object.get(key) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}

/// Reads a bundle line by line, and hashes all lines read.
struct Lines<Source> {
    source: Source,
    hash: Sha256,
    line: Vec<u8>,
    ahead: Vec<u8>,
    after: Vec<u8>,
    number: u64,
}

impl<Source: BufRead> Lines<Source> {
    fn new(source: Source) -> Checked<Self> {
        let mut lines = Self {
            source,
            hash: Sha256::new(),
            line: Vec::new(),
            ahead: Vec::new(),
            after: Vec::new(),
            number: 0,
        };
        lines.ahead = lines.read()?;
        lines.after = lines.read()?;
        Ok(lines)
    }

    fn read(&mut self) -> io::Result<Vec<u8>> {
        let mut line = Vec::new();
        self.source.read_until(b'\n', &mut line)?;
        Ok(line)
    }

    /// Returns true if at most one line is left.
    fn is_before_last(&self) -> bool {
        self.after.is_empty()
    }

    /// Returns the value of the next line, which must be an object in canonical form.
    fn next(&mut self, turn: Option<u64>) -> Checked<Object> {
        let after = self.read()?;
        self.line = std::mem::replace(&mut self.ahead, std::mem::replace(&mut self.after, after));
        self.number += 1;
        self.hash.update(&self.line);
        if let Ok(mut value) = serde_json::from_slice::<Value>(&self.line) {
            // Whatever the parser tolerates, such as keys that occur twice, is not the canonical form.
            let is_canonical =
                as_doubles(&mut value) && self.line.strip_suffix(b"\n") == Some(&canonical(&value));
            if let (true, Value::Object(object)) = (is_canonical, value) {
                return Ok(object);
            }
        }
        Err(self.defect(turn, "not an object in canonical JSON".into()))
    }

    fn defect(&self, turn: Option<u64>, problem: String) -> TranscriptError {
        TranscriptError::Defect { line: self.number, turn, problem }
    }

    fn check(&self, is_right: bool, turn: Option<u64>, problem: impl FnOnce() -> String) -> Checked<()> {
        if is_right { Ok(()) } else { Err(self.defect(turn, problem())) }
    }

    /// Returns the chain hash and the state hash after a turn.
    fn verify_turn(&mut self, number: u64, chain: &str) -> Checked<(String, Option<String>)> {
        let (turn, value) = (Some(number), self.next(Some(number))?);
        let end = value.get("events").and_then(Value::as_array).and_then(|events| events.last()?.as_object());
        let (Some(record), Some(end)) = (value.get("record").and_then(Value::as_object), end) else {
            return Err(self.defect(turn, "not the record of this turn up to its committed event".into()));
        };
        let is_turn = record.get("turn").and_then(Value::as_f64) == Some(as_f64(number))
            && end.get("kind") == Some(&json!("committed"));
        self.check(is_turn, turn, || "not the record of this turn up to its committed event".into())?;
        let mut linked = from_hex(chain);
        linked.extend(canonical(&value["record"]));
        let chain = sha256(&linked);
        self.check(text(end, "chain_hash") == Some(&chain), turn, || {
            format!("chain_hash: computed {chain}")
        })?;
        for key in ["changes", "state_hash", "status"] {
            let is_same = record.contains_key(key) && record.get(key) == end.get(key);
            self.check(is_same, turn, || format!("{key} of the committed event differs from the record"))?;
        }
        Ok((chain, text(record, "state_hash").cloned()))
    }

    /// Returns the last line of a bundle with the lines read so far.
    fn seal(&self) -> Vec<u8> {
        let hash = to_hex(&self.hash.clone().finalize());
        let mut line =
            canonical(&json!({"kind": "peripety.session.end", "lines": self.number, "sha256": hash}));
        line.push(b'\n');
        line
    }
}

/// Replaces the numbers of a value by doubles. It returns false if one is out of range.
fn as_doubles(value: &mut Value) -> bool {
    match value {
        Value::Number(number) => match number.as_f64().and_then(Number::from_f64) {
            Some(double) => {
                *number = double;
                true
            }
            None => false,
        },
        Value::Array(items) => items.iter_mut().all(as_doubles),
        Value::Object(members) => members.values_mut().all(as_doubles),
        _ => true,
    }
}

/// Returns the canonical form of a JSON value (RFC 8785).
fn canonical(value: &Value) -> Vec<u8> {
    serde_json_canonicalizer::to_vec(value).unwrap_or_default() // values without NaN and infinity have one
}

fn sha256(bytes: &[u8]) -> String {
    to_hex(&Sha256::digest(bytes))
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

fn from_hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        text.bytes().filter_map(|byte| u8::try_from(char::from(byte).to_digit(16)?).ok()).collect();
    digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect()
}
