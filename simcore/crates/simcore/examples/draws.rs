//! Writes draws without end, as raw bytes, in an order in which the engine uses them; for programs that test
//! random numbers: `cargo run --release --example draws -- played | dieharder -a -g 200`.

use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use simcore::rng::{draw, run_seed, stream_key};

/// Small, as seeds are: what follows differs in few bits.
const SEED: u64 = 1;
/// A usual horizon.
const TURNS: u64 = 50;

/// Takes draws as they come.
type Sink<'a> = dyn FnMut(u64) -> io::Result<()> + 'a;
/// Gives draws, without end.
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
        return ended(writeln!(io::stderr(), "usage: draws {names}"), ExitCode::from(2));
    };
    let mut out = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
    ended(order(&mut |value| out.write_all(&value.to_le_bytes())), ExitCode::SUCCESS)
}

/// The reader closes the pipe when it has had enough; anything else that stops the writing is a failure.
fn ended(written: io::Result<()>, otherwise: ExitCode) -> ExitCode {
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => ExitCode::FAILURE,
        _ => otherwise,
    }
}

/// As a dry-run uses them: in each turn of each run four draws of the persona, then the event's.
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

/// The same draw of one run after the other.
fn runs(put: &mut Sink<'_>) -> io::Result<()> {
    let event = stream_key("event");
    (0..).try_for_each(|run| put(draw(run_seed(SEED, run), event, 1, 0)))
}

/// The same draw of one turn after the other.
fn turns(put: &mut Sink<'_>) -> io::Result<()> {
    let (event, seed) = (stream_key("event"), run_seed(SEED, 0));
    (1..).try_for_each(|turn| put(draw(seed, event, turn, 0)))
}

/// The draws of one turn.
fn indices(put: &mut Sink<'_>) -> io::Result<()> {
    let (policy, seed) = (stream_key("policy"), run_seed(SEED, 0));
    (0..).try_for_each(|index| put(draw(seed, policy, 1, index)))
}

/// The first draw of one stream after the other.
fn streams(put: &mut Sink<'_>) -> io::Result<()> {
    let seed = run_seed(SEED, 0);
    (0..).try_for_each(|number: u64| put(draw(seed, stream_key(&format!("roll:kind:{number}")), 1, 0)))
}

/// The same draw under one seed after the other, without the mixing that tells runs apart.
fn seeds(put: &mut Sink<'_>) -> io::Result<()> {
    let event = stream_key("event");
    (0..).try_for_each(|seed| put(draw(seed, event, 1, 0)))
}
