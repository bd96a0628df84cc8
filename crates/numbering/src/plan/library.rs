//! libphonenumber's Rust port over our plans, which the tests compare with.
//!
//! The crate's own plans are of another release. With ours, it has to agree on every number.

#![expect(
    deprecated,
    reason = "the library empties these fields once it has read them, so it warns of every use"
)]

use std::sync::LazyLock;

use rlibphonenumber::{PhoneMetadata, PhoneMetadataCollection, PhoneNumberDesc, PhoneNumberUtil};

use super::lengths::LengthSet;
use super::source::{self, RegionSource};

/// The library with the plans of `world.txt`.
pub(crate) static LIBRARY: LazyLock<PhoneNumberUtil> = LazyLock::new(|| {
    let metadata = source::codes().flat_map(|source| {
        let code = source.code;
        let regions = source.regions().into_iter().enumerate();
        regions.map(move |(index, region)| metadata(code, index == 0, &region))
    });
    let metadata = metadata.collect();
    PhoneNumberUtil::new_for_metadata(PhoneMetadataCollection { metadata })
        .expect("the library knows the regions")
});

fn metadata(code: u16, is_main: bool, region: &RegionSource) -> PhoneMetadata {
    let kind = |name: &str| {
        let kind = region.kinds.iter().find(|kind| kind.name == name)?;
        Some(desc(kind.pattern, kind.lengths, LengthSet::default()))
    };
    PhoneMetadata {
        id: region.id.to_owned(),
        country_code: Some(i32::from(code)),
        main_country_for_code: Some(is_main),
        international_prefix: region.dial_out.map(anchored),
        national_prefix_for_parsing: region.prefix.map(anchored),
        national_prefix_transform_rule: region.rewrite.map(str::to_owned),
        leading_digits: region.leading.map(anchored),
        general_desc: Some(desc(
            region.general,
            region.lengths.whole,
            region.lengths.local,
        )),
        fixed_line: kind("fixed-line"),
        mobile: kind("mobile"),
        toll_free: kind("toll-free"),
        premium_rate: kind("premium"),
        shared_cost: kind("shared-cost"),
        personal_number: kind("personal"),
        voip: kind("voip"),
        pager: kind("pager"),
        uan: kind("uan"),
        voicemail: kind("voicemail"),
        ..PhoneMetadata::default()
    }
}

fn desc(pattern: &str, lengths: LengthSet, local: LengthSet) -> PhoneNumberDesc {
    PhoneNumberDesc {
        national_number_pattern: Some(anchored(pattern)),
        possible_length: listed(lengths),
        possible_length_local_only: listed(local),
        ..PhoneNumberDesc::default()
    }
}

/// A pattern in the form that the library stores.
fn anchored(pattern: &str) -> String {
    format!("^(?:{pattern})$")
}

fn listed(lengths: LengthSet) -> Vec<i32> {
    (0..32)
        .filter(|&digits| lengths.has(digits))
        .map(|digits| i32::try_from(digits).expect("small"))
        .collect()
}
