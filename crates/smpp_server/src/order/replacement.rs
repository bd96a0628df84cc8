//! The text of `replace_sm`. It has no `data_coding`: the coding is that of the message.

use domain::message::WaitingMessage;
use domain::message::text::Coding;
use smpp::{ReplaceSm, ShortMessage, Status};

use super::{Content, read_text};

const GSM7: u8 = 0;
const LATIN1: u8 = 3;
const OCTETS: u8 = 4;
const UCS2: u8 = 8;

/// Reads the new text as the client wrote the old one. That is known if the message keeps the client's coding. If the
/// service chose it, the text may have been in GSM-7, Latin-1 or UCS-2, so the new one is refused unless GSM-7 and
/// Latin-1 agree, which they do not on letters in UCS-2, or it is the old one again.
pub(crate) fn read_replacement(
    replace: &ReplaceSm,
    waiting: &WaitingMessage,
) -> Result<Content, Status> {
    let read = |data_coding| {
        read_text(&ShortMessage {
            data_coding,
            short_message: replace.short_message.clone(),
            tlvs: replace.tlvs.clone(),
            ..ShortMessage::default()
        })
    };
    let content = match waiting.coding {
        Coding::Gsm7 => read(GSM7),
        Coding::Binary => read(OCTETS),
        Coding::Ucs2 => read(UCS2),
    };
    let is_ucs2 = waiting.coding == Coding::Ucs2 && !is_latin1(&waiting.text);
    let content = if waiting.coding_given || is_ucs2 {
        content?
    } else {
        let latin1 = read(LATIN1)?;
        let is_repeated = content.is_ok_and(|content| content.text == waiting.text);
        let agrees = || read(GSM7).is_ok_and(|gsm7| gsm7.text == latin1.text);
        if is_repeated {
            Content {
                text: waiting.text.clone(),
                ..latin1
            }
        } else if agrees() {
            latin1
        } else {
            return Err(Status::ESME_RREPLACEFAIL);
        }
    };
    // A part that the client split belongs to others, which cannot be replaced together with it.
    if waiting.has_udh || content.udh.is_some() {
        return Err(Status::ESME_RREPLACEFAIL);
    }
    Ok(content)
}

fn is_latin1(text: &str) -> bool {
    text.chars().all(|character| u32::from(character) <= 0xFF)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use domain::Msisdn;
    use domain::message::Priority;
    use jiff::Timestamp;

    use super::*;

    fn waiting(text: &str, coding: Coding, coding_given: bool) -> WaitingMessage {
        WaitingMessage {
            from: "Acme".to_owned(),
            to: Msisdn::parse("+37120000001").expect("a number"),
            text: text.to_owned(),
            coding,
            coding_given,
            has_udh: false,
            dlr_url: None,
            priority: Priority::Normal,
            test_mode: None,
            at: Timestamp::UNIX_EPOCH,
            expires_at: Timestamp::UNIX_EPOCH,
        }
    }

    #[test]
    fn the_text_is_read_as_the_old_one_was() {
        const FAILS: Result<(&str, Option<Coding>), Status> = Err(Status::ESME_RREPLACEFAIL);
        let (gsm7, ucs2) = (Coding::Gsm7, Coding::Ucs2);
        for (old, coding, given, octets, expected) in [
            ("Hi", gsm7, true, &b"\0 you"[..], Ok(("@ you", Some(gsm7)))),
            ("Hi", gsm7, true, b"\xE9", Err(Status::ESME_RINVDCS)),
            ("Hi", ucs2, true, b"\0@\x04\x36", Ok(("@ж", Some(ucs2)))),
            (
                "\u{1}",
                Coding::Binary,
                true,
                b"\0",
                Ok(("\0", Some(Coding::Binary))),
            ),
            ("Hi", gsm7, true, b"", Ok(("", None))),
            // The service chose the coding.
            ("ж", ucs2, false, b"\0@\x04\x36", Ok(("@ж", Some(ucs2)))),
            ("Hi", gsm7, false, b"you", Ok(("you", None))),
            ("Hi", gsm7, false, b"@ or \xA1?", FAILS),
            ("Hi", gsm7, false, b"you@home", FAILS),
            ("Hi", gsm7, false, b"\0y\0o", FAILS),
            ("ç", ucs2, false, b"\0y\0o", FAILS),
            ("ç", ucs2, false, b"you", Ok(("you", None))),
            ("a@b", gsm7, false, b"a\0b", Ok(("a@b", None))),
        ] {
            let replace = ReplaceSm {
                short_message: Bytes::copy_from_slice(octets),
                ..ReplaceSm::default()
            };
            let mut waiting = waiting(old, coding, given);
            let read = read_replacement(&replace, &waiting);
            let read = read.as_ref().map_err(|status| *status);
            let read = read.map(|content| (content.text.as_str(), content.coding));
            assert_eq!(read, expected, "{old} {coding:?} {given} {octets:?}");
            waiting.has_udh = true;
            assert!(read_replacement(&replace, &waiting).is_err(), "{old}");
        }
    }
}
