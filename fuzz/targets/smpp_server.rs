//! Fuzzes what the SMPP server reads from a client: the octets of a session become requests.
//!
//! - No frame stops the server: each is read, or refused by the response of its command with a status that is not OK.
//! - The refusal has the sequence number of the request, and can be encoded.
//! - The same frame is read in the same way again.
//! - The request for a receipt can be read back when the receipt is written.
#![no_main]

use bytes::BytesMut;
use domain::Timestamp;
use libfuzzer_sys::fuzz_target;
use smpp::{Decoder, Frame, command, encode};
use smpp_server::check_frame;

const MAX_PDU: usize = 4096;

fn check(frame: &Frame) {
    let now = Timestamp::from_second(1_900_000_000).expect("in range");
    let refusal = check_frame(frame, "acme", now);
    assert_eq!(check_frame(frame, "acme", now), refusal);
    let Some(refusal) = refusal else { return };
    let (request, sequence) = match frame {
        Frame::Ok(pdu) => (pdu.body.command(), pdu.sequence),
        Frame::Bad {
            command, sequence, ..
        } => (*command, *sequence),
    };
    assert!(!refusal.status.is_ok(), "refused without a reason");
    assert_eq!(refusal.sequence, sequence);
    let answer = refusal.body.command();
    assert!(answer == request | command::RESPONSE || answer == command::GENERIC_NACK);
    encode(&refusal, &mut BytesMut::new()).expect("it can be encoded");
}

fuzz_target!(|stream: &[u8]| {
    let mut buffer = BytesMut::from(stream);
    let mut decoder = Decoder::new(MAX_PDU);
    while let Ok(Some(frame)) = decoder.next(&mut buffer) {
        check(&frame);
    }
});
