//! The smallest possible images, one pixel each.

/// A complete JPEG whose only block of pixels is all zeros.
pub(crate) fn jpeg() -> Vec<u8> {
    let mut bytes = vec![0xFF, 0xD8];
    bytes.extend(segment(0xE0, b"JFIF\0\x01\x01\0\0\x01\0\x01\0\0"));
    bytes.extend(segment(0xDB, &[&[0][..], &[1; 64]].concat()));
    bytes.extend(segment(0xC0, &[8, 0, 1, 0, 1, 1, 1, 0x11, 0]));
    // One code each for direct and alternating current: a zero bit, which means that nothing follows.
    for table in [0x00, 0x10] {
        let mut codes = [0; 18];
        (codes[0], codes[1]) = (table, 1);
        bytes.extend(segment(0xC4, &codes));
    }
    bytes.extend(segment(0xDA, &[1, 1, 0, 0, 63, 0]));
    bytes.extend([0x3F, 0xFF, 0xD9]);
    bytes
}

/// A segment of a JPEG.
pub(crate) fn segment(marker: u8, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len() + 2).expect("short");
    [&[0xFF, marker][..], &length.to_be_bytes(), content].concat()
}

/// A complete PNG with one grey pixel, not compressed.
pub(crate) fn png() -> Vec<u8> {
    let header = [0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0];
    let data = b"\x78\x01\x01\x02\x00\xFD\xFF\x00\x7F\x00\x81\x00\x80";
    png_of(&[(b"IHDR", &header), (b"IDAT", data), (b"IEND", b"")])
}

/// A PNG with these chunks.
pub(crate) fn png_of(chunks: &[(&[u8; 4], &[u8])]) -> Vec<u8> {
    let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
    for (name, data) in chunks {
        let length = u32::try_from(data.len()).expect("short");
        let named = [&name[..], data].concat();
        bytes.extend(length.to_be_bytes());
        bytes.extend(&named);
        bytes.extend(crc32fast::hash(&named).to_be_bytes());
    }
    bytes
}

/// A complete GIF with this many frames, each shown for a tenth of a second.
pub(crate) fn gif(frames: usize) -> Vec<u8> {
    let mut bytes = b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xFF\xFF\xFF".to_vec();
    bytes.extend(b"\x21\xFF\x0BNETSCAPE2.0\x03\x01\0\0\0");
    for _ in 0..frames {
        bytes.extend(b"\x21\xF9\x04\0\x0A\0\0\0");
        bytes.extend(b"\x2C\0\0\0\0\x01\0\x01\0\0\x02\x02\x44\x01\0");
    }
    bytes.push(0x3B);
    bytes
}
