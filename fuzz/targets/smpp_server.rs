//! Fuzzes what the SMPP server reads from a client: the octets of a session become messages to send.
//!
//! - No message stops the server: each is read, or refused with a status that is not OK.
//! - The same message is read in the same way again.
//! - The request for a receipt can be read back when the receipt is written.
#![no_main]

use bytes::BytesMut;
use domain::Timestamp;
use libfuzzer_sys::fuzz_target;
use smpp::{Body, Decoder, Frame, ShortMessage};
use smpp_server::check_message;

const MAX_PDU: usize = 4096;

fn check(message: &ShortMessage) {
    let now = Timestamp::from_second(1_900_000_000).expect("in range");
    let read = check_message(message, "acme", now);
    if let Err(status) = read {
        assert!(!status.is_ok(), "refused without a reason");
    }
    assert_eq!(check_message(message, "acme", now), read);
}

fuzz_target!(|stream: &[u8]| {
    let mut buffer = BytesMut::from(stream);
    let mut decoder = Decoder::new(MAX_PDU);
    while let Ok(Some(frame)) = decoder.next(&mut buffer) {
        let Frame::Ok(pdu) = frame else { continue };
        match pdu.body {
            Body::SubmitSm(message) => check(&message),
            Body::SubmitMulti(multi) => check(&multi.message),
            _ => {}
        }
    }
});
