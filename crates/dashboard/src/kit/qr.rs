//! QR codes (ISO/IEC 18004), as much as the address of a second factor needs: bytes, level M, versions 1 to 10, and always
//! the first mask, which every reader takes.

/// How many light modules stand around a code.
const QUIET: usize = 4;
/// The 15 bits that name level M and the first mask.
const FORMAT: u32 = 0x5412;
/// What fills the room that is left.
const PADDING: [u8; 2] = [0xec, 0x11];

/// For each version: bytes in all, bytes of error correction in each block, blocks.
const VERSIONS: [(usize, usize, usize); 10] = [
    (26, 10, 1),
    (44, 16, 1),
    (70, 26, 1),
    (100, 18, 2),
    (134, 24, 2),
    (172, 16, 4),
    (196, 18, 4),
    (242, 22, 4),
    (292, 22, 5),
    (346, 26, 5),
];

/// How a code is laid out.
struct Version {
    number: usize,
    /// Bytes of data, before error correction.
    data: usize,
    correction: usize,
    blocks: usize,
}

/// A picture, as the path of an SVG.
pub(crate) struct Picture {
    /// How many squares wide and high, with the quiet zone.
    pub(crate) side: usize,
    /// A square for each dark module.
    pub(crate) path: String,
}

impl Picture {
    /// The picture of a text; `None` when the text is too long.
    pub(crate) fn of(text: &str) -> Option<Self> {
        use std::fmt::Write as _;
        let modules = encode(text.as_bytes())?;
        let mut path = String::new();
        for (y, row) in modules.iter().enumerate() {
            for x in (0..row.len()).filter(|x| row[*x]) {
                let (x, y) = (x + QUIET, y + QUIET);
                write!(path, "M{x} {y}h1v1h-1z").expect("a text takes everything");
            }
        }
        Some(Self {
            side: modules.len() + 2 * QUIET,
            path,
        })
    }
}

/// The modules of a code, row by row; `true` is dark.
fn encode(text: &[u8]) -> Option<Vec<Vec<bool>>> {
    let mut versions = (1..).zip(VERSIONS);
    let version = versions.find_map(|(number, (total, correction, blocks))| {
        let data = total - correction * blocks;
        let version = Version {
            number,
            data,
            correction,
            blocks,
        };
        let head_bits = 4 + length_bits(number);
        (head_bits + 8 * text.len() <= 8 * data).then_some(version)
    })?;
    let bytes = interleave(&version, &pack(&version, text));
    let mut grid = Grid::new(17 + 4 * version.number);
    grid.draw_patterns(version.number);
    grid.fill(&bytes);
    Some(grid.dark)
}

fn length_bits(version: usize) -> usize {
    if version < 10 { 8 } else { 16 }
}

/// Mode, length, text and padding.
fn pack(version: &Version, text: &[u8]) -> Vec<u8> {
    let mut bits: Vec<bool> = Vec::with_capacity(8 * version.data);
    let mut push = |value: usize, count: usize| {
        bits.extend((0..count).rev().map(|place| value >> place & 1 == 1));
    };
    push(0b0100, 4);
    push(text.len(), length_bits(version.number));
    for byte in text {
        push(usize::from(*byte), 8);
    }
    let room = 8 * version.data - bits.len();
    bits.extend([false; 4].into_iter().take(room));
    let whole = bits.len().next_multiple_of(8);
    bits.resize(whole, false);
    let bytes = bits.chunks_exact(8).map(|eight| {
        let join = |byte: u8, bit: &bool| byte << 1 | u8::from(*bit);
        eight.iter().fold(0, join)
    });
    let padding = PADDING.into_iter().cycle();
    bytes.chain(padding).take(version.data).collect()
}

/// Cuts the data into blocks, adds each one's error correction, and takes a byte of each block in turn.
fn interleave(version: &Version, data: &[u8]) -> Vec<u8> {
    let divisor = divisor(version.correction);
    let (short, long) = (data.len() / version.blocks, data.len() % version.blocks);
    let mut blocks = Vec::with_capacity(version.blocks);
    let mut rest = data;
    for block in 0..version.blocks {
        let is_long = block >= version.blocks - long;
        let (own, after) = rest.split_at(short + usize::from(is_long));
        blocks.push((own, remainder(own, &divisor)));
        rest = after;
    }
    let mut bytes = Vec::new();
    for place in 0..=short {
        bytes.extend(blocks.iter().filter_map(|(own, _)| own.get(place)));
    }
    for place in 0..version.correction {
        bytes.extend(blocks.iter().map(|(_, correction)| correction[place]));
    }
    bytes
}

/// Multiplies in the field of 256 elements that the standard names.
fn multiply(a: u8, b: u8) -> u8 {
    (0..8).rev().fold(0, |product: u8, place| {
        let carry = (product >> 7) * 0x1d;
        (product << 1) ^ carry ^ ((b >> place & 1) * a)
    })
}

/// The product of (x - 2^0) to (x - 2^(degree-1)), without its leading 1.
fn divisor(degree: usize) -> Vec<u8> {
    let mut divisor = vec![0; degree];
    divisor[degree - 1] = 1;
    let mut root = 1;
    for _ in 0..degree {
        for place in 0..degree {
            let next = divisor.get(place + 1).copied().unwrap_or(0);
            divisor[place] = multiply(divisor[place], root) ^ next;
        }
        root = multiply(root, 2);
    }
    divisor
}

fn remainder(data: &[u8], divisor: &[u8]) -> Vec<u8> {
    let mut rest = vec![0; divisor.len()];
    for byte in data {
        let factor = byte ^ rest.remove(0);
        rest.push(0);
        for (place, coefficient) in rest.iter_mut().zip(divisor) {
            *place ^= multiply(*coefficient, factor);
        }
    }
    rest
}

/// The square, and which of its modules are patterns that no data may stand on.
struct Grid {
    side: usize,
    dark: Vec<Vec<bool>>,
    is_pattern: Vec<Vec<bool>>,
}

impl Grid {
    fn new(side: usize) -> Self {
        Self {
            side,
            dark: vec![vec![false; side]; side],
            is_pattern: vec![vec![false; side]; side],
        }
    }

    fn set(&mut self, x: usize, y: usize, is_dark: bool) {
        self.dark[y][x] = is_dark;
        self.is_pattern[y][x] = true;
    }

    fn draw_patterns(&mut self, version: usize) {
        let side = self.side;
        for place in 0..side {
            self.set(6, place, place % 2 == 0);
            self.set(place, 6, place % 2 == 0);
        }
        for (x, y) in [(3, 3), (side - 4, 3), (3, side - 4)] {
            self.draw_rings(x, y, 4);
        }
        let (first, last) = (6, side - 7);
        let centres: &[usize] = match version {
            1 => &[],
            2..=6 => &[first, last],
            _ => &[first, usize::midpoint(first, last), last],
        };
        for (x, y) in centres
            .iter()
            .flat_map(|x| centres.iter().map(move |y| (*x, *y)))
        {
            // Three corners belong to the finders.
            if ![(first, first), (first, last), (last, first)].contains(&(x, y)) {
                self.draw_rings(x, y, 2);
            }
        }
        self.draw_format();
        if version >= 7 {
            self.draw_version(version);
        }
    }

    /// The number with its check bits, written twice.
    fn draw_version(&mut self, version: usize) {
        let check = (0..12).fold(version, |rest, _| (rest << 1) ^ ((rest >> 11) * 0x1f25));
        let bits = version << 12 | check;
        for place in 0..18 {
            let (a, b) = (self.side - 11 + place % 3, place / 3);
            self.set(a, b, bits >> place & 1 == 1);
            self.set(b, a, bits >> place & 1 == 1);
        }
    }

    /// Rings around a centre: the finders are of radius 4, with the light ring around them, the others of radius 2.
    fn draw_rings(&mut self, x: usize, y: usize, radius: usize) {
        let around = |at: usize| at.saturating_sub(radius)..(at + radius + 1).min(self.side);
        let (rows, columns) = (around(y), around(x));
        for row in rows {
            for column in columns.clone() {
                let ring = row.abs_diff(y).max(column.abs_diff(x));
                let is_dark = if radius == 4 {
                    ring != 2 && ring != 4
                } else {
                    ring != 1
                };
                self.set(column, row, is_dark);
            }
        }
    }

    /// Written twice, each bit from the lowest on.
    fn draw_format(&mut self) {
        let side = self.side;
        let first = (0..6).map(|i| (8, i)).chain([(8, 7), (8, 8), (7, 8)]);
        let first = first.chain((9..15).map(|i| (14 - i, 8)));
        let second = (0..8).map(|i| (side - 1 - i, 8));
        let second = second.chain((8..15).map(|i| (8, side - 15 + i)));
        for places in [first.collect::<Vec<_>>(), second.collect()] {
            for (bit, (x, y)) in places.into_iter().enumerate() {
                self.set(x, y, FORMAT >> bit & 1 == 1);
            }
        }
        self.set(8, side - 8, true);
    }

    /// Writes the bytes in columns of two from the right, up and down in turn, and masks them.
    fn fill(&mut self, bytes: &[u8]) {
        let bits = bytes
            .iter()
            .flat_map(|byte| (0..8).rev().map(move |i| byte >> i & 1 == 1));
        let mut bits = bits.chain(std::iter::repeat(false));
        // The column of the timing pattern is left out.
        let rights = (0..self.side).rev().filter(|x| *x != 6).step_by(2);
        for (turn, right) in rights.enumerate() {
            for step in 0..self.side {
                let y = if turn % 2 == 0 {
                    self.side - 1 - step
                } else {
                    step
                };
                for x in [right, right - 1] {
                    if !self.is_pattern[y][x] {
                        let bit = bits.next().unwrap_or_default();
                        self.dark[y][x] = bit != ((x + y) % 2 == 0);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::access::token::TokenHash;

    use super::*;

    /// Reads a code back: where data stands, unmasked, block by block, without a mistake that would have to be corrected.
    fn decode(modules: &[Vec<bool>]) -> Vec<u8> {
        let number = (modules.len() - 17) / 4;
        let (total, correction, blocks) = VERSIONS[number - 1];
        let mut grid = Grid::new(modules.len());
        grid.draw_patterns(number);
        let mut bits = Vec::new();
        let columns: Vec<usize> = (0..modules.len()).rev().filter(|x| *x != 6).collect();
        for (turn, pair) in columns.chunks(2).enumerate() {
            for step in 0..modules.len() {
                let up = modules.len() - 1 - step;
                let y = if turn % 2 == 0 { up } else { step };
                let free = pair.iter().filter(|x| !grid.is_pattern[y][**x]);
                bits.extend(free.map(|x| modules[y][*x] != ((x + y) % 2 == 0)));
            }
        }
        let join = |eight: &[bool]| eight.iter().fold(0, |byte, bit| byte << 1 | u8::from(*bit));
        let bytes: Vec<u8> = bits.chunks_exact(8).map(join).take(total).collect();
        let data = total - correction * blocks;
        let (short, long) = (data / blocks, data % blocks);
        let mut read = Vec::new();
        for block in 0..blocks {
            let mut own: Vec<u8> = (0..short).map(|at| bytes[at * blocks + block]).collect();
            if block >= blocks - long {
                own.push(bytes[short * blocks + block - (blocks - long)]);
            }
            let kept: Vec<u8> = (0..correction)
                .map(|at| bytes[data + at * blocks + block])
                .collect();
            assert_eq!(remainder(&own, &divisor(correction)), kept, "{block}");
            read.extend(own);
        }
        let half = |at: usize| read[at / 2] >> (4 * (1 - at % 2)) & 0xf;
        assert_eq!(half(0), 0b0100, "the mode of bytes");
        let digits = length_bits(number) / 4;
        let length = (1..=digits).fold(0, |length, at| length << 4 | usize::from(half(at)));
        let first = digits + 1;
        let byte = |at: usize| half(first + 2 * at) << 4 | half(first + 2 * at + 1);
        (0..length).map(byte).collect()
    }

    #[test]
    fn every_length_can_be_read_back() {
        for length in 0..=213 {
            let text: Vec<u8> = (0..length).map(|n| b' ' + n % 90).collect();
            let modules = encode(&text).expect("it fits");
            assert_eq!(decode(&modules), text, "{length}");
        }
        assert_eq!(encode(&[b'a'; 214]), None, "too long");
    }

    /// Each text fills its version to the last byte. The pictures were compared with those of another encoder.
    #[test]
    fn codes_are_those_that_others_make() {
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
            let modules = encode(text.as_bytes()).expect("it fits");
            let rows: Vec<String> = modules
                .iter()
                .map(|row| {
                    row.iter()
                        .map(|dark| if *dark { '1' } else { '0' })
                        .collect()
                })
                .collect();
            let hash = TokenHash::of(&rows.join("\n"));
            let [a, b, c, d, ..] = hash.as_bytes();
            let found = format!("{a:02x}{b:02x}{c:02x}{d:02x}");
            assert_eq!(found, expected, "{length}");
        }
    }

    #[test]
    fn a_picture_has_a_quiet_zone_around_it() {
        let picture = Picture::of("ann").expect("it fits");
        assert_eq!(picture.side, 21 + 8);
        assert!(picture.path.starts_with("M4 4h1v1h-1z"), "{}", picture.path);
    }
}
