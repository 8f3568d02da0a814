//! Endless stream of draws as raw bytes, in an order in which the engine uses them.
//!
//! Input for programs that test random numbers: `cargo run --release --example draws -- played | dieharder -a
//! -g 200`.

use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use simcore::rng::{draw, run_seed, stream_key};

/// A small seed, as in practice: the inputs then differ in few bits.
const SEED: u64 = 1;
/// A typical horizon.
const TURNS: u64 = 50;

/// A consumer of draws.
type Sink<'a> = dyn FnMut(u64) -> io::Result<()> + 'a;
/// A source of endless draws.
type Order = fn(&mut Sink<'_>) -> io::Result<()>;

const ORDERS: [(&str, Order); 6] = [
    ("played", played),
    ("runs", runs),
    ("turns", turns),
    ("indices", indices),
    ("streams", streams),
    ("seeds", seeds),
];

fn main() -> ExitCode {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    let Some((_, order)) = ORDERS.iter().find(|(name, _)| *name == wanted) else {
        let names = ORDERS.map(|(name, _)| name).join(" | ");
        return exit_code(writeln!(io::stderr(), "usage: draws {names}"), ExitCode::from(2));
    };
    let mut out = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
    exit_code(order(&mut |value| out.write_all(&value.to_le_bytes())), ExitCode::SUCCESS)
}

/// Map the result of writing to an exit code. A closed pipe is the normal end; other errors are failures.
fn exit_code(written: io::Result<()>, otherwise: ExitCode) -> ExitCode {
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => ExitCode::FAILURE,
        _ => otherwise,
    }
}

/// Write the draws of a dry-run: four draws of the persona and one of the event in each turn.
fn played(put: &mut Sink<'_>) -> io::Result<()> {
    let (policy, event) = (stream_key("policy"), stream_key("event"));
    (0..).try_for_each(|run| {
        let seed = run_seed(SEED, run);
        (1..=TURNS).try_for_each(|turn| {
            (0..4).try_for_each(|index| put(draw(seed, policy, turn, index)))?;
            put(draw(seed, event, turn, 0))
        })
    })
}

/// Write the same draw of successive runs.
fn runs(put: &mut Sink<'_>) -> io::Result<()> {
    let event = stream_key("event");
    (0..).try_for_each(|run| put(draw(run_seed(SEED, run), event, 1, 0)))
}

/// Write the same draw of successive turns.
fn turns(put: &mut Sink<'_>) -> io::Result<()> {
    let (event, seed) = (stream_key("event"), run_seed(SEED, 0));
    (1..).try_for_each(|turn| put(draw(seed, event, turn, 0)))
}

/// Write all draws of one turn.
fn indices(put: &mut Sink<'_>) -> io::Result<()> {
    let (policy, seed) = (stream_key("policy"), run_seed(SEED, 0));
    (0..).try_for_each(|index| put(draw(seed, policy, 1, index)))
}

/// Write the first draw of successive streams.
fn streams(put: &mut Sink<'_>) -> io::Result<()> {
    let seed = run_seed(SEED, 0);
    (0..).try_for_each(|number: u64| put(draw(seed, stream_key(&format!("roll:kind:{number}")), 1, 0)))
}

/// Write the same draw under successive seeds, without the mixing that separates runs.
fn seeds(put: &mut Sink<'_>) -> io::Result<()> {
    let event = stream_key("event");
    (0..).try_for_each(|seed| put(draw(seed, event, 1, 0)))
}
