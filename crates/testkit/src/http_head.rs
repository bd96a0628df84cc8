//! Reads the head of an HTTP/1.1 message in place. It does not allocate, because the load generator does this for each
//! request.

/// The index after the empty line that ends the head, once that line has arrived.
pub(crate) fn head_end(bytes: &[u8]) -> Option<usize> {
    const EMPTY_LINE: &[u8] = b"\r\n\r\n";
    bytes
        .windows(EMPTY_LINE.len())
        .position(|window| window == EMPTY_LINE)
        .map(|at| at + EMPTY_LINE.len())
}

/// The status code of a response head.
pub(crate) fn status(head: &[u8]) -> Option<u16> {
    let code = head
        .strip_prefix(b"HTTP/1.")?
        .get(1..)?
        .strip_prefix(b" ")?
        .get(..3)?;
    code.iter().all(u8::is_ascii_digit).then(|| {
        code.iter()
            .fold(0, |n, digit| n * 10 + u16::from(digit - b'0'))
    })
}

/// Each header as name and value, in order.
pub(crate) fn headers(head: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    head.split(|byte| *byte == b'\n')
        .skip(1)
        .filter_map(|line| {
            let colon = line.iter().position(|byte| *byte == b':')?;
            Some((&line[..colon], line[colon + 1..].trim_ascii()))
        })
}

/// The value of the first header with this name. Case is ignored.
pub(crate) fn header<'a>(head: &'a [u8], name: &str) -> Option<&'a [u8]> {
    headers(head)
        .find(|(found, _)| found.eq_ignore_ascii_case(name.as_bytes()))
        .map(|(_, value)| value)
}

/// The value of `Content-Length`, if it is a number.
pub(crate) fn content_length(head: &[u8]) -> Option<usize> {
    std::str::from_utf8(header(head, "content-length")?)
        .ok()?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::{content_length, head_end, header, status};

    const HEAD: &[u8] =
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\ncontent-LENGTH:  5\r\n\r\n";

    #[test]
    fn a_head_is_complete_only_with_its_empty_line() {
        assert_eq!(head_end(HEAD), Some(HEAD.len()));
        assert_eq!(
            head_end(&[HEAD, b"hello\r\n\r\n"].concat()),
            Some(HEAD.len())
        );
        assert!((0..HEAD.len()).all(|cut| head_end(&HEAD[..cut]).is_none()));
    }

    #[test]
    fn status_lines() {
        let cases: [(&str, &[u8], Option<u16>); 5] = [
            ("1.1", b"HTTP/1.1 404 Not Found\r\n", Some(404)),
            ("1.0, no reason", b"HTTP/1.0 200", Some(200)),
            ("not a number", b"HTTP/1.1 2x0 OK", None),
            ("cut short", b"HTTP/1.1 20", None),
            ("not HTTP", b"SSH-2.0-x 200", None),
        ];
        for (case, head, expected) in cases {
            assert_eq!(status(head), expected, "{case}");
        }
    }

    #[test]
    fn headers_are_found_in_any_case() {
        assert_eq!(header(HEAD, "content-type"), Some(&b"text/plain"[..]));
        assert_eq!(content_length(HEAD), Some(5));
        assert_eq!(header(HEAD, "x-none"), None);
    }
}
