//! Generated passwords of SMPP users.

use crate::access::token::letter;
use crate::person::Password;

/// The SMPP field has 9 octets, including the terminating zero.
pub const PASSWORD_CHARS: usize = 8;
/// For clients that send more than SMPP allows.
pub const LONG_PASSWORD_CHARS: usize = 16;
/// Two random bytes for each character keep the modulo bias negligible.
pub const PASSWORD_SEED_BYTES: usize = LONG_PASSWORD_CHARS * 2;

/// Makes a password of letters and digits.
pub fn generate_password(seed: &[u8; PASSWORD_SEED_BYTES], is_long: bool) -> Password {
    let chars = if is_long {
        LONG_PASSWORD_CHARS
    } else {
        PASSWORD_CHARS
    };
    let pairs = seed.chunks_exact(2).take(chars);
    let letters = pairs.map(|pair| letter(u32::from(u16::from_le_bytes([pair[0], pair[1]]))));
    Password::given(letters.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_fit_their_field() {
        let mut seed = [0; PASSWORD_SEED_BYTES];
        for (at, byte) in (0_u8..).zip(seed.iter_mut()) {
            *byte = at;
        }
        let (short, long) = (
            generate_password(&seed, false),
            generate_password(&seed, true),
        );
        assert_eq!(short.reveal().len(), 8);
        assert_eq!(long.reveal().len(), 16);
        assert!(long.reveal().starts_with(short.reveal()));
        assert!(
            long.reveal()
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric())
        );
    }
}
