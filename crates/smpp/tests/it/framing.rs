//! Framing holds for any octets, in pieces of any size.

use bytes::BytesMut;
use proptest::collection::vec;
use proptest::prelude::*;
use smpp::{Decoder, FatalLength, Frame, encode};

use crate::pdus::any_pdu;

/// All frames, when the octets arrive in pieces of these sizes in turn.
fn frames(octets: &[u8], pieces: &[usize]) -> (Vec<Frame>, Result<usize, FatalLength>) {
    let mut decoder = Decoder::default();
    let mut buffer = BytesMut::new();
    let mut found = Vec::new();
    let mut rest = octets;
    for piece in pieces.iter().cycle() {
        let (now, later) = rest.split_at((*piece).min(rest.len()));
        buffer.extend_from_slice(now);
        rest = later;
        loop {
            match decoder.next(&mut buffer) {
                Ok(Some(frame)) => found.push(frame),
                Ok(None) => break,
                Err(fatal) => return (found, Err(fatal)),
            }
        }
        if rest.is_empty() {
            break;
        }
    }
    (found, Ok(buffer.len()))
}

/// The number of frames, by their lengths alone.
fn count(octets: &[u8]) -> usize {
    let mut rest = octets;
    let mut frames = 0;
    while let Some(length) = rest.first_chunk().copied().map(u32::from_be_bytes) {
        let length = length as usize;
        if !(16..=smpp::DEFAULT_MAX_PDU).contains(&length) || length > rest.len() {
            break;
        }
        rest = &rest[length..];
        frames += 1;
    }
    frames
}

/// A frame with a correct length and random content.
fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let known = prop_oneof![
        1..=0x15_u32,
        0x102..=0x103_u32,
        0x8000_0000..=0x8000_0015_u32,
        any::<u32>()
    ];
    (known, vec(any::<u8>(), 8..120)).prop_map(|(command, rest)| {
        let length = u32::try_from(rest.len() + 8).expect("short");
        [&length.to_be_bytes()[..], &command.to_be_bytes(), &rest].concat()
    })
}

proptest! {
    #[test]
    fn random_octets_never_panic(octets in vec(any::<u8>(), 0..400), pieces in vec(1..50_usize, 1..4)) {
        let _: (Vec<Frame>, _) = frames(&octets, &pieces);
    }

    #[test]
    fn odd_bodies_do_not_break_the_framing(bodies in vec(any_frame(), 1..20), pieces in vec(1..50_usize, 1..4)) {
        let octets = bodies.concat();
        let (found, end) = frames(&octets, &pieces);
        prop_assert_eq!(found.len(), bodies.len());
        prop_assert_eq!(end, Ok(0));
    }

    #[test]
    fn changed_octets_keep_the_framing_and_pieces_do_not_matter(
        pdus in vec(any_pdu(), 1..5),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        pieces in vec(1..50_usize, 1..4),
    ) {
        let mut wire = BytesMut::new();
        for pdu in &pdus {
            encode(pdu, &mut wire).expect("all of these fit");
        }
        let mut octets = wire.to_vec();
        for (at, octet) in changes {
            let at = at.index(octets.len());
            octets[at] = octet;
        }
        let at_once = frames(&octets, &[octets.len()]);
        prop_assert_eq!(at_once.0.len(), count(&octets));
        prop_assert_eq!(&frames(&octets, &[1]), &at_once);
        prop_assert_eq!(&frames(&octets, &pieces), &at_once);
    }
}
