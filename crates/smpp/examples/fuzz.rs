//! Feeds the decoder with random octets.
//!
//! ```text
//! cargo run --release -p smpp --example fuzz -- --seconds 60 [--seed N]
//! ```
//!
//! Each run makes a stream from modified PDUs or random octets. It checks that nothing panics, that framing holds, that
//! the size of the pieces does not matter, and that a PDU survives being encoded again. A failure is printed with its
//! octets, and the exit status is 1.

use std::fmt::Write as _;
use std::panic;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use smpp::{
    Address, Bind, BindKind, Body, Decoder, FatalLength, Frame, HEADER, MessageResp, Pdu,
    ShortMessage, Tlvs, encode, tag,
};

fn main() -> ExitCode {
    let mut seconds = 10;
    let mut seed = 1;
    let mut arguments = std::env::args().skip(1);
    while let Some(flag) = arguments.next() {
        let value = arguments.next().and_then(|value| value.parse().ok());
        match (flag.as_str(), value) {
            ("--seconds", Some(value)) => seconds = value,
            ("--seed", Some(value)) => seed = value,
            _ => {
                eprintln!("usage: fuzz [--seconds N] [--seed N]");
                return ExitCode::from(2);
            }
        }
    }
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut random = Random(seed);
    let seeds = seeds();
    let (mut executions, mut octets, mut read, mut findings) = (0_u64, 0, 0, 0);
    while Instant::now() < end {
        for _ in 0..256 {
            let stream = random.stream(&seeds);
            let pieces = random.below(40) + 1;
            executions += 1;
            octets += stream.len();
            match panic::catch_unwind(|| check(&stream, pieces)) {
                Ok(Ok(frames)) => read += frames,
                Ok(Err(what)) => findings += report(&stream, what),
                Err(_) => findings += report(&stream, "panicked"),
            }
        }
    }
    println!(
        "{executions} executions, {octets} octets, {read} frames, {findings} findings (seed {seed})"
    );
    if findings == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn report(stream: &[u8], what: &str) -> u64 {
    let mut hexadecimal = String::new();
    for octet in stream {
        let _infallible = write!(hexadecimal, "{octet:02X}");
    }
    println!("{what}: {hexadecimal}");
    1
}

/// Returns the number of frames, or what is wrong.
fn check(stream: &[u8], piece: usize) -> Result<usize, &'static str> {
    let (frames, end) = frames(stream, stream.len().max(1));
    if frames.len() != by_length(stream) {
        return Err("framing is lost");
    }
    if self::frames(stream, piece) != (frames.clone(), end) {
        return Err("pieces matter");
    }
    for frame in &frames {
        let Frame::Ok(pdu) = frame else { continue };
        let mut again = BytesMut::new();
        // The decoder is lenient and may accept more than can be encoded.
        if encode(pdu, &mut again).is_err() {
            if !again.is_empty() {
                return Err("a refused PDU left octets");
            }
            continue;
        }
        match Decoder::new(1 << 20).next(&mut again) {
            Ok(Some(Frame::Ok(found))) if found == *pdu && again.is_empty() => {}
            _ => return Err("written again, it reads otherwise"),
        }
    }
    Ok(frames.len())
}

/// The frames of the stream when it arrives in pieces of this size, and the error that ended it.
fn frames(stream: &[u8], piece: usize) -> (Vec<Frame>, Option<FatalLength>) {
    let mut decoder = Decoder::default();
    let mut buffer = BytesMut::new();
    let mut found = Vec::new();
    for piece in stream.chunks(piece) {
        buffer.extend_from_slice(piece);
        loop {
            match decoder.next(&mut buffer) {
                Ok(Some(frame)) => found.push(frame),
                Ok(None) => break,
                Err(fatal) => return (found, Some(fatal)),
            }
        }
    }
    (found, None)
}

/// The number of frames, by their lengths alone.
fn by_length(stream: &[u8]) -> usize {
    let (mut rest, mut found) = (stream, 0);
    while let Some(length) = rest.first_chunk().copied().map(u32::from_be_bytes) {
        let length = length as usize;
        if !(HEADER..=smpp::DEFAULT_MAX_PDU).contains(&length) || length > rest.len() {
            break;
        }
        rest = &rest[length..];
        found += 1;
    }
    found
}

/// PDUs that the random changes start from.
fn seeds() -> Vec<Vec<u8>> {
    let mut tlvs = Tlvs::new();
    tlvs.push_c_string(tag::RECEIPTED_MESSAGE_ID, b"0a1b2c");
    tlvs.push_u8(tag::MESSAGE_STATE, 2);
    tlvs.push(tag::MESSAGE_PAYLOAD, vec![7; 300]);
    let message = || {
        Box::new(ShortMessage {
            service_type: "CMT".into(),
            source: Address::new(5, 0, "Shop"),
            destination: Address::new(1, 1, "31612345678"),
            validity_period: "000001000000000R".into(),
            short_message: Bytes::from_static(b"id:0a1b2c sub:001 dlvrd:001 stat:DELIVRD err:000"),
            tlvs: tlvs.clone(),
            ..ShortMessage::default()
        })
    };
    let bind = Bind {
        system_id: "esme".into(),
        password: "pw".into(),
        interface_version: 0x34,
        ..Bind::default()
    };
    let resp = || MessageResp {
        message_id: "0a1b2c".into(),
        tlvs: tlvs.clone(),
    };
    let bodies = [
        Body::Bind(BindKind::Transceiver, Box::new(bind)),
        Body::BindResp(BindKind::Transceiver, smpp::BindResp::default()),
        Body::SubmitSm(message()),
        Body::SubmitSmResp(resp()),
        Body::DeliverSm(message()),
        Body::DeliverSmResp(resp()),
        Body::DataSm(Box::default()),
        Body::DataSmResp(resp()),
        Body::QuerySm(Box::default()),
        Body::QuerySmResp(Box::default()),
        Body::CancelSm(Box::default()),
        Body::ReplaceSm(Box::default()),
        Body::SubmitMulti(Box::default()),
        Body::SubmitMultiResp(Box::default()),
        Body::AlertNotification(Box::default()),
        Body::Outbind(Box::default()),
        Body::EnquireLink,
        Body::Unbind,
        Body::GenericNack,
    ];
    bodies
        .into_iter()
        .map(|body| {
            let mut out = BytesMut::new();
            encode(&Pdu::new(1, body), &mut out).expect("seeds are valid");
            out.to_vec()
        })
        .collect()
}

/// A random number generator that repeats itself for the same seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit.max(1) as u64).unwrap_or_default()
    }

    fn octet(&mut self) -> u8 {
        self.next().to_le_bytes()[0]
    }

    fn stream(&mut self, seeds: &[Vec<u8>]) -> Vec<u8> {
        let mut stream = Vec::new();
        for _ in 0..=self.below(3) {
            if self.below(8) == 0 {
                stream.extend((0..self.below(80)).map(|_| 0).collect::<Vec<u8>>());
                for octet in &mut stream {
                    if self.below(4) == 0 {
                        *octet = self.octet();
                    }
                }
                continue;
            }
            let mut pdu = seeds[self.below(seeds.len())].clone();
            for _ in 0..self.below(5) {
                self.change(&mut pdu);
            }
            // Mostly a correct length, because nothing after a wrong one is read.
            if self.below(8) != 0 {
                pdu.resize(pdu.len().max(HEADER), 0);
                let length = u32::try_from(pdu.len()).unwrap_or(u32::MAX);
                pdu[..4].copy_from_slice(&length.to_be_bytes());
            }
            stream.extend(pdu);
        }
        stream
    }

    fn change(&mut self, pdu: &mut Vec<u8>) {
        let at = self.below(pdu.len());
        match self.below(6) {
            0 => pdu.truncate(at),
            1 => pdu.insert(at, self.octet()),
            2 if !pdu.is_empty() => drop(pdu.remove(at)),
            3 => pdu.extend((0..self.below(9)).map(|number| u8::try_from(number).unwrap_or(0))),
            4 if pdu.len() > 8 => pdu[7] = self.octet(),
            _ if !pdu.is_empty() => pdu[at] = self.octet(),
            _ => {}
        }
    }
}
