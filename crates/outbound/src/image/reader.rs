//! A cursor over a file's bytes, and its errors.

/// Why a file is not a complete image. The caller knows the type of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    Truncated,
    Animated,
    Damaged(&'static str),
}

/// A cursor; reading past the end is [`Fault::Truncated`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(super) fn take(&mut self, bytes: usize) -> Result<&'a [u8], Fault> {
        let (taken, rest) = self.rest.split_at_checked(bytes).ok_or(Fault::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    pub(super) fn take_array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(Fault::Truncated)?;
        self.rest = rest;
        Ok(*taken)
    }

    pub(super) fn byte(&mut self) -> Result<u8, Fault> {
        let [byte] = self.take_array()?;
        Ok(byte)
    }
}
