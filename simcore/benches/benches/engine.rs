//! Criterion benchmarks of the engine: a turn of a dry-run, a live turn, compilation, JSONLogic.
//!
//! The unit is CPU time, not wall time, because the benchmarks run on shared machines.

use std::hint::black_box;
use std::time::Duration;

use cpu_time::ProcessTime;
use criterion::measurement::{Measurement, ValueFormatter, WallTime};
use criterion::{BenchmarkId, Criterion, SamplingMode, criterion_group, criterion_main};
use simcore::jsonlogic::{Data, Rule};
use simcore::value::Object;
use simcore::{Isa, Program, canonical_json, strict_json};
use simcore_benches::cases;

const SEED: u64 = 1;
/// Runs of a batch: a few times the number of lanes.
const RUNS: u64 = 256;
const SCENARIOS: [&str; 11] = [
    "numeric",
    "mixed",
    "scheduled",
    "early",
    "large",
    "size-006-004",
    "size-012-006",
    "size-024-012",
    "size-060-024",
    "size-200-060",
    "size-200-500",
];

/// CPU time of all threads.
struct CpuTime;

impl Measurement for CpuTime {
    type Intermediate = ProcessTime;
    type Value = Duration;

    fn start(&self) -> ProcessTime {
        ProcessTime::now()
    }

    fn end(&self, started: ProcessTime) -> Duration {
        started.elapsed()
    }

    fn add(&self, one: &Duration, other: &Duration) -> Duration {
        *one + *other
    }

    fn zero(&self) -> Duration {
        Duration::ZERO
    }

    fn to_f64(&self, value: &Duration) -> f64 {
        WallTime.to_f64(value)
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        WallTime.formatter()
    }
}

/// Benchmark one turn of a dry-run for each scenario.
fn dry_run(criterion: &mut Criterion<CpuTime>) {
    let mut group = criterion.benchmark_group("dry-run, one turn");
    group.sampling_mode(SamplingMode::Flat);
    for name in SCENARIOS {
        let program = cases::program(name).unwrap_or_else(|message| panic!("{message}"));
        group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
            bencher.iter_custom(|turns| play(&program, turns));
        });
    }
}

/// Return the approximate number of turns that a batch plays.
#[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
fn play(program: &Program, turns: u64) -> Duration {
    let started = ProcessTime::now();
    let mut played = 0;
    while played < turns {
        let counts = cases::dry_run(program, Isa::best(), SEED, RUNS, false);
        played += counts.map_or_else(|message| panic!("{message}"), |counts| counts.turns);
    }
    started.elapsed().mul_f64(turns as f64 / played as f64)
}

/// Benchmark a turn of a session: an action, the rest of the turn, the diffs and the hash of the state.
fn live_turn(criterion: &mut Criterion<CpuTime>) {
    let program = cases::program("numeric").unwrap_or_else(|message| panic!("{message}"));
    let start = program.new_state(SEED);
    criterion.bench_function("live turn", |bencher| {
        bencher.iter(|| {
            let mut state = start.clone();
            let acted = program.act(&mut state, "action0", b"{}");
            let stepped = program.step(&mut state);
            let hash = state.tree_json().map(|tree| canonical_json::sha256_hex(tree.as_bytes()));
            black_box((acted, stepped, hash))
        });
    });
}

/// Benchmark compilation of a validated document.
fn compile(criterion: &mut Criterion<CpuTime>) {
    let mut group = criterion.benchmark_group("compile");
    for name in ["numeric", "large"] {
        let document = cases::document(name).unwrap_or_else(|message| panic!("{message}"));
        group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
            bencher.iter(|| Program::new(black_box(&document)));
        });
    }
}

/// Benchmark evaluation of a compiled expression.
fn evaluate(criterion: &mut Criterion<CpuTime>) {
    let document = cases::document("logic").unwrap_or_else(|message| panic!("{message}"));
    let document = strict_json::parse_canonical(&document).unwrap_or_else(|error| panic!("{error}"));
    let member = |name| document.as_object().and_then(|members| members.get(name)).cloned();
    let (Some(rules), Some(data)) = (member("rules"), member("data")) else {
        panic!("logic.json is incomplete")
    };
    let mut group = criterion.benchmark_group("evaluate");
    for (name, logic) in rules.as_object().into_iter().flat_map(Object::iter) {
        let rule = Rule::new(logic);
        group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
            bencher.iter(|| rule.evaluate(black_box(Data::Value(&data))));
        });
    }
}

fn settings() -> Criterion<CpuTime> {
    Criterion::default()
        .with_measurement(CpuTime)
        .sample_size(10)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(800))
}

criterion_group!(name = benches; config = settings(); targets = dry_run, live_turn, compile, evaluate);
criterion_main!(benches);
