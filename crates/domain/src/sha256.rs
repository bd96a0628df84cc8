//! The hash SHA-256.

use ring::digest::{Context, SHA256};

/// The hash of these parts, one after the other.
pub fn sha256(parts: &[&[u8]]) -> [u8; 32] {
    let mut context = Context::new(&SHA256);
    for part in parts {
        context.update(part);
    }
    let digest = context.finish();
    digest.as_ref().try_into().expect("the hash has 32 bytes")
}

#[cfg(test)]
mod tests {
    use super::sha256;

    #[test]
    fn parts_are_hashed_as_one() {
        let abc = sha256(&[b"abc"]);
        assert_eq!(abc[..4], [0xBA, 0x78, 0x16, 0xBF]);
        assert_eq!(sha256(&[b"a", b"", b"bc"]), abc);
    }
}
