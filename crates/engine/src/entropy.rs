//! The one source of random bytes.

/// Random bytes from the operating system.
pub(crate) fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    #[cfg(test)]
    if repeated::fill(&mut bytes) {
        return bytes;
    }
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    bytes
}

#[cfg(test)]
pub(crate) use repeated::repeat;

/// A simulation must run the same way every time.
#[cfg(test)]
mod repeated {
    use std::cell::Cell;

    thread_local! {
        static STATE: Cell<Option<u64>> = const { Cell::new(None) };
    }

    /// From now on this thread gets the same bytes for the same seed.
    pub(crate) fn repeat(seed: u64) {
        STATE.set(Some(seed));
    }

    pub(super) fn fill(bytes: &mut [u8]) -> bool {
        let Some(mut state) = STATE.get() else {
            return false;
        };
        for byte in bytes {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            *byte = u8::try_from(state >> 56).expect("eight bits");
        }
        STATE.set(Some(state));
        true
    }
}
