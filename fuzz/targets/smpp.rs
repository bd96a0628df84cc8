//! Fuzzes the SMPP codec. The first octet is the size of the pieces in which the stream arrives.
//!
//! - The frames do not depend on the pieces, and each has the length that it declares.
//! - A PDU that was decoded and can be encoded decodes to the same PDU again.
//! - A PDU is never read from beyond its frame.
#![no_main]

use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use smpp::{Decoder, FatalLength, Frame, HEADER, encode};

const MAX_PDU: usize = 4096;

/// The frames of a stream, the size of the rest, and the error that ended it.
fn frames(stream: &[u8], piece: usize) -> (Vec<Frame>, usize, Option<FatalLength>) {
    let mut decoder = Decoder::new(MAX_PDU);
    let mut buffer = BytesMut::new();
    let mut frames = Vec::new();
    for octets in stream.chunks(piece) {
        buffer.extend_from_slice(octets);
        loop {
            let before = buffer.len();
            match decoder.next(&mut buffer) {
                Ok(Some(frame)) => {
                    assert!(before - buffer.len() >= HEADER, "a frame without a header");
                    frames.push(frame);
                }
                Ok(None) => {
                    assert_eq!(before, buffer.len(), "octets of no frame were taken");
                    break;
                }
                // Nothing after it can be read.
                Err(fatal) => return (frames, 0, Some(fatal)),
            }
        }
    }
    (frames, buffer.len(), None)
}

fuzz_target!(|input: &[u8]| {
    let Some((piece, stream)) = input.split_first() else {
        return;
    };
    let whole = frames(stream, stream.len().max(1));
    assert_eq!(frames(stream, usize::from(*piece) + 1), whole);
    for frame in &whole.0 {
        let Frame::Ok(pdu) = frame else { continue };
        let mut octets = BytesMut::from(&b"before"[..]);
        if encode(pdu, &mut octets).is_err() {
            assert_eq!(&octets[..], b"before", "an error left octets behind");
            continue;
        }
        let written = octets.split_off(6);
        assert_eq!(
            written[..4],
            u32::try_from(written.len()).expect("short").to_be_bytes()
        );
        let mut again = written.clone();
        // Octets after the frame belong to the next one.
        again.extend_from_slice(&[0xFF; 3]);
        let read = Decoder::new(2 * MAX_PDU).next(&mut again);
        assert_eq!(read, Ok(Some(frame.clone())));
        assert_eq!(&again[..], [0xFF; 3]);
    }
});
