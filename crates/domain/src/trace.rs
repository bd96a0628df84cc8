//! W3C Trace Context: the header `traceparent`, which ties a message to the request of a larger system.

use std::fmt;

/// `00-TRACE_ID-PARENT_ID-FLAGS`.
const LENGTH: usize = 55;
/// The flags that this version of the header knows: sampled, and a random trace ID. Others must not be sent.
const KNOWN_FLAGS: u8 = 0b11;
const SAMPLED: u8 = 0b01;

/// A trace, the span in it that a message belongs to, and whether the caller records it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceContext {
    trace: [u8; 16],
    parent: [u8; 8],
    flags: u8,
}

/// 32 hex digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceId([u8; 16]);

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

/// 16 hex digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanId([u8; 8]);

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", u64::from_be_bytes(self.0))
    }
}

impl TraceContext {
    /// The length in both databases.
    pub const BYTES: usize = 25;

    /// Reads the header strictly, as the specification demands: lower case, no zero IDs. A later version may be longer.
    pub fn parse(header: &[u8]) -> Option<Self> {
        let (known, rest) = header.split_at_checked(LENGTH)?;
        if [known[2], known[35], known[52]] != [b'-'; 3] {
            return None;
        }
        let [version] = read_hex(&known[..2])?;
        let is_complete = match version {
            0 => rest.is_empty(),
            255 => false,
            _ => rest.is_empty() || rest[0] == b'-',
        };
        let [flags] = read_hex(&known[53..])?;
        let context = Self {
            trace: read_hex(&known[3..35])?,
            parent: read_hex(&known[36..52])?,
            flags: flags & KNOWN_FLAGS,
        };
        let is_zero = context.trace == [0; 16] || context.parent == [0; 8];
        (is_complete && !is_zero).then_some(context)
    }

    pub const fn trace_id(&self) -> TraceId {
        TraceId(self.trace)
    }

    /// The span in the trace that a message belongs to.
    pub const fn parent_id(&self) -> SpanId {
        SpanId(self.parent)
    }

    /// Whether the caller records the trace.
    pub const fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// The same trace with another parent, for a request that this service sends. Zero is no valid parent.
    #[must_use]
    pub fn child(self, parent: u64) -> Self {
        Self {
            parent: parent.max(1).to_be_bytes(),
            ..self
        }
    }

    /// The form in both databases.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..16].copy_from_slice(&self.trace);
        bytes[16..24].copy_from_slice(&self.parent);
        bytes[24] = self.flags;
        bytes
    }

    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; Self::BYTES] = bytes.try_into().ok()?;
        Some(Self {
            trace: bytes[..16].try_into().ok()?,
            parent: bytes[16..24].try_into().ok()?,
            flags: bytes[24],
        })
    }
}

/// The header.
impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (trace, parent) = (self.trace_id(), self.parent_id());
        write!(f, "00-{trace}-{parent}-{:02x}", self.flags)
    }
}

/// Reads lower-case hex digits, two for each byte.
fn read_hex<const BYTES: usize>(digits: &[u8]) -> Option<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = (read_digit(pair[0])? << 4) | read_digit(pair[1])?;
    }
    Some(bytes)
}

const fn read_digit(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const HEADER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_header_round_trips() {
        let context = TraceContext::parse(HEADER.as_bytes()).expect("valid");
        assert_eq!(context.to_string(), HEADER);
        assert_eq!(context.trace_id().to_string(), TRACE);
        assert_eq!(context.parent_id().to_string(), "00f067aa0ba902b7");
        assert!(context.is_sampled());
        assert_eq!(TraceContext::from_bytes(&context.to_bytes()), Some(context));
        assert_eq!(TraceContext::from_bytes(&[1; 24]), None);
        let child = context.child(0xabc);
        assert_eq!(child.to_string(), format!("00-{TRACE}-0000000000000abc-01"));
        assert!(context.child(0).to_string().contains("-0000000000000001-"));
    }

    #[test]
    fn the_header_is_read_strictly() {
        let with_flags = |flags: &str| Some(format!("00-{TRACE}-00f067aa0ba902b7-{flags}"));
        for (header, expected) in [
            (HEADER.to_owned(), with_flags("01")),
            (HEADER.replace("-01", "-00"), with_flags("00")),
            (HEADER.replace("-01", "-ff"), with_flags("03")),
            // A later version may have more fields.
            (HEADER.replacen("00-", "01-", 1), with_flags("01")),
            (HEADER.replacen("00-", "cc-", 1) + "-more", with_flags("01")),
            (HEADER.replacen("00-", "cc-", 1) + ".more", None),
            (HEADER.to_owned() + "-more", None),
            (HEADER.replacen("00-", "ff-", 1), None),
            (HEADER.to_uppercase(), None),
            (HEADER.replace(TRACE, &"0".repeat(32)), None),
            (HEADER.replace("00f067aa0ba902b7", &"0".repeat(16)), None),
            (HEADER.replace("-01", "-0g"), None),
            (HEADER.replace("-01", "_01"), None),
            (
                HEADER.replace(TRACE, "xbf92f3577b34da6a3ce929d0e0e4736"),
                None,
            ),
            (HEADER[..54].to_owned(), None),
            (format!(" {HEADER}"), None),
            (String::new(), None),
        ] {
            let read = TraceContext::parse(header.as_bytes());
            assert_eq!(read.map(|read| read.to_string()), expected, "{header:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_can_be_read(header in proptest::collection::vec(any::<u8>(), 0..80)) {
            let read = TraceContext::parse(&header);
            prop_assert!(read.is_none_or(|read| TraceContext::parse(read.to_string().as_bytes()) == Some(read)));
        }
    }
}
