//! Walks the blocks of a GIF (`GIF89a` Specification).

use super::reader::{Fault, Reader};

/// The signatures of both versions.
pub(super) const STARTS: [[u8; 6]; 2] = [*b"GIF87a", *b"GIF89a"];

const EXTENSION: u8 = 0x21;
const IMAGE: u8 = 0x2C;
const TRAILER: u8 = 0x3B;

/// Walks from the end of the signature to the trailer. More than one frame is an animation, whatever its timing.
pub(super) fn walk(rest: &[u8]) -> Result<(), Fault> {
    let mut reader = Reader::new(rest);
    let [_, _, _, _, flags, _, _] = reader.take_array()?;
    skip_colours(&mut reader, flags)?;
    let mut has_frame = false;
    loop {
        match reader.byte()? {
            IMAGE if has_frame => return Err(Fault::Animated),
            IMAGE => {
                skip_frame(&mut reader)?;
                has_frame = true;
            }
            EXTENSION => {
                reader.byte()?;
                skip_blocks(&mut reader)?;
            }
            TRAILER if has_frame => return Ok(()),
            TRAILER => return Err(Fault::Damaged("it holds no picture")),
            _ => return Err(Fault::Damaged("it holds an unknown block")),
        }
    }
}

/// Position and size, an optional colour table, and the data.
fn skip_frame(reader: &mut Reader<'_>) -> Result<(), Fault> {
    let [_, _, _, _, w0, w1, h0, h1, flags] = reader.take_array()?;
    if [w0, w1] == [0, 0] || [h0, h1] == [0, 0] {
        return Err(Fault::Damaged("its picture has no size"));
    }
    skip_colours(reader, flags)?;
    // Codes have at most 12 bits, and the first ones are one bit longer than this size.
    if !(1..=11).contains(&reader.byte()?) {
        return Err(Fault::Damaged("its picture has no code size"));
    }
    match skip_blocks(reader)? {
        0 => Err(Fault::Damaged("its picture is empty")),
        _ => Ok(()),
    }
}

/// A colour table, if the flags announce one.
fn skip_colours(reader: &mut Reader<'_>, flags: u8) -> Result<(), Fault> {
    if flags & 0x80 == 0 {
        return Ok(());
    }
    let colours = 2_usize << (flags & 0x07);
    reader.take(colours * 3).map(drop)
}

/// Skips data blocks, each preceded by its length, up to an empty one. Returns the number of bytes.
fn skip_blocks(reader: &mut Reader<'_>) -> Result<usize, Fault> {
    let mut bytes = 0;
    loop {
        match reader.byte()? {
            0 => return Ok(bytes),
            length => bytes += reader.take(length.into())?.len(),
        }
    }
}
