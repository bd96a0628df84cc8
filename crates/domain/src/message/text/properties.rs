//! Properties of every text, however it is measured, split and read back.

use proptest::prelude::*;
use sms_splitter::SplitSms;

use super::{Coding, MESSAGE_OCTETS, Part, Shape, Udh, decode, encode, gsm7, measure, measure_as};

/// A GSM-7 character; half of them are from the extension table.
fn gsm7_character() -> impl Strategy<Value = char> {
    let (basic, extended): (Vec<_>, Vec<_>) = gsm7::alphabet()
        .into_iter()
        .partition(|(_, width)| *width == 1);
    let among = |drawn: Vec<(char, usize)>| {
        prop::sample::select(drawn).prop_map(|(character, _)| character)
    };
    prop_oneof![among(basic), among(extended)]
}

/// A character that often needs UCS-2, and often two of its units.
fn any_character() -> impl Strategy<Value = char> {
    prop_oneof![
        gsm7_character(),
        any::<char>(),
        prop::char::range('😀', '🙏')
    ]
}

/// Texts of either coding, most of them long enough to be split.
fn text() -> impl Strategy<Value = String> {
    let of = |characters: BoxedStrategy<char>| prop::collection::vec(characters, 1..420);
    let characters = prop_oneof![of(gsm7_character().boxed()), of(any_character().boxed())];
    characters.prop_map(String::from_iter)
}

/// Texts that may or may not fit with a caller's `coding` and `udh`.
fn short_text() -> impl Strategy<Value = String> {
    prop::collection::vec(any_character(), 0..90).prop_map(String::from_iter)
}

fn coding() -> impl Strategy<Value = Coding> {
    prop::sample::select(vec![Coding::Gsm7, Coding::Binary, Coding::Ucs2])
}

fn udh() -> impl Strategy<Value = Option<Udh>> {
    let element = (any::<u8>(), prop::collection::vec(any::<u8>(), 0..138));
    prop::option::of(element.prop_map(|(identifier, data)| {
        let length = u8::try_from(data.len()).expect("short");
        let octets: Vec<_> = [length + 2, identifier, length]
            .into_iter()
            .chain(data)
            .collect();
        Udh::from_bytes(&octets).expect("one element, well formed")
    }))
}

/// The size of a part on the air, where septets are packed.
fn octets_on_air(part: &Part, coding: Coding) -> usize {
    let header = part.udh.as_ref().map_or(0, |udh| udh.as_bytes().len());
    match coding {
        // The text starts at the next septet boundary after the header.
        Coding::Gsm7 => ((header * 8).div_ceil(7) + part.payload.len())
            .saturating_mul(7)
            .div_ceil(8),
        Coding::Binary | Coding::Ucs2 => header + part.payload.len(),
    }
}

/// Whether a payload consists of whole characters.
fn is_whole(payload: &[u8], coding: Coding) -> bool {
    match coding {
        Coding::Gsm7 => payload.last() != Some(&gsm7::ESCAPE),
        Coding::Binary => true,
        Coding::Ucs2 => {
            let units: Vec<_> = payload
                .chunks(2)
                .map(|pair| u16::from_be_bytes([pair[0], pair[1]]))
                .collect();
            String::from_utf16(&units).is_ok()
        }
    }
}

proptest! {
    #[test]
    fn parts_rejoin_to_the_text(text in text(), reference: u8) {
        let shape = measure(&text).expect("at most 255 parts");
        let parts = encode(&text, shape, None, reference);
        let shown: String = parts.iter().map(|part| decode(shape.coding, &part.payload)).collect();
        prop_assert_eq!(shown, text);
    }

    #[test]
    fn measuring_and_encoding_agree(text in text(), reference: u8) {
        let shape = measure(&text).expect("at most 255 parts");
        let parts = encode(&text, shape, None, reference);
        prop_assert_eq!(parts.len(), usize::from(shape.parts));
        for (part, sequence) in parts.iter().zip(1_u8..) {
            let header = (shape.parts > 1).then(|| Udh::concatenation(reference, shape.parts, sequence));
            prop_assert_eq!(&part.udh, &header);
        }
    }

    #[test]
    fn no_part_is_too_long_empty_or_cut_within_a_character(text in text()) {
        let shape = measure(&text).expect("at most 255 parts");
        for part in encode(&text, shape, None, 0) {
            prop_assert!(!part.payload.is_empty());
            prop_assert!(octets_on_air(&part, shape.coding) <= MESSAGE_OCTETS);
            prop_assert!(is_whole(&part.payload, shape.coding));
        }
    }

    #[test]
    fn ucs2_is_chosen_only_where_a_character_calls_for_it(text in text()) {
        let shape = measure(&text).expect("at most 255 parts");
        let in_gsm7 = text.chars().all(|character| Coding::Gsm7.width(character).is_some());
        prop_assert_eq!(shape.coding == Coding::Gsm7, in_gsm7);
    }

    /// Compares with an independent implementation.
    #[test]
    fn another_splitter_agrees(text in text()) {
        let shape = measure(&text).expect("at most 255 parts");
        let theirs = SplitSms::default().split(text);
        let coding = if theirs.character_set == "GSM" { Coding::Gsm7 } else { Coding::Ucs2 };
        prop_assert_eq!((shape.coding, usize::from(shape.parts)), (coding, theirs.parts.len()));
    }

    #[test]
    fn what_a_chosen_coding_accepts_fits_and_reads_back(text in short_text(), coding in coding(), udh in udh()) {
        if let Ok(shape) = measure_as(&text, coding, udh.as_ref()) {
            prop_assert_eq!(shape, Shape { coding, parts: 1 });
            let parts = encode(&text, shape, udh.as_ref(), 0);
            prop_assert_eq!(parts.len(), 1);
            prop_assert!(octets_on_air(&parts[0], coding) <= MESSAGE_OCTETS);
            prop_assert_eq!(decode(coding, &parts[0].payload), text);
            prop_assert_eq!(&parts[0].udh, &udh);
        }
    }

    #[test]
    fn any_octets_can_be_shown(payload in prop::collection::vec(any::<u8>(), 0..200), coding in coding()) {
        prop_assert!(decode(coding, &payload).chars().count() <= payload.len());
    }

    #[test]
    fn a_foreign_shape_never_panics(text in text(), coding in coding(), parts: u8) {
        let found = encode(&text, Shape { coding, parts }, None, 0);
        prop_assert!(found.len() <= usize::from(parts.max(1)));
    }
}
