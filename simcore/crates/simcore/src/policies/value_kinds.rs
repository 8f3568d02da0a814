//! Value kinds of matchers, and their parsers.

use std::borrow::Cow;
use std::net::{Ipv4Addr, Ipv6Addr};

use crate::document;
use crate::error::{Code, Error, Result};

/// The kind of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Path,
    Domain,
    Email,
    Identifier,
}

/// The reason why a value cannot be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ValueError {
    code: Code,
    message: &'static str,
}

/// A value in the canonical spelling of its kind.
pub(super) type ParsedValue<'a> = std::result::Result<Cow<'a, str>, ValueError>;

const LONGEST_HOST: usize = 253;
const LONGEST_LABEL: usize = 63;
const LONGEST_LOCAL: usize = 64;
const LONGEST_PORT: usize = 5;

const BAD_PATH: ValueError = ValueError {
    code: Code::BadPath,
    message: "a path has to be absolute: to begin with / and have no U+0000",
};
const NOT_ASCII: ValueError = ValueError {
    code: Code::BadDomain,
    message: "a URL or host has to be in ASCII, without white space and backslashes",
};
const NO_SCHEME: ValueError =
    ValueError { code: Code::BadDomain, message: "a URL has to begin with a scheme, such as https://" };
const NO_ADDRESS: ValueError =
    ValueError { code: Code::BadEmail, message: "an address has to be one name@host, in ASCII" };

impl Kind {
    pub(super) fn from_name(name: &str) -> Result<Self> {
        match name {
            "path" => Ok(Self::Path),
            "domain" => Ok(Self::Domain),
            "email" => Ok(Self::Email),
            "identifier" => Ok(Self::Identifier),
            _ => Err(document::invalid("there is no such kind of values")),
        }
    }

    /// Parse a value for comparison.
    pub(super) fn parse(self, text: &str) -> ParsedValue<'_> {
        match self {
            Self::Path => path(text),
            Self::Domain => domain(text),
            Self::Email => email(text),
            Self::Identifier => Ok(text.into()),
        }
    }
}

impl ValueError {
    pub(super) const NO_TEXT: Self =
        Self { code: Code::BadValue, message: "an argument with a role has to be a text or a list of texts" };
}

impl From<ValueError> for Error {
    fn from(unread: ValueError) -> Self {
        Self::new(unread.code, unread.message)
    }
}

/// Parse a path: `/a/b`, or an empty text for the root.
fn path(text: &str) -> ParsedValue<'_> {
    let Some(below) = text.strip_prefix('/') else { return Err(BAD_PATH) };
    if text.bytes().any(|byte| byte == 0) {
        return Err(BAD_PATH);
    }
    if is_plain(below) {
        return Ok(text.into());
    }
    let mut segments: Vec<&str> = Vec::new();
    for segment in below.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop()),
            segment => segments.push(segment),
        }
    }
    Ok(segments.into_iter().flat_map(|segment| ["/", segment]).collect())
}

/// Return True if no segment is empty, `.` or `..`.
fn is_plain(below: &str) -> bool {
    // The number of dots if the segment has only dots so far; 3 otherwise.
    let mut dots = 0;
    below.bytes().chain([b'/']).all(|byte| {
        if byte == b'/' {
            return std::mem::take(&mut dots) == 3;
        }
        dots = if byte == b'.' { 3.min(dots + 1) } else { 3 };
        true
    })
}

/// Parse the host of a URL, or a host with an optional port.
fn domain(text: &str) -> ParsedValue<'_> {
    if text.bytes().any(|byte| byte <= b' ' || byte >= 0x7f || byte == b'\\') {
        return Err(NOT_ASCII);
    }
    if !text.bytes().any(|byte| byte == b':') {
        return host(text, Code::BadDomain, Brackets::Accepted);
    }
    let authority = match text.split_once("://") {
        Some((scheme, rest)) => {
            let mut letters = scheme.bytes();
            if !letters.next().is_some_and(|first| first.is_ascii_alphabetic())
                || !letters.all(|byte| byte.is_ascii_alphanumeric() || b"+.-".contains(&byte))
            {
                return Err(NO_SCHEME);
            }
            let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
            authority.rsplit_once('@').map_or(authority, |(_, host)| host)
        }
        None => text,
    };
    host(without_port(authority), Code::BadDomain, Brackets::Accepted)
}

fn without_port(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((host, port))
            if (1..=LONGEST_PORT).contains(&port.len()) && port.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            host
        }
        _ => authority,
    }
}

fn email(text: &str) -> ParsedValue<'_> {
    let (local, at) = text.split_once('@').unwrap_or((text, ""));
    let is_local = |byte: u8| byte.is_ascii_alphanumeric() || b".!#$%&'*+/=?^_`{|}~-".contains(&byte);
    if !(1..=LONGEST_LOCAL).contains(&local.len()) || !local.bytes().all(is_local) || !text.is_ascii() {
        return Err(NO_ADDRESS);
    }
    let host = host(at, Code::BadEmail, Brackets::Refused)?;
    if matches!(host, Cow::Borrowed(host) if host.len() == at.len())
        && !local.bytes().any(|byte| byte.is_ascii_uppercase())
    {
        return Ok(text.into());
    }
    Ok(format!("{}@{host}", local.to_ascii_lowercase()).into())
}

/// Permission of an address in brackets as a host.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Brackets {
    Accepted,
    Refused,
}

/// Parse a host for comparison. A text that is not ASCII is rejected.
pub(super) fn host(text: &str, code: Code, brackets: Brackets) -> ParsedValue<'_> {
    let name = text.strip_suffix('.').unwrap_or(text);
    let name: Cow<'_, str> = if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        name.to_ascii_lowercase().into()
    } else {
        name.into()
    };
    let read = if let Some(address) = in_brackets(&name).filter(|_| brackets == Brackets::Accepted) {
        ipv6(address).map(Cow::Owned)
    } else if ends_with_number(&name) {
        is_ipv4(&name).then_some(name)
    } else {
        (name.len() <= LONGEST_HOST && has_labels(&name)).then_some(name)
    };
    let message = "a host has to be a name in ASCII, of labels with dots between them, or a plain IP address";
    read.ok_or(ValueError { code, message })
}

/// Return the content of brackets if it can be an address.
fn in_brackets(name: &str) -> Option<&str> {
    let inside = name.strip_prefix('[')?.strip_suffix(']')?;
    let is_near = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f' | b':' | b'.');
    inside.bytes().all(is_near).then_some(inside)
}

fn ipv6(address: &str) -> Option<String> {
    let address: Ipv6Addr = address.parse().ok()?;
    if let Some(address) = address.to_ipv4_mapped() {
        return Some(address.to_string());
    }
    let groups = address.segments().map(|group| format!("{group:04x}"));
    Some(format!("[{}]", groups.join(":")))
}

/// Return True if clients would parse a host as an IPv4 address.
fn ends_with_number(name: &str) -> bool {
    let last = name.bytes().rposition(|byte| byte == b'.').map_or(0, |dot| dot + 1);
    let last = name.get(last..).unwrap_or_default();
    match last.strip_prefix("0x") {
        Some(digits) => digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')),
        None => !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit()),
    }
}

fn is_ipv4(name: &str) -> bool {
    name.parse::<Ipv4Addr>().is_ok()
}

/// Return True if a name consists of labels separated by dots.
fn has_labels(name: &str) -> bool {
    let mut length = 0;
    name.bytes().chain([b'.']).all(|byte| match byte {
        b'.' => (1..=LONGEST_LABEL).contains(&std::mem::take(&mut length)),
        b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' => {
            length += 1;
            true
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_to_string(kind: Kind, text: &str) -> String {
        kind.parse(text).map_or_else(|unread| unread.code.as_str().to_owned(), Cow::into_owned)
    }

    #[test]
    fn a_path_has_one_spelling() {
        for (text, read) in [
            ("/a/b", "/a/b"),
            ("/", ""),
            ("//a/./b//../c/", "/a/c"),
            ("/../..", ""),
            ("/a..b/...", "/a..b/..."),
            ("/é b", "/é b"),
            ("", "BAD_PATH"),
            ("a/b", "BAD_PATH"),
            ("~/a", "BAD_PATH"),
            ("/a\0", "BAD_PATH"),
        ] {
            assert_eq!(parse_to_string(Kind::Path, text), read, "{text:?}");
        }
    }

    #[test]
    fn a_domain_is_the_host_of_a_url() {
        for (text, read) in [
            ("A.Example.", "a.example"),
            ("a.example:80", "a.example"),
            ("a.example.:80", "a.example"),
            ("https://x@y:z@A.example:8/p@q?r#s", "a.example"),
            ("x://a?@b", "a"),
            ("[::1]:8", "[0000:0000:0000:0000:0000:0000:0000:0001]"),
            ("[1:2:3:4:5:6::A1.].", "BAD_DOMAIN"),
            ("[::FFFF:1.2.3.4].", "1.2.3.4"),
            ("[::ffff:01.2.3.4]", "BAD_DOMAIN"),
            ("[1:2:3:4::5:6:7:8]", "BAD_DOMAIN"),
            ("[]", "BAD_DOMAIN"),
            ("[a]", "BAD_DOMAIN"),
            ("[::1%a]", "BAD_DOMAIN"),
            ("127.0.0.1.", "127.0.0.1"),
            ("127.0.0.01", "BAD_DOMAIN"),
            ("127.0.0.256", "BAD_DOMAIN"),
            ("127.1", "BAD_DOMAIN"),
            ("a.0x", "BAD_DOMAIN"),
            ("0x7F000001", "BAD_DOMAIN"),
            ("1.a", "1.a"),
            ("0xg", "0xg"),
            ("a.example:123456", "BAD_DOMAIN"),
            ("a.example:", "BAD_DOMAIN"),
            ("a..example", "BAD_DOMAIN"),
            ("x@a.example", "BAD_DOMAIN"),
            ("1://a", "BAD_DOMAIN"),
            ("://a", "BAD_DOMAIN"),
            ("a b", "BAD_DOMAIN"),
            ("é.example", "BAD_DOMAIN"),
            ("\u{212a}", "BAD_DOMAIN"),
            ("", "BAD_DOMAIN"),
            ("::1", "BAD_DOMAIN"),
        ] {
            assert_eq!(parse_to_string(Kind::Domain, text), read, "{text:?}");
        }
        assert_eq!(parse_to_string(Kind::Domain, &"a.".repeat(127)), "a.".repeat(127).trim_end_matches('.'));
        assert_eq!(
            parse_to_string(Kind::Domain, &format!("{}aa", "a.".repeat(126))),
            "BAD_DOMAIN".to_owned()
        );
        assert_eq!(parse_to_string(Kind::Domain, &"a".repeat(64)), "BAD_DOMAIN");
    }

    #[test]
    fn an_email_is_a_single_address() {
        for (text, read) in [
            ("a@b.example", "a@b.example"),
            ("A+x@B.Example.", "a+x@b.example"),
            ("a@b@c", "BAD_EMAIL"),
            ("@b", "BAD_EMAIL"),
            ("a", "BAD_EMAIL"),
            ("a@[::1]", "BAD_EMAIL"),
            ("a@1.2.3.4", "a@1.2.3.4"),
            ("a@1.2.3", "BAD_EMAIL"),
            ("\u{212a}@b", "BAD_EMAIL"),
            ("a b@c", "BAD_EMAIL"),
        ] {
            assert_eq!(parse_to_string(Kind::Email, text), read, "{text:?}");
        }
        assert_eq!(parse_to_string(Kind::Email, &format!("{}@b", "a".repeat(65))), "BAD_EMAIL");
    }
}
