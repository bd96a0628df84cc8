//! QR codes as SVG paths.

use qrcodegen::{Mask, QrCode, QrCodeEcc, QrSegment, Version};

/// Light modules around a code.
const QUIET_ZONE: i32 = 4;
/// Larger codes are hard to scan from a screen.
const MAX_VERSION: u8 = 10;

/// A QR code, as the path of an SVG.
pub(crate) struct Picture {
    /// Width and height in modules, with the quiet zone.
    pub(crate) side: i32,
    /// A square for each dark module.
    pub(crate) path: String,
}

impl Picture {
    /// Returns `None` for a text that is too long.
    pub(crate) fn encode(text: &str) -> Option<Self> {
        use std::fmt::Write as _;
        let code = encode(text.as_bytes())?;
        let mut path = String::new();
        for y in 0..code.size() {
            for x in (0..code.size()).filter(|x| code.get_module(*x, y)) {
                let (x, y) = (x + QUIET_ZONE, y + QUIET_ZONE);
                write!(path, "M{x} {y}h1v1h-1z").expect("a String accepts every write");
            }
        }
        Some(Self {
            side: code.size() + 2 * QUIET_ZONE,
            path,
        })
    }
}

/// Always uses the first mask, so that the same text gives the same picture.
fn encode(text: &[u8]) -> Option<QrCode> {
    let code = QrCode::encode_segments_advanced(
        &[QrSegment::make_bytes(text)],
        QrCodeEcc::Medium,
        Version::MIN,
        Version::new(MAX_VERSION),
        Some(Mask::new(0)),
        false,
    );
    code.ok()
}

#[cfg(test)]
mod tests {
    use domain::access::token::TokenHash;
    use rqrr::{Grid, SimpleGrid};

    use super::*;

    fn modules(code: &QrCode) -> Vec<Vec<bool>> {
        let side = 0..code.size();
        side.clone()
            .map(|y| side.clone().map(|x| code.get_module(x, y)).collect())
            .collect()
    }

    /// Reads a code with a decoder that is not by the encoder's authors.
    fn decode(code: &QrCode) -> String {
        let modules = modules(code);
        let grid = SimpleGrid::from_func(modules.len(), |x, y| modules[y][x]);
        let (_, text) = Grid::new(grid).decode().expect("a readable code");
        text
    }

    #[test]
    fn every_length_can_be_read_back() {
        for length in 0..=213 {
            let text: Vec<u8> = (0..length).map(|n| b' ' + n % 90).collect();
            let code = encode(&text).expect("it fits");
            assert_eq!(decode(&code).as_bytes(), text, "{length}");
        }
        assert!(encode(&[b'a'; 214]).is_none(), "too long");
    }

    /// Each text fills its version to the last byte.
    #[test]
    fn codes_do_not_change() {
        for (length, expected) in [
            (14, "738acf0e"),
            (26, "cb75d5a8"),
            (42, "d28dd3d6"),
            (62, "95ef449d"),
            (84, "eaf37529"),
            (106, "3d886138"),
            (122, "9a89184d"),
            (152, "5055a79f"),
            (180, "13f2baf4"),
            (213, "830b6751"),
        ] {
            let text = "x7Q-".repeat(60)[..length].to_owned();
            let code = encode(text.as_bytes()).expect("it fits");
            let rows: Vec<String> = modules(&code)
                .iter()
                .map(|row| {
                    row.iter()
                        .map(|dark| if *dark { '1' } else { '0' })
                        .collect()
                })
                .collect();
            let hash = TokenHash::from_secret(&rows.join("\n"));
            let [a, b, c, d, ..] = hash.as_bytes();
            let found = format!("{a:02x}{b:02x}{c:02x}{d:02x}");
            assert_eq!(found, expected, "{length}");
        }
    }

    #[test]
    fn a_picture_has_a_quiet_zone_around_it() {
        let picture = Picture::encode("ann").expect("it fits");
        assert_eq!(picture.side, 21 + 8);
        assert!(picture.path.starts_with("M4 4h1v1h-1z"), "{}", picture.path);
    }
}
