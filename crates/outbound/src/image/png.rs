//! Walks the chunks of a PNG (W3C Portable Network Graphics, chapter 5).

use super::reader::{Fault, Reader};

/// The signature.
pub(super) const START: [u8; 8] = *b"\x89PNG\r\n\x1a\n";

/// A chunk with a correct checksum.
struct Chunk<'a> {
    name: [u8; 4],
    data: &'a [u8],
}

/// The position relative to the image data, whose chunks are consecutive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Data {
    Awaited,
    Running,
    Over,
}

/// Walks from the end of [`START`] to the last chunk.
pub(super) fn walk(rest: &[u8]) -> Result<(), Fault> {
    let mut reader = Reader::new(rest);
    let mut needs_palette = check_header(&next_chunk(&mut reader)?)?;
    let (mut data, mut data_bytes) = (Data::Awaited, 0);
    loop {
        let chunk = next_chunk(&mut reader)?;
        match &chunk.name {
            b"IDAT" if needs_palette => return Err(Fault::Damaged("its palette is missing")),
            b"IDAT" if data == Data::Over => {
                return Err(Fault::Damaged("its picture is in pieces"));
            }
            b"IDAT" => {
                data = Data::Running;
                data_bytes += chunk.data.len();
                continue;
            }
            b"IEND" if data_bytes == 0 => return Err(Fault::Damaged("it holds no picture")),
            b"IEND" => return Ok(()),
            b"PLTE" => needs_palette = false,
            // An unknown chunk whose name starts with a capital is critical: the image cannot be shown without it.
            name if name[0].is_ascii_uppercase() => {
                return Err(Fault::Damaged("it holds an unknown chunk"));
            }
            _ => {}
        }
        if data == Data::Running {
            data = Data::Over;
        }
    }
}

fn next_chunk<'a>(reader: &mut Reader<'a>) -> Result<Chunk<'a>, Fault> {
    let length = u32::from_be_bytes(reader.take_array()?);
    let name: [u8; 4] = reader.take_array()?;
    if !name.iter().all(u8::is_ascii_alphabetic) {
        return Err(Fault::Damaged("a chunk has no name"));
    }
    let data = reader.take(usize::try_from(length).map_err(|_| Fault::Truncated)?)?;
    let checksum = u32::from_be_bytes(reader.take_array()?);
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&name);
    hasher.update(data);
    if hasher.finalize() != checksum {
        return Err(Fault::Damaged("a checksum is wrong"));
    }
    Ok(Chunk { name, data })
}

/// Checks the first chunk. Returns whether the image needs a palette.
fn check_header(chunk: &Chunk<'_>) -> Result<bool, Fault> {
    let header: Option<&[u8; 13]> = chunk.data.try_into().ok();
    let (b"IHDR", Some(header)) = (&chunk.name, header) else {
        return Err(Fault::Damaged("its header is missing"));
    };
    let [
        w3,
        w2,
        w1,
        w0,
        h3,
        h2,
        h1,
        h0,
        depth,
        colour,
        compression,
        filter,
        interlace,
    ] = *header;
    let is_size = |bytes| (1..=0x7FFF_FFFF).contains(&u32::from_be_bytes(bytes));
    if !is_size([w3, w2, w1, w0]) || !is_size([h3, h2, h1, h0]) {
        return Err(Fault::Damaged("its picture has no size"));
    }
    let is_depth = match colour {
        0 => matches!(depth, 1 | 2 | 4 | 8 | 16),
        3 => matches!(depth, 1 | 2 | 4 | 8),
        2 | 4 | 6 => matches!(depth, 8 | 16),
        _ => false,
    };
    if !is_depth || compression != 0 || filter != 0 || interlace > 1 {
        return Err(Fault::Damaged("its header is not valid"));
    }
    Ok(colour == 3)
}
