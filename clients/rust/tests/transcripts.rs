//! The golden transcripts of the conformance kit: each is verified, and each change of one is refused at its line.

use std::collections::BTreeMap;
use std::fs;

use peripety::{TranscriptError, verify_transcript};
use serde::Deserialize;

const KIT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/transcripts");

/// Returns the path of a file of the kit, or of the folder that the environment names.
fn path_of(name: &str) -> String {
    format!("{}/{name}", std::env::var("PERIPETY_TRANSCRIPTS").unwrap_or_else(|_| KIT.to_owned()))
}

#[derive(Deserialize)]
struct Entry {
    turns: u64,
    chain_hash: String,
    state_hash: Option<String>,
    tampered: Vec<Change>,
}

#[derive(Deserialize)]
struct Change {
    name: String,
    line: usize,
    at: Option<usize>,
    #[serde(default)]
    delete: usize,
    #[serde(default)]
    insert: String,
    swap_with: Option<usize>,
    #[serde(default)]
    is_resealed: bool,
    first_false_line: u64,
    first_false_turn: Option<u64>,
}

fn kit() -> BTreeMap<String, Entry> {
    serde_json::from_slice(&fs::read(path_of("index.json")).unwrap()).unwrap()
}

fn bundle(name: &str) -> Vec<u8> {
    fs::read(path_of(name)).unwrap()
}

/// Applies a change to a bundle.
fn tamper(bundle: &[u8], change: &Change) -> Vec<u8> {
    use sha2::{Digest, Sha256};
    let mut lines: Vec<Vec<u8>> = bundle.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    let line = change.line - 1;
    if let Some(at) = change.at {
        lines[line].splice(at..at + change.delete, change.insert.bytes());
    } else if let Some(other) = change.swap_with {
        lines.swap(line, other - 1);
    } else {
        lines.remove(line);
    }
    if change.is_resealed {
        lines.pop();
        let hash: String = Sha256::digest(lines.concat()).iter().map(|byte| format!("{byte:02x}")).collect();
        let seal = format!(
            "{{\"kind\":\"peripety.session.end\",\"lines\":{},\"sha256\":\"{hash}\"}}\n",
            lines.len()
        );
        lines.push(seal.into_bytes());
    }
    lines.concat()
}

#[test]
fn every_golden_transcript_is_verified() {
    for (name, entry) in kit() {
        let verified =
            verify_transcript(bundle(&name).as_slice()).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(verified.turns, entry.turns, "{name}");
        assert_eq!(verified.chain_hash, entry.chain_hash, "{name}");
        assert_eq!(verified.state_hash, entry.state_hash, "{name}");
    }
}

#[test]
fn every_tampered_transcript_is_refused_at_its_first_false_line() {
    let mut refused = 0;
    for (name, entry) in kit() {
        let honest = bundle(&name);
        for change in &entry.tampered {
            match verify_transcript(tamper(&honest, change).as_slice()) {
                Err(TranscriptError::Defect { line, turn, .. }) => {
                    let expected = (change.first_false_line, change.first_false_turn);
                    assert_eq!((line, turn), expected, "{name}: {}", change.name);
                }
                other => panic!("{name}: {}: {other:?}", change.name),
            }
            refused += 1;
        }
    }
    assert!(refused > 200, "only {refused} changes");
}

#[test]
fn a_file_that_is_not_a_bundle_is_refused() {
    let deep = "[".repeat(100_000);
    for bytes in ["", "\n", "{}\n", deep.as_str(), "{\"a\":NaN}\n"] {
        let refused = verify_transcript(bytes.as_bytes());
        assert!(matches!(refused, Err(TranscriptError::Defect { line: 1, .. })), "{refused:?}");
    }
}
