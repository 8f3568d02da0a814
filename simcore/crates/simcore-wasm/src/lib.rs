//! WebAssembly exports of the engine, for clients/typescript/src/engine.
//!
//! The host writes the argument of a call into the buffer of `input`, and reads the result from that of `output`. A call
//! returns the length of its result. For an error it returns `-1 - length`, and the result is
//! `{"code":…,"message":…,"path":…}`. Programs and states are numbers, valid until they are freed.
//!
//! WebAssembly has 64-bit integers, IEEE 754 numbers and one thread, so the results are those of the other builds, bit for
//! bit.

use std::cell::RefCell;
use std::rc::Rc;

use simcore::{Error, Program, State, Value, canonical_json, rng, strict_json};

thread_local! {
    static HOST: RefCell<Host> = RefCell::default();
}

/// Buffers of the host, and the objects that it has created.
#[derive(Default)]
struct Host {
    input: Vec<u8>,
    output: Vec<u8>,
    programs: Slots<Rc<Program>>,
    states: Slots<Run>,
}

/// State of one run, with its program.
#[derive(Clone)]
struct Run {
    program: Rc<Program>,
    state: State,
}

/// Objects by number. A number is used again after its object was freed.
struct Slots<T>(Vec<Option<T>>);

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Slots<T> {
    fn add(&mut self, object: T) -> u32 {
        let number = self.0.iter().position(Option::is_none).unwrap_or_else(|| {
            self.0.push(None);
            self.0.len() - 1
        });
        if let Some(slot) = self.0.get_mut(number) {
            *slot = Some(object);
        }
        u32::try_from(number).unwrap_or(u32::MAX)
    }

    fn get(&mut self, number: u32) -> Result<&mut T, Failure> {
        let slot = usize::try_from(number).ok().and_then(|number| self.0.get_mut(number)?.as_mut());
        slot.ok_or_else(|| {
            Failure("UNKNOWN_HANDLE", format!("{number}: no such object, or it was freed"), String::new())
        })
    }

    fn remove(&mut self, number: u32) {
        if let Some(slot) = usize::try_from(number).ok().and_then(|number| self.0.get_mut(number)) {
            *slot = None;
        }
    }
}

/// Code, message and path of an error.
struct Failure(&'static str, String, String);

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self(error.code().as_str(), error.message().to_owned(), error.path().to_owned())
    }
}

impl Failure {
    fn to_json(&self) -> String {
        let quote = |text: &str| canonical_json::text(&Value::from(text)).unwrap_or_default();
        let Self(code, message, path) = self;
        format!(r#"{{"code":{},"message":{},"path":{}}}"#, quote(code), quote(message), quote(path))
    }
}

/// Write the result of a call into the output buffer. Return its length, or `-1 - length` for an error.
fn answer(call: impl FnOnce(&mut Host) -> Result<String, Failure>) -> i32 {
    HOST.with_borrow_mut(|host| {
        let result = call(host);
        let is_error = result.is_err();
        host.output = result.unwrap_or_else(|failure| failure.to_json()).into_bytes();
        let length = i32::try_from(host.output.len()).unwrap_or(i32::MAX);
        if is_error { -1 - length } else { length }
    })
}

/// Return the number of a new object, or `-1 - length` for an error.
fn create(call: impl FnOnce(&mut Host) -> Result<u32, Failure>) -> i32 {
    let mut number = 0;
    let length = answer(|host| {
        number = i32::try_from(call(host)?).unwrap_or(i32::MAX);
        Ok(String::new())
    });
    if length < 0 { length } else { number }
}

/// Return the address of the input buffer, resized to `length` bytes.
#[unsafe(no_mangle)]
pub extern "C" fn input(length: usize) -> *mut u8 {
    HOST.with_borrow_mut(|host| {
        host.input.resize(length, 0);
        host.input.as_mut_ptr()
    })
}

/// Return the address of the result of the last call.
#[unsafe(no_mangle)]
pub extern "C" fn output() -> *const u8 {
    HOST.with_borrow(|host| host.output.as_ptr())
}

/// Return the canonical form of a JSON document that the strict parser accepts.
#[unsafe(no_mangle)]
pub extern "C" fn parse() -> i32 {
    answer(|host| Ok(canonical_json::text(&strict_json::parse(&host.input)?)?))
}

/// Return the SHA-256 of the input in hexadecimal digits.
#[unsafe(no_mangle)]
pub extern "C" fn sha256() -> i32 {
    answer(|host| Ok(canonical_json::sha256_hex(&host.input)))
}

/// Return one keyed 64-bit draw of the stream that the input names.
#[unsafe(no_mangle)]
pub extern "C" fn draw(seed: u64, turn: u64, index: u64) -> u64 {
    HOST.with_borrow(|host| {
        rng::draw(seed, rng::stream_key(&String::from_utf8_lossy(&host.input)), turn, index)
    })
}

/// Compile a canonical document without keys that need lowering. Return the number of the program.
#[unsafe(no_mangle)]
pub extern "C" fn compile() -> i32 {
    create(|host| {
        let program = Program::new(&host.input)?;
        Ok(host.programs.add(Rc::new(program)))
    })
}

/// Free a program. Its states remain valid.
#[unsafe(no_mangle)]
pub extern "C" fn free_program(program: u32) {
    HOST.with_borrow_mut(|host| host.programs.remove(program));
}

/// Return the number of the initial state of a program under a seed.
#[unsafe(no_mangle)]
pub extern "C" fn new_state(program: u32, seed: u64) -> i32 {
    create(|host| {
        let program = Rc::clone(host.programs.get(program)?);
        let state = program.new_state(seed);
        Ok(host.states.add(Run { program, state }))
    })
}

/// Restore a state from its snapshot, and return its number.
#[unsafe(no_mangle)]
pub extern "C" fn load_state(program: u32) -> i32 {
    create(|host| {
        let program = Rc::clone(host.programs.get(program)?);
        let state = State::from_json(&program, &host.input)?;
        Ok(host.states.add(Run { program, state }))
    })
}

/// Return the number of an independent copy of a state.
#[unsafe(no_mangle)]
pub extern "C" fn fork(state: u32) -> i32 {
    create(|host| {
        let copy = host.states.get(state)?.clone();
        Ok(host.states.add(copy))
    })
}

/// Free a state.
#[unsafe(no_mangle)]
pub extern "C" fn free_state(state: u32) {
    HOST.with_borrow_mut(|host| host.states.remove(state));
}

/// Return the ids of the legal actions as a JSON list.
#[unsafe(no_mangle)]
pub extern "C" fn legal_actions(state: u32) -> i32 {
    answer(|host| {
        let Run { program, state } = host.states.get(state)?;
        Ok(program.legal_actions(state)?)
    })
}

/// Take an action. The input is its id, of `id_length` bytes, and the JSON of its parameters.
#[unsafe(no_mangle)]
pub extern "C" fn act(state: u32, id_length: usize) -> i32 {
    answer(|host| {
        let Run { program, state } = host.states.get(state)?;
        let (id, params) = host.input.split_at(id_length.min(host.input.len()));
        Ok(program.act(state, &String::from_utf8_lossy(id), params)?)
    })
}

/// Apply the narrator's changes.
#[unsafe(no_mangle)]
pub extern "C" fn narrate(state: u32) -> i32 {
    answer(|host| {
        let Run { program, state } = host.states.get(state)?;
        Ok(program.narrate(state, &host.input)?)
    })
}

/// Roll in the current turn.
#[unsafe(no_mangle)]
pub extern "C" fn roll(state: u32) -> i32 {
    answer(|host| {
        let Run { program, state } = host.states.get(state)?;
        Ok(program.roll(state, &host.input)?)
    })
}

/// Finish the turn.
#[unsafe(no_mangle)]
pub extern "C" fn step(state: u32) -> i32 {
    answer(|host| {
        let Run { program, state } = host.states.get(state)?;
        Ok(program.step(state)?)
    })
}

/// Return a complete snapshot.
#[unsafe(no_mangle)]
pub extern "C" fn snapshot(state: u32) -> i32 {
    answer(|host| {
        let Run { program, state } = host.states.get(state)?;
        Ok(state.to_json(program)?)
    })
}

/// Return the state tree of the scenario.
#[unsafe(no_mangle)]
pub extern "C" fn tree(state: u32) -> i32 {
    answer(|host| Ok(host.states.get(state)?.state.tree_json()?))
}

/// Return the status of the run.
#[unsafe(no_mangle)]
pub extern "C" fn status(state: u32) -> i32 {
    answer(|host| {
        let Run { program, state } = host.states.get(state)?;
        Ok(state.status_json(program)?)
    })
}
