//! Texts from handsets.

use domain::inbound::header::Concatenation;
use domain::inbound::text::Alphabet;
use domain::message::text::Udh;
use testkit::smsc::{Receipt, Smsc};

use super::setup::{connected, eventually, settings, until_up};

/// A TLV with one or two octets.
fn tlv(tag: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(value.len()).expect("short");
    [&tag.to_be_bytes()[..], &length.to_be_bytes(), value].concat()
}

#[tokio::test]
async fn a_text_is_read_in_every_form() {
    let smsc = Smsc::start();
    let (_carrier, sink) = connected(settings(&smsc)).await;
    let text = |octets: &[u8]| Receipt::message(octets).from("37120000001");
    let part = |total, sequence| Concatenation::new(7, total, sequence);
    let with_header = |header: &[u8], octets: &[u8]| [header, octets].concat();
    let sar = [tlv(0x020C, &[0, 7]), tlv(0x020E, &[2]), tlv(0x020F, &[1])];
    let other = [6, 5, 4, 0x0B, 0x84, 0x23, 0xF0];
    let cases = [
        ("plain", text(b"Hi"), Alphabet::Gsm7, None, None),
        (
            "Latin-1",
            text(b"Hi").data_coding(3),
            Alphabet::Latin1,
            None,
            None,
        ),
        (
            "UCS-2",
            text(b"Hi").data_coding(8),
            Alphabet::Ucs2,
            None,
            None,
        ),
        (
            "binary",
            text(b"Hi").data_coding(4),
            Alphabet::Binary,
            None,
            None,
        ),
        (
            "in message_payload",
            text(b"").then(&tlv(0x0424, b"Hi")),
            Alphabet::Gsm7,
            None,
            None,
        ),
        (
            "a part with an 8-bit reference",
            text(&with_header(&[5, 0, 3, 7, 3, 2], b"Hi")).esm_class(0x40),
            Alphabet::Gsm7,
            part(3, 2),
            None,
        ),
        (
            "a part with a 16-bit reference",
            text(&with_header(&[6, 8, 4, 0, 7, 3, 3], b"Hi")).esm_class(0x40),
            Alphabet::Gsm7,
            part(3, 3),
            None,
        ),
        (
            "a part by SAR fields",
            text(b"Hi").then(&sar.concat()),
            Alphabet::Gsm7,
            part(2, 1),
            None,
        ),
        (
            "another header",
            text(&with_header(&other, b"Hi")).esm_class(0x40),
            Alphabet::Gsm7,
            None,
            Udh::from_bytes(&other).ok(),
        ),
    ];
    for (index, (name, sent, alphabet, concatenation, udh)) in cases.into_iter().enumerate() {
        smsc.send(&sent.to("1234")).expect("a link accepts it");
        eventually(name, || sink.texts().len() == index + 1).await;
        let (_, text) = sink.texts().remove(index);
        assert_eq!(text.octets, b"Hi", "{name}");
        assert_eq!(text.alphabet, alphabet, "{name}");
        assert_eq!(text.concatenation, concatenation, "{name}");
        assert_eq!(text.udh, udh, "{name}");
        assert_eq!(text.from, "+37120000001", "{name}");
        assert_eq!(text.to.to_string(), "1234", "{name}");
    }
}

/// What is delivered again on another session has the same hash; another text has another one.
#[tokio::test]
async fn a_repetition_has_the_same_hash_on_another_session() {
    let smsc = Smsc::start();
    let (carrier, sink) = connected(settings(&smsc)).await;
    let text = Receipt::message("yes").from("37120000001");
    smsc.send(&text).expect("a link accepts it");
    smsc.send(&text).expect("a link accepts it");
    smsc.send(&Receipt::message("no").from("37120000001"))
        .expect("a link accepts it");
    eventually("three texts", || sink.texts().len() == 3).await;
    smsc.hang_up();
    eventually("the end of the session", || sink.ended().len() == 1).await;
    until_up(&carrier).await;
    eventually("a link that accepts it", || smsc.send(&text).is_some()).await;
    eventually("four texts", || sink.texts().len() == 4).await;
    let copies: Vec<_> = sink.texts().into_iter().map(|(copy, _)| copy).collect();
    let mut of_session: Vec<_> = copies[..3].to_vec();
    of_session.sort_by_key(|copy| copy.number);
    let [first, second, third] = of_session[..] else {
        panic!("{copies:?}");
    };
    assert_eq!(sink.ended(), [first.session]);
    assert_eq!([first.hash, first.hash], [second.hash, copies[3].hash]);
    assert_ne!(first.hash, third.hash);
    assert_ne!(first.session, copies[3].session);
}
