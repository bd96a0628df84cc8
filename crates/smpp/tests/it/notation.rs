//! Parses octets in a readable notation: `0000001D 'text' 00`.

/// Octets from pairs of hexadecimal digits and quoted text. White space is ignored.
pub(crate) fn octets(written: &str) -> Vec<u8> {
    let mut octets = Vec::new();
    for (index, part) in written.split('\'').enumerate() {
        if index % 2 == 1 {
            octets.extend_from_slice(part.as_bytes());
            continue;
        }
        let digits: Vec<u8> = part
            .chars()
            .filter(|letter| !letter.is_whitespace())
            .map(|letter| letter.to_digit(16).expect("hexadecimal digits"))
            .map(|digit| u8::try_from(digit).expect("one digit"))
            .collect();
        octets.extend(digits.chunks(2).map(|pair| (pair[0] << 4) | pair[1]));
    }
    octets
}
