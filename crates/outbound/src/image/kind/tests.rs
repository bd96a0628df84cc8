//! Complete files are accepted; each kind of damage is reported.

use proptest::prelude::*;

use super::samples::{gif, jpeg, png, png_of, segment};
use super::*;

fn damaged(kind: ImageKind, fault: &'static str) -> Result<ImageKind, NotAnImage> {
    Err(NotAnImage::Damaged { kind, fault })
}

/// The file with the first occurrence of these bytes replaced.
fn with(file: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let at = file.windows(from.len()).position(|window| window == from);
    let at = at.expect("it holds them");
    [&file[..at], to, &file[at + from.len()..]].concat()
}

#[test]
fn whole_files_are_known() {
    let pixel = png();
    let idat = &pixel[41..54];
    let header = |colour| [0, 0, 0, 1, 0, 0, 0, 1, 8, colour, 0, 0, 1];
    for (name, bytes, kind) in [
        ("a JPEG", jpeg(), ImageKind::Jpeg),
        (
            "a JPEG of several scans, with restarts, stuffing and filling",
            with(
                &jpeg(),
                &[0x3F, 0xFF, 0xD9],
                &[
                    &[
                        0x3F, 0xFF, 0x00, 0xFF, 0xD3, 0xFF, 0xFF, 0x00, 1, 0xFF, 0xFF,
                    ][..],
                    &segment(0xDA, &[1, 1, 0, 0, 63, 0])[1..],
                    &[0x3F, 0xFF, 0xFF, 0xD9],
                ]
                .concat(),
            ),
            ImageKind::Jpeg,
        ),
        (
            "a progressive JPEG",
            with(&jpeg(), &[0xFF, 0xC0], &[0xFF, 0xC2]),
            ImageKind::Jpeg,
        ),
        (
            "a JPEG with a comment and a camera's data behind it",
            [
                with(
                    &jpeg(),
                    &[0xFF, 0xDB],
                    &[&segment(0xFE, b"hi")[..], &[0xFF, 0xDB]].concat(),
                ),
                b"more".to_vec(),
            ]
            .concat(),
            ImageKind::Jpeg,
        ),
        ("a PNG", png(), ImageKind::Png),
        (
            "a PNG with a palette, in pieces, with texts and an animation",
            png_of(&[
                (b"IHDR", &header(3)),
                (b"acTL", &[0; 8]),
                (b"PLTE", &[0; 6]),
                (b"tEXt", b"a\0b"),
                (b"IDAT", &idat[..5]),
                (b"IDAT", &idat[5..]),
                (b"tIME", &[0; 7]),
                (b"IEND", b""),
            ]),
            ImageKind::Png,
        ),
        ("a GIF of one frame", gif(1), ImageKind::Gif),
        (
            "a GIF of the older version",
            with(&gif(1), b"GIF89a", b"GIF87a"),
            ImageKind::Gif,
        ),
        (
            "a GIF with colours of its frame's own",
            with(
                &gif(1),
                b"\x2C\0\0\0\0\x01\0\x01\0\0",
                b"\x2C\0\0\0\0\x01\0\x01\0\x81123456789012",
            ),
            ImageKind::Gif,
        ),
    ] {
        assert_eq!(detect_kind(&bytes), Ok(kind), "{name}");
    }
}

#[test]
fn other_files_are_not_accepted_as_images() {
    for (name, bytes, refusal) in [
        ("nothing", &b""[..], NotAnImage::Empty),
        ("a page", b"<!doctype html>", NotAnImage::Unknown),
        ("text that names a kind", b"GIF", NotAnImage::Unknown),
        ("a version to come", b"GIF90a", NotAnImage::Unknown),
        ("a WebP", b"RIFF\x10\0\0\0WEBPVP8 ", NotAnImage::Unknown),
        ("a bitmap", b"BM\x46\0\0\0", NotAnImage::Unknown),
        (
            "a PNG sent as text",
            b"\x89PNG\n\x1a\n",
            NotAnImage::Unknown,
        ),
    ] {
        assert_eq!(detect_kind(bytes), Err(refusal), "{name}");
    }
}

#[test]
fn a_second_frame_is_an_animation() {
    for frames in [2, 3, 100] {
        assert_eq!(
            detect_kind(&gif(frames)),
            Err(NotAnImage::Animated),
            "{frames}"
        );
    }
    // Even if the file is truncated after the second frame.
    let cut = &gif(2)[..gif(2).len() - 8];
    assert_eq!(detect_kind(cut), Err(NotAnImage::Animated));
}

#[test]
fn damage_in_a_jpeg_is_reported() {
    let kind = ImageKind::Jpeg;
    let file = jpeg();
    for (name, from, to, fault) in [
        (
            "no frame",
            &[0xFF, 0xC0][..],
            &[0xFF, 0xE5][..],
            "its picture has no size",
        ),
        (
            "no height",
            &[8, 0, 1, 0, 1],
            &[8, 0, 0, 0, 1],
            "its picture has no size",
        ),
        (
            "no width",
            &[8, 0, 1, 0, 1],
            &[8, 0, 1, 0, 0],
            "its picture has no size",
        ),
        (
            "a missing component",
            &[8, 0, 1, 0, 1, 1],
            &[8, 0, 1, 0, 1, 2],
            "its components are not all there",
        ),
        ("no data", &[63, 0, 0x3F], &[63, 0], "a scan is empty"),
        (
            "a start within",
            &[0x3F, 0xFF, 0xD9],
            &[0x3F, 0xFF, 0xD8],
            "it holds an unknown marker",
        ),
        (
            "a wrong length",
            &[0xE0, 0, 16],
            &[0xE0, 0, 15],
            "a marker is missing",
        ),
        (
            "no length",
            &[0xE0, 0, 16],
            &[0xE0, 0, 1],
            "a segment has no length",
        ),
    ] {
        assert_eq!(
            detect_kind(&with(&file, from, to)),
            damaged(kind, fault),
            "{name}"
        );
    }
    assert_eq!(
        detect_kind(&[0xFF, 0xD8, 0xFF, 0xD9]),
        damaged(kind, "it holds no picture")
    );
    let short = [&[0xFF, 0xD8][..], &segment(0xC0, &[8, 0, 1])].concat();
    assert_eq!(detect_kind(&short), damaged(kind, "its frame is too short"));
}

#[test]
fn damage_in_a_png_is_reported() {
    const GREY: [u8; 13] = [0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0];
    let header = |at: usize, value: u8| {
        let mut header = GREY;
        header[at] = value;
        header
    };
    let kind = ImageKind::Png;
    for (name, chunks, fault) in [
        (
            "no header",
            vec![(b"IDAT", &b"x"[..]), (b"IEND", b"")],
            "its header is missing",
        ),
        (
            "a short header",
            vec![(b"IHDR", &GREY[..12])],
            "its header is missing",
        ),
        (
            "no width",
            vec![(b"IHDR", &header(3, 0)[..])],
            "its picture has no size",
        ),
        (
            "no height",
            vec![(b"IHDR", &header(7, 0))],
            "its picture has no size",
        ),
        (
            "too wide",
            vec![(b"IHDR", &header(0, 0x80))],
            "its picture has no size",
        ),
        (
            "an unknown depth",
            vec![(b"IHDR", &header(8, 3))],
            "its header is not valid",
        ),
        (
            "an unknown colour type",
            vec![(b"IHDR", &header(9, 1))],
            "its header is not valid",
        ),
        (
            "an unknown interlacing",
            vec![(b"IHDR", &header(12, 2))],
            "its header is not valid",
        ),
        (
            "no palette",
            vec![(b"IHDR", &header(9, 3)), (b"IDAT", b"x")],
            "its palette is missing",
        ),
        (
            "no data",
            vec![(b"IHDR", &GREY), (b"IEND", b"")],
            "it holds no picture",
        ),
        (
            "empty data",
            vec![(b"IHDR", &GREY), (b"IDAT", b""), (b"IEND", b"")],
            "it holds no picture",
        ),
        (
            "data in two places",
            vec![
                (b"IHDR", &GREY),
                (b"IDAT", b"x"),
                (b"tEXt", b"a\0"),
                (b"IDAT", b"x"),
            ],
            "its picture is in pieces",
        ),
        (
            "a second header",
            vec![(b"IHDR", &GREY), (b"IHDR", &GREY)],
            "it holds an unknown chunk",
        ),
        (
            "a chunk without a name",
            vec![(b"IHDR", &GREY), (b"a b ", b"")],
            "a chunk has no name",
        ),
    ] {
        assert_eq!(
            detect_kind(&png_of(&chunks)),
            damaged(kind, fault),
            "{name}"
        );
    }
}

#[test]
fn damage_in_a_gif_is_reported() {
    let kind = ImageKind::Gif;
    let file = gif(1);
    for (name, from, to, fault) in [
        (
            "no width",
            &b"\x2C\0\0\0\0\x01"[..],
            &b"\x2C\0\0\0\0\0"[..],
            "its picture has no size",
        ),
        (
            "no height",
            b"\x01\0\x01\0\0\x02",
            b"\x01\0\0\0\0\x02",
            "its picture has no size",
        ),
        (
            "no code size",
            b"\x02\x02\x44",
            b"\x0C\x02\x44",
            "its picture has no code size",
        ),
        (
            "no data",
            b"\x02\x02\x44\x01\0",
            b"\x02\0",
            "its picture is empty",
        ),
        (
            "a stray byte",
            b"\x21\xF9",
            b"\0\x21\xF9",
            "it holds an unknown block",
        ),
    ] {
        assert_eq!(
            detect_kind(&with(&file, from, to)),
            damaged(kind, fault),
            "{name}"
        );
    }
    assert_eq!(detect_kind(&gif(0)), damaged(kind, "it holds no picture"));
}

#[test]
fn a_file_truncated_anywhere_is_refused() {
    for (kind, file, start) in [
        (ImageKind::Jpeg, jpeg(), 3),
        (ImageKind::Png, png(), 8),
        (ImageKind::Gif, gif(1), 6),
    ] {
        for end in start..file.len() {
            let got = detect_kind(&file[..end]);
            assert_eq!(
                got,
                Err(NotAnImage::Truncated(kind)),
                "{kind} of {end} bytes"
            );
        }
    }
}

#[test]
fn a_changed_byte_of_a_png_is_noticed() {
    let file = png();
    for at in 0..file.len() {
        let mut changed = file.clone();
        changed[at] ^= 0x20;
        assert!(detect_kind(&changed).is_err(), "byte {at}");
    }
}

fn some_start() -> impl Strategy<Value = Vec<u8>> {
    let whole = || prop_oneof![Just(jpeg()), Just(png()), Just(gif(1))];
    let cut = (whole(), any::<prop::sample::Index>()).prop_map(|(mut file, at)| {
        file.truncate(at.index(file.len()));
        file
    });
    prop_oneof![Just(Vec::new()), cut]
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(start in some_start(), rest: Vec<u8>) {
        let refusal = detect_kind(&[start, rest].concat()).err();
        prop_assert!(refusal.is_none_or(|refusal| !refusal.to_string().is_empty()));
    }

    #[test]
    fn no_change_to_a_file_makes_it_panic(
        file in prop_oneof![Just(jpeg()), Just(png()), Just(gif(2))],
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut file = file;
        for (at, byte) in changes {
            let at = at.index(file.len());
            file[at] = byte;
        }
        let refusal = detect_kind(&file).err();
        prop_assert!(refusal.is_none_or(|refusal| !refusal.to_string().is_empty()));
    }

    #[test]
    fn data_after_the_end_is_ignored(rest: Vec<u8>) {
        for (kind, file) in [(ImageKind::Jpeg, jpeg()), (ImageKind::Png, png()), (ImageKind::Gif, gif(1))] {
            prop_assert_eq!(detect_kind(&[file, rest.clone()].concat()), Ok(kind));
        }
    }
}
