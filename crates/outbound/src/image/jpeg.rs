//! Walks the markers of a JPEG (ITU-T T.81, annex B).

use super::reader::{Fault, Reader};

/// The start marker, and the first byte of the next marker.
pub(super) const START: [u8; 3] = [0xFF, START_OF_IMAGE, 0xFF];

const START_OF_IMAGE: u8 = 0xD8;
const END_OF_IMAGE: u8 = 0xD9;
const START_OF_SCAN: u8 = 0xDA;

/// Walks from the end of [`START`] to the end marker.
pub(super) fn walk(rest: &[u8]) -> Result<(), Fault> {
    let mut reader = Reader::new(rest);
    let (mut has_frame, mut has_scan) = (false, false);
    let mut marker = marker_code(&mut reader)?;
    loop {
        match marker {
            END_OF_IMAGE if has_scan => return Ok(()),
            END_OF_IMAGE => return Err(Fault::Damaged("it holds no picture")),
            START_OF_SCAN if has_frame => {
                segment(&mut reader)?;
                skip_scan(&mut reader)?;
                has_scan = true;
            }
            START_OF_SCAN => return Err(Fault::Damaged("its picture has no size")),
            code if is_frame(code) => {
                check_frame(segment(&mut reader)?)?;
                has_frame = true;
            }
            // These markers have no segment.
            0x01 | 0xD0..=0xD7 => {}
            0x00 | 0x02..=0xBF | START_OF_IMAGE | 0xFF => {
                return Err(Fault::Damaged("it holds an unknown marker"));
            }
            _ => drop(segment(&mut reader)?),
        }
        marker = next_marker(&mut reader)?;
    }
}

/// The codes from C0 to CF, except for three with another meaning.
const fn is_frame(code: u8) -> bool {
    matches!(code, 0xC0..=0xCF) && !matches!(code, 0xC4 | 0xC8 | 0xCC)
}

fn next_marker(reader: &mut Reader<'_>) -> Result<u8, Fault> {
    match reader.byte()? {
        0xFF => marker_code(reader),
        _ => Err(Fault::Damaged("a marker is missing")),
    }
}

/// The code after a marker's first byte, which may be repeated.
fn marker_code(reader: &mut Reader<'_>) -> Result<u8, Fault> {
    loop {
        match reader.byte()? {
            0xFF => {}
            code => return Ok(code),
        }
    }
}

/// The content of a segment. Its length includes the length field itself.
fn segment<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], Fault> {
    let length = u16::from_be_bytes(reader.take_array()?);
    let content = length.checked_sub(2);
    let content = content.ok_or(Fault::Damaged("a segment has no length"))?;
    reader.take(content.into())
}

/// Precision, height, width and the number of components, then three bytes for each component.
fn check_frame(frame: &[u8]) -> Result<(), Fault> {
    let Some(([_, h1, h0, w1, w0, components], rest)) = frame.split_first_chunk() else {
        return Err(Fault::Damaged("its frame is too short"));
    };
    if rest.len() != usize::from(*components) * 3 || *components == 0 {
        return Err(Fault::Damaged("its components are not all there"));
    }
    if [*h1, *h0] == [0, 0] || [*w1, *w0] == [0, 0] {
        return Err(Fault::Damaged("its picture has no size"));
    }
    Ok(())
}

/// Skips image data up to the next marker. FF followed by zero is data, and restart markers belong to the data.
fn skip_scan(reader: &mut Reader<'_>) -> Result<(), Fault> {
    let data = reader.rest();
    let mut at = 0;
    loop {
        at += position(&data[at..], |byte| byte == 0xFF)?;
        let code_at = at + position(&data[at..], |byte| byte != 0xFF)?;
        if !matches!(data[code_at], 0x00 | 0xD0..=0xD7) {
            break;
        }
        at = code_at + 1;
    }
    if at == 0 {
        return Err(Fault::Damaged("a scan is empty"));
    }
    reader.take(at).map(drop)
}

fn position(bytes: &[u8], is_it: impl Fn(u8) -> bool) -> Result<usize, Fault> {
    let found = bytes.iter().position(|byte| is_it(*byte));
    found.ok_or(Fault::Truncated)
}
