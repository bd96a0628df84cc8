//! Turns a submitted message into a request for the engine, by the rules of `POST /sms`.

mod replacement;

use std::borrow::Cow;
use std::fmt::Write as _;

use domain::message::text::{
    Coding, MESSAGE_OCTETS, Udh, decode, decode_exactly, is_gsm7, measure, measure_as,
};
use domain::{CallbackUrl, Code, Priority};
use engine::sending::submit::{IdempotentRequest, SmsInput, SubmitError, To};
use engine::{Field, Invalid};
use jiff::Timestamp;
use smpp::{Address, ShortMessage, Status, Tlvs, tag};

use crate::receipt_request::{ReceiptRequest, Wanted};
use crate::time;

pub(crate) use replacement::read_replacement;

/// A user data header precedes the text.
const HAS_HEADER: u8 = 0x40;
/// The bits of `esm_class` that say what kind of message it is; 0 is a message of its own.
const KIND: u8 = 0x3C;

/// The value of `dest_addr_subunit` that shows a message without storing it (flash).
const MS_DISPLAY: u8 = 1;

/// What `deliver_sm` has room for, because receipts repeat addresses.
const MAX_ADDRESS: usize = 20;

/// A message, as the engine takes it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) sms: SmsInput<'static>,
    /// Where its receipt goes.
    pub(crate) receipts: Option<CallbackUrl>,
}

/// Reads a message, or says with which status it is refused.
pub(crate) fn read(
    message: &ShortMessage,
    system_id: &str,
    now: Timestamp,
) -> Result<Order, Status> {
    let to = vec![Cow::Owned(read_destination(&message.destination)?)];
    let named = Some(&message.destination);
    read_for(message, to, named, system_id, now)
}

/// Reads a message to several recipients. Their receipts have one address, so that cannot name them.
pub(crate) fn read_multi(
    message: &ShortMessage,
    to: Vec<Cow<'static, str>>,
    system_id: &str,
    now: Timestamp,
) -> Result<Order, Status> {
    read_for(message, to, None, system_id, now)
}

fn read_for(
    message: &ShortMessage,
    to: Vec<Cow<'static, str>>,
    named: Option<&Address>,
    system_id: &str,
    now: Timestamp,
) -> Result<Order, Status> {
    if message.esm_class & KIND != 0 {
        return Err(Status::ESME_RINVESMCLASS);
    }
    if message.replace_if_present != 0 {
        return Err(Status::ESME_RINVREPFLAG);
    }
    if message.default_message_id != 0 {
        return Err(Status::ESME_RINVDFTMSGID);
    }
    check_parameters(message)?;
    let scheduled = time::parse(&message.schedule_delivery_time, now);
    let scheduled = scheduled.map_err(|_| Status::ESME_RINVSCHED)?;
    let sent_at = scheduled.unwrap_or(now);
    let expires = time::parse(&message.validity_period, now);
    let expires = expires.map_err(|_| Status::ESME_RINVEXPIRY)?;
    let lives_s = expires.map(|at| at.duration_since(sent_at).as_secs());
    let content = read_text(message)?;
    let wanted = Wanted::from_registered_delivery(message.registered_delivery);
    let receipts = wanted.map(|wanted| ReceiptRequest {
        wanted,
        submitted_at: now,
        parts: content.parts(),
        source: message.source.clone(),
        destination: named.cloned(),
    });
    let Content { text, coding, udh } = content;
    Ok(Order {
        receipts: receipts.map(|request| request.url(system_id)),
        sms: SmsInput {
            to: To::List(to),
            from: Cow::Owned(read_source(&message.source)?),
            message: Cow::Owned(text),
            dlr_url: None,
            priority: Some(Cow::Borrowed(read_priority(message.priority_flag)?.name())),
            scheduled: scheduled.map(|at| Cow::Owned(at.to_string())),
            udh: udh.map(|udh| Cow::Owned(udh.to_string())),
            coding: coding.map(|coding| i64::from(coding.number())),
            test_mode: None,
            expire_in: lives_s.or_else(|| time_to_live_s(&message.tlvs)),
            correct_by: None,
        },
    })
}

/// Refuses what would be lost on the way to the carrier.
fn check_parameters(message: &ShortMessage) -> Result<(), Status> {
    let tlvs = &message.tlvs;
    if !message.short_message.is_empty() && tlvs.message_payload().is_some() {
        return Err(Status::ESME_RINVMSGLEN);
    }
    let has_port = tlvs.source_port().or(tlvs.destination_port()).is_some();
    let is_flash = tlvs.dest_addr_subunit() == Some(MS_DISPLAY);
    if has_port || is_flash {
        return Err(Status::ESME_ROPTPARNOTALLWD);
    }
    Ok(())
}

/// The validity of `data_sm`, which has no field for it.
fn time_to_live_s(tlvs: &Tlvs) -> Option<i64> {
    let value = tlvs.get(tag::QOS_TIME_TO_LIVE)?;
    let octets: [u8; 4] = value[..].try_into().ok()?;
    Some(u32::from_be_bytes(octets).into())
}

/// Most clients leave the flag at 0, so that is the normal lane.
const fn read_priority(flag: u8) -> Result<Priority, Status> {
    match flag {
        0 | 1 => Ok(Priority::Normal),
        2 | 3 => Ok(Priority::High),
        _ => Err(Status::ESME_RINVPRTFLG),
    }
}

pub(crate) fn read_destination(address: &Address) -> Result<String, Status> {
    ascii(address).ok_or(Status::ESME_RINVDSTADR)
}

/// The sender. An alphanumeric one (type 5) is a name even if it consists of digits only as far as the engine's rules
/// allow; an international number may lack its plus.
pub(crate) fn read_source(address: &Address) -> Result<String, Status> {
    let text = ascii(address).ok_or(Status::ESME_RINVSRCADR)?;
    let is_number = text.bytes().all(|octet| octet.is_ascii_digit());
    Ok(if address.ton == 1 && is_number {
        format!("+{text}")
    } else {
        text
    })
}

fn ascii(address: &Address) -> Option<String> {
    let text = std::str::from_utf8(&address.digits).ok()?;
    let fits = (1..=MAX_ADDRESS).contains(&text.len());
    (fits && text.is_ascii()).then(|| text.to_owned())
}

/// The text of a message, and how it is coded.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) text: String,
    /// `None`: the service chooses the coding and splits the text.
    pub(crate) coding: Option<Coding>,
    udh: Option<Udh>,
}

impl Content {
    /// In how many parts the service sends it. A text that has too many is refused later.
    pub(crate) fn parts(&self) -> u8 {
        match self.coding {
            Some(_) => 1,
            None => measure(&self.text).map_or(1, |shape| shape.parts),
        }
    }
}

/// How `data_coding` says that the octets of a text are to be read.
enum Alphabet {
    Gsm7,
    Octets,
    Latin1,
    Ucs2,
}

impl Alphabet {
    /// Of the message classes only class 1 is known: there the handset stores a message where it stores those without a
    /// class. The others, such as class 0 (flash), would be lost on the way to the carrier.
    const fn from_data_coding(data_coding: u8) -> Option<Self> {
        Some(match data_coding {
            0 | 1 | 0x11 | 0xF1 => Self::Gsm7,
            2 | 4 | 0x15 | 0xF5 => Self::Octets,
            3 => Self::Latin1,
            8 | 0x19 => Self::Ucs2,
            _ => return None,
        })
    }
}

fn read_text(message: &ShortMessage) -> Result<Content, Status> {
    let octets = &message.text()[..];
    let (udh, octets) = if message.esm_class & HAS_HEADER == 0 {
        (segment_header(&message.tlvs)?, octets)
    } else {
        let (udh, octets) = split_header(octets).ok_or(Status::ESME_RINVMSGLEN)?;
        (Some(udh), octets)
    };
    let alphabet = Alphabet::from_data_coding(message.data_coding);
    let coding = match alphabet.ok_or(Status::ESME_RINVDCS)? {
        Alphabet::Gsm7 => Coding::Gsm7,
        Alphabet::Octets => {
            let header = udh.as_ref().map_or(0, |udh| udh.as_bytes().len());
            if octets.len() + header > MESSAGE_OCTETS {
                return Err(Status::ESME_RINVMSGLEN);
            }
            Coding::Binary
        }
        Alphabet::Latin1 => return Ok(read_latin1(octets, udh)),
        Alphabet::Ucs2 if octets.len() % 2 != 0 => return Err(Status::ESME_RINVMSGLEN),
        Alphabet::Ucs2 => Coding::Ucs2,
    };
    // A text is stored, not its octets. What the text would not give again is refused rather than changed.
    let text = decode_exactly(coding, octets).ok_or(Status::ESME_RINVDCS)?;
    let fits = || measure_as(&text, coding, None).is_ok();
    let is_kept = udh.is_some() || coding == Coding::Binary || fits();
    Ok(Content {
        coding: is_kept.then_some(coding),
        text,
        udh,
    })
}

/// Latin-1 is no coding of short messages, so its text is sent as GSM-7 or UCS-2.
fn read_latin1(octets: &[u8], udh: Option<Udh>) -> Content {
    let text = decode(Coding::Binary, octets);
    let coding = udh.is_some().then(|| {
        let is_gsm = text.chars().all(is_gsm7);
        if is_gsm { Coding::Gsm7 } else { Coding::Ucs2 }
    });
    Content { text, coding, udh }
}

/// The header of a part that the client split by itself, if the optional parameters say so.
fn segment_header(tlvs: &Tlvs) -> Result<Option<Udh>, Status> {
    let fields = (
        tlvs.sar_msg_ref_num(),
        tlvs.sar_total_segments(),
        tlvs.sar_segment_seqnum(),
    );
    let (Some(reference), Some(total), Some(number)) = fields else {
        return match fields {
            (None, None, None) => Ok(None),
            _ => Err(Status::ESME_RMISSINGOPTPARAM),
        };
    };
    if number == 0 || number > total {
        return Err(Status::ESME_RINVOPTPARAMVAL);
    }
    if total == 1 {
        return Ok(None);
    }
    // Clients make parts of 153 characters, which leave room for the short header only. Its reference has one octet.
    let [_, reference] = reference.to_be_bytes();
    let header = Udh::from_bytes(&[5, 0, 3, reference, total, number]);
    header.map(Some).map_err(|_| Status::ESME_RINVOPTPARAMVAL)
}

fn split_header(octets: &[u8]) -> Option<(Udh, &[u8])> {
    let length = usize::from(*octets.first()?) + 1;
    let (header, text) = octets.split_at_checked(length)?;
    Some((Udh::from_bytes(header).ok()?, text))
}

/// Recognises a message that the client sends again: it has the same reference and the same content. A reference has only
/// two octets, so clients use each again soon; the content is a part of the key.
pub(crate) fn repeatable(message: &ShortMessage, system_id: &str) -> Option<IdempotentRequest> {
    let reference = message.tlvs.get_u16(tag::USER_MESSAGE_REFERENCE)?;
    let tlvs = &message.tlvs;
    let segment = tlvs.sar_msg_ref_num().unwrap_or_default().to_be_bytes();
    let flags = [
        message.source.ton,
        message.source.npi,
        message.destination.ton,
        message.destination.npi,
        message.esm_class,
        message.priority_flag,
        message.data_coding,
        message.registered_delivery,
        segment[0],
        segment[1],
        tlvs.sar_total_segments().unwrap_or_default(),
        tlvs.sar_segment_seqnum().unwrap_or_default(),
    ];
    let mut content: Vec<&[u8]> = vec![
        &message.source.digits,
        &message.destination.digits,
        &message.schedule_delivery_time,
        &message.validity_period,
        &flags,
        message.text(),
    ];
    content.extend(tlvs.get(tag::QOS_TIME_TO_LIVE).map(|value| &value[..]));
    let content = domain::sha256(&[&content.join(&0_u8)]);
    let mut key = format!("smpp/{system_id}/{reference}/");
    for octet in content {
        write!(key, "{octet:02x}").expect("a string takes everything");
    }
    IdempotentRequest::new(key.as_bytes(), &content)
}

/// The status of a message that the engine refused.
pub(crate) fn refusal(error: &SubmitError) -> Status {
    match error {
        SubmitError::Invalid(invalid) => invalid_field(invalid),
        SubmitError::Sender(_) => Status::ESME_RINVSRCADR,
        SubmitError::Suspended
        | SubmitError::Country { .. }
        | SubmitError::NotPaid(_)
        | SubmitError::KeyConflict => Status::ESME_RSUBMITFAIL,
        SubmitError::Busy => Status::ESME_RTHROTTLED,
        SubmitError::Stopping | SubmitError::Store(_) => Status::ESME_RSYSERR,
    }
}

fn invalid_field(invalid: &Invalid) -> Status {
    match invalid.field {
        Field::Recipients if invalid.code == Some(Code::INVALID_NUMBER) => Status::ESME_RINVDSTADR,
        Field::Originator => Status::ESME_RINVSRCADR,
        Field::Message | Field::Udh if invalid.code == Some(Code::BAD_CODING) => {
            Status::ESME_RINVDCS
        }
        Field::Message | Field::Udh => Status::ESME_RINVMSGLEN,
        Field::Coding => Status::ESME_RINVDCS,
        Field::SendTime => Status::ESME_RINVSCHED,
        Field::ExpireIn => Status::ESME_RINVEXPIRY,
        Field::Priority => Status::ESME_RINVPRTFLG,
        _ => Status::ESME_RSUBMITFAIL,
    }
}

#[cfg(test)]
mod tests;
