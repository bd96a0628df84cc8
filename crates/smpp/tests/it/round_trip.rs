//! Encoded PDUs decode to the same PDU.

use bytes::BytesMut;
use proptest::collection::vec;
use proptest::prelude::*;
use smpp::{Decoder, Frame, encode};

use crate::pdus::any_pdu;

proptest! {
    #[test]
    fn encoded_pdus_decode_to_the_same_pdus(pdus in vec(any_pdu(), 1..6)) {
        let mut wire = BytesMut::new();
        for pdu in &pdus {
            encode(pdu, &mut wire).expect("all of these fit");
        }
        let mut decoder = Decoder::default();
        for pdu in pdus {
            let frame = decoder.next(&mut wire).expect("a length").expect("a frame");
            prop_assert_eq!(frame, Frame::Ok(pdu));
        }
        prop_assert!(wire.is_empty());
    }
}
