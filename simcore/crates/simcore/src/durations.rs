//! Durations: ISO 8601 (`P7D`, `PT12H`) or short (`7d`, `12h`, `7d12h`, `30m`, `7d/12h`), counted in turns.

use crate::error::{Code, Error, Result};

/// Length of a turn if a scenario does not define it.
pub const DEFAULT_TURN_MINUTES: u64 = 60;

const MOST_DIGITS: usize = 6;

/// Return the length of a duration in minutes.
///
/// # Errors
///
/// `BAD_DURATION` if the text is not a duration.
pub fn minutes(text: &str) -> Result<u64> {
    iso(text).or_else(|| short(text)).ok_or_else(|| {
        let shown: String = text.chars().take(32).collect();
        let message = format!("'{shown}' is not a duration; write P7D, PT12H, 7d, 12h, 7d12h or 30m");
        Error::new(Code::BadDuration, message)
    })
}

/// Return a duration in turns, rounded up, at least 1.
///
/// # Errors
///
/// As [`minutes`].
pub fn turns(text: &str, turn_minutes: u64) -> Result<u64> {
    Ok(minutes(text)?.div_ceil(turn_minutes.max(1)).max(1))
}

fn iso(text: &str) -> Option<u64> {
    let mut clock = DurationParser { text: text.strip_prefix('P')?, total: None };
    clock.take('W', 7 * 24 * 60);
    clock.take('D', 24 * 60);
    if clock.skip('T') {
        clock.take('H', 60);
        clock.take('M', 1);
    }
    clock.finish()
}

fn short(text: &str) -> Option<u64> {
    let mut clock = DurationParser { text, total: None };
    clock.take('d', 24 * 60);
    clock.skip('/');
    clock.take('h', 60);
    clock.skip('/');
    clock.take('m', 1);
    clock.finish()
}

/// Parser of a duration with its minutes so far.
struct DurationParser<'a> {
    text: &'a str,
    total: Option<u64>,
}

impl DurationParser<'_> {
    /// Parse a count of a unit, if present.
    fn take(&mut self, unit: char, unit_minutes: u64) {
        let Some((count, rest)) = self.text.split_once(unit) else { return };
        let digits = count.bytes().all(|byte| byte.is_ascii_digit());
        if digits && (1..=MOST_DIGITS).contains(&count.len()) {
            let count: u64 = count.parse().unwrap_or(0);
            self.total = Some(self.total.unwrap_or(0) + count * unit_minutes);
            self.text = rest;
        }
    }

    fn skip(&mut self, mark: char) -> bool {
        let rest = self.text.strip_prefix(mark);
        self.text = rest.unwrap_or(self.text);
        rest.is_some()
    }

    fn finish(self) -> Option<u64> {
        self.total.filter(|_| self.text.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_are_parsed() {
        let cases = [
            ("P1W2DT3H4M", 7 * 1440 + 2 * 1440 + 184),
            ("P7D", 7 * 1440),
            ("PT12H", 720),
            ("P1DT", 1440),
            ("7d12h", 7 * 1440 + 720),
            ("7d/12h", 7 * 1440 + 720),
            ("7d//3m", 7 * 1440 + 3),
            ("/30m", 30),
            ("0m", 0),
        ];
        for (text, expected) in cases {
            assert_eq!(minutes(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn other_text_is_rejected() {
        for text in
            ["", "P", "PT", "/", "7", "d", "1234567d", "7h1d", "P1H", "p1D", "1d ", "-1d", "7D", "1d///1m"]
        {
            assert_eq!(minutes(text).unwrap_err().code(), Code::BadDuration, "{text}");
        }
    }

    #[test]
    fn turns_are_rounded_up_to_at_least_one() {
        assert_eq!(turns("61m", 60).unwrap(), 2);
        assert_eq!(turns("60m", 60).unwrap(), 1);
        assert_eq!(turns("0m", 60).unwrap(), 1);
    }
}
