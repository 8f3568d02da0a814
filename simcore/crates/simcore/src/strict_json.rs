//! Strict JSON: the only parser of untrusted documents.
//!
//! # Design
//!
//! Parsers of different languages disagree about some texts that RFC 8259 permits. This parser rejects them:
//! duplicate keys, lone surrogates, numbers outside of binary64, and integers beyond 2^53 − 1. It also
//! enforces limits for bytes, depth, values, strings and keys. The parser is generic over a builder, so one
//! grammar creates shared values ([`Value`]) or trees in an arena ([`Node`]). It can detect canonical form
//! while parsing, which avoids a second serialisation.
//!
//! # Invariants
//!
//! - Both cores accept the same documents. They report the same code, message and position for the same
//!   error.
//! - The first error in document order is reported.
//! - Depth is bounded before recursion, so the stack is safe.
//! - A parsed number is finite and never −0.
//!
//! # Rejected alternatives
//!
//! - A library parser: implementations differ in exactly these cases, and the verdict of both cores must be
//!   equal.
//! - Last key wins: the result would depend on the parser of each client.
//! - Integers of any size: clients that use doubles would read other numbers.

mod numbers;
mod parser;

use bumpalo::Bump;

use crate::error::{Code, Error, Result};
use crate::json_node::{Node, Nodes};
use crate::value::{Value, Values};

pub(crate) use parser::Builder;
use parser::{Limits, Parser};

/// Maximum bytes of a document.
pub const MAX_BYTES: usize = 1 << 20;
/// Maximum nesting depth of arrays and objects.
pub const MAX_DEPTH: usize = 64;
/// Maximum number of values of a document.
pub const MAX_NODES: usize = 100_000;
/// Maximum bytes of a string.
pub const MAX_STRING_BYTES: usize = 1 << 16;
/// Maximum bytes of a key.
pub const MAX_KEY_BYTES: usize = 256;
/// Maximum nesting depth of the engine's output: results wrap the deepest values.
pub const MAX_CANONICAL_DEPTH: usize = MAX_DEPTH + 16;
/// Maximum bytes of the engine's output, which may be longer than its input.
pub const MAX_CANONICAL_BYTES: usize = 1 << 26;
/// The largest absolute value of an integer literal.
pub const MAX_SAFE_INTEGER: f64 = 9_007_199_254_740_991.0;

const DOCUMENT: Limits = Limits { any_integer: false, max_depth: MAX_DEPTH, detect_canonical: false };
const CANONICAL: Limits =
    Limits { any_integer: true, max_depth: MAX_CANONICAL_DEPTH, detect_canonical: false };

/// Parse a JSON document strictly.
///
/// # Errors
///
/// The first error with line and column. Both start at 1; columns are code points.
pub fn parse(document: &[u8]) -> Result<Value> {
    Ok(Parser::new(text(document, MAX_BYTES)?, DOCUMENT, Values).document()?.0)
}

/// Parse the output of [`crate::canonical_json::text`]: as [`parse`], with larger limits and integers of any
/// size.
///
/// Canonical form writes 1e17 as an integer literal, which is an error in a document.
///
/// # Errors
///
/// As [`parse`].
pub fn parse_canonical(document: &[u8]) -> Result<Value> {
    Ok(Parser::new(text(document, MAX_CANONICAL_BYTES)?, CANONICAL, Values).document()?.0)
}

/// As [`parse`], with a tree that borrows from the document. Also return True if it is known to be canonical.
pub(crate) fn borrow<'a>(document: &'a [u8], arena: &'a Bump) -> Result<(Node<'a>, bool)> {
    let limits = Limits { detect_canonical: true, ..DOCUMENT };
    Parser::new(text(document, MAX_BYTES)?, limits, Nodes(arena)).document()
}

/// As [`parse_canonical`], with a tree that borrows from the document.
pub(crate) fn borrow_canonical<'a>(document: &'a [u8], arena: &'a Bump) -> Result<Node<'a>> {
    Ok(Parser::new(text(document, MAX_CANONICAL_BYTES)?, CANONICAL, Nodes(arena)).document()?.0)
}

fn text(document: &[u8], max_bytes: usize) -> Result<&str> {
    if document.len() > max_bytes {
        let message = format!("the document has {} bytes; at most {max_bytes} are accepted", document.len());
        return Err(Error::new(Code::DocumentTooLarge, message));
    }
    std::str::from_utf8(document).map_err(|error| {
        Error::new(Code::InvalidUtf8, format!("not valid UTF-8 at byte {}", error.valid_up_to()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canonical_json;

    fn error_text(document: &str) -> String {
        parse(document.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn every_kind_of_value_is_parsed() {
        let value =
            parse(br#" {"b":[1,-0,2.5e1,"\u00e9\ud83d\ude00\n"],"a":{"x":null,"y":true,"z":false}} "#);
        let expected = "{\"a\":{\"x\":null,\"y\":true,\"z\":false},\"b\":[1,0,25,\"é😀\\n\"]}";
        assert_eq!(canonical_json::text(&value.unwrap()).unwrap(), expected);
    }

    #[test]
    fn canonical_form_is_detected() {
        let arena = Bump::new();
        for text in [
            r#"{"a":[1,-2,0.5,9007199254740991,0.000001,true],"b":{},"é":"x"}"#,
            "[100000000000000]",
            "[123456.7890123]",
        ] {
            let (root, is_canonical) = borrow(text.as_bytes(), &arena).unwrap();
            assert!(is_canonical, "{text}");
            assert_eq!(canonical_json::text_of(&root, 0).unwrap(), text);
        }
        for text in [
            "[1, 2]",
            "-0",
            "1.0",
            "0.50",
            "1e2",
            "0.0000001",
            "0.1000000000000000055",
            r#""\/""#,
            r#"{"b":1,"a":2}"#,
            "{\"\u{FB33}\":1,\"😀\":2}",
        ] {
            assert!(!borrow(text.as_bytes(), &arena).unwrap().1, "{text}");
        }
    }

    #[test]
    fn unsorted_duplicate_keys_are_rejected() {
        for size in [3, 15, 16, 17, 100_u32] {
            let keys = |last| (0..size).rev().chain([last]).map(|n| format!(r#""{n:03}":{n}"#));
            let text = |last| format!("{{{}}}", keys(last).collect::<Vec<_>>().join(","));
            assert!(parse(text(size).as_bytes()).is_ok());
            for again in [0, size / 2, size - 1] {
                let code = parse(text(again).as_bytes()).unwrap_err().code();
                assert_eq!(code, Code::DuplicateKey);
            }
        }
    }

    #[test]
    fn strings_of_every_length_end_at_their_quote() {
        for length in 0..40 {
            for inner in ["", "é", "\\n", "\u{7f}", "😀"] {
                let text = format!("\"{}{inner}{}\"", "x".repeat(length), " ".repeat(length % 9));
                let read = parse(text.as_bytes()).unwrap();
                assert_eq!(canonical_json::text(&read).unwrap(), text);
                let broken = format!("\"{}{inner}\u{1f}\"", "x".repeat(length));
                assert_eq!(parse(broken.as_bytes()).unwrap_err().code(), Code::InvalidJson);
                assert_eq!(
                    parse(text.trim_end_matches('"').as_bytes()).unwrap_err().code(),
                    Code::InvalidJson
                );
            }
        }
    }

    #[test]
    fn columns_count_code_points() {
        assert_eq!(error_text("\n [\"é😀\" x"), "INVALID_JSON: expected ',' or ']' (line 2, column 8)");
    }

    #[test]
    fn a_surrogate_error_has_the_position_of_its_escape() {
        assert!(error_text(r#""a\ud800\u0041""#).ends_with("(line 1, column 3)"));
        assert!(
            error_text(r#""a\ud800\u00x1""#)
                .starts_with("INVALID_JSON: unknown escape in a string (line 1, column 9)")
        );
    }

    #[test]
    fn literals_must_be_complete() {
        assert_eq!(error_text("tru"), "INVALID_JSON: expected a value (line 1, column 1)");
        assert_eq!(error_text("nulls"), "INVALID_JSON: expected the end of the document (line 1, column 5)");
        assert_eq!(error_text("01"), "INVALID_JSON: expected the end of the document (line 1, column 2)");
        assert_eq!(error_text("NaN"), "INVALID_JSON: expected a value (line 1, column 1)");
    }

    #[test]
    fn nesting_is_limited() {
        let deep = "[".repeat(10_000);
        assert_eq!(error_text(&deep), "TOO_DEEP: nested deeper than 64 levels (line 1, column 65)");
        assert!(parse(format!("{}{}", "[".repeat(64), "]".repeat(64)).as_bytes()).is_ok());
    }

    #[test]
    fn invalid_utf8_reports_its_byte() {
        assert_eq!(parse(b"\"ab\xED\xA0\x80\"").unwrap_err().message(), "not valid UTF-8 at byte 3");
    }
}
