//! Dice rolls: a d20 against a difficulty. Each kind and target has its own stream of draws.

use std::sync::Arc;

use crate::canonical_json;
use crate::change_log::Draw;
use crate::error::{Code, Error, Result};
use crate::program::Program;
use crate::rng::{choose, draw, stream_key};
use crate::state::{MAX_ROLLS, State};
use crate::strict_json;
use crate::turn::check_ongoing;
use crate::value::{Value, count, object};

const FACES: u64 = 20;
const MAX_DIFFICULTY: f64 = 30.0;
const MAX_ID_BYTES: usize = 64;
const MEMBERS: [&str; 3] = ["kind", "target", "difficulty"];

/// A roll request.
struct Request {
    kind: Arc<str>,
    target: Option<Arc<str>>,
    difficulty: f64,
}

impl Program {
    /// Roll in the current turn, `{kind, target?, difficulty}`. Return the JSON of a `RollResult`.
    ///
    /// # Errors
    ///
    /// `ROLL_INVALID`, `RUN_ENDED`, or `STATE_LIMIT` if the turn has too many rolls.
    pub fn roll(&self, state: &mut State, request: &[u8]) -> Result<String> {
        let request = strict_json::parse_canonical(request)?;
        check_ongoing(state)?;
        let Request { kind, target, difficulty } = Request::parse(&request)?;
        if state.rolls.values().sum::<u64>() >= MAX_ROLLS {
            return Err(Error::new(Code::StateLimit, format!("more than {MAX_ROLLS} rolls in one turn")));
        }
        let stream: Arc<str> = format!("roll:{kind}:{}", target.as_deref().unwrap_or_default()).into();
        let turn = state.turn + 1;
        let rolled = state.rolls.entry(Arc::clone(&stream)).or_default();
        let index = *rolled;
        *rolled += 1;
        let value = draw(state.seed, stream_key(&stream), turn, index);
        let face = count(choose(value, FACES) + 1);
        canonical_json::text(&object([
            ("kind", Value::from(&kind)),
            ("target", target.as_ref().map_or(Value::Null, Value::from)),
            ("difficulty", Value::Number(difficulty)),
            ("success", Value::Bool(face.as_number() >= Some(difficulty))),
            ("roll", face),
            ("draw", Draw { stream: stream.to_string().into(), turn, index, value }.value()),
        ]))
    }
}

impl Request {
    fn parse(request: &Value) -> Result<Self> {
        let members = request
            .as_object()
            .filter(|members| members.keys().all(|key| MEMBERS.contains(&&**key)))
            .ok_or_else(|| invalid("a roll is an object of kind, target and difficulty"))?;
        let kind = members
            .get("kind")
            .and_then(id)
            .ok_or_else(|| invalid("the kind of a roll is an id, such as a word without spaces"))?;
        let target = match members.get("target") {
            None | Some(Value::Null) => None,
            Some(target) => {
                Some(id(target).ok_or_else(|| invalid("the target of a roll is an id, or absent"))?)
            }
        };
        let difficulty = members
            .get("difficulty")
            .and_then(Value::as_number)
            .filter(|difficulty| difficulty.fract() == 0.0 && (1.0..=MAX_DIFFICULTY).contains(difficulty))
            .ok_or_else(|| {
                invalid(&format!("the difficulty of a roll is an integer, 1 to {MAX_DIFFICULTY}"))
            })?;
        Ok(Self { kind, target, difficulty })
    }
}

/// Return the text of a value if it is an id.
fn id(value: &Value) -> Option<Arc<str>> {
    let Value::Text(text) = value else { return None };
    let first = text.chars().next()?;
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let fits = is_word(first)
        && text.len() <= MAX_ID_BYTES
        && text.chars().all(|c| is_word(c) || matches!(c, '.' | ':' | '-'));
    fits.then(|| Arc::clone(text))
}

fn invalid(message: &str) -> Error {
    Error::new(Code::RollInvalid, message)
}
