//! A place in a file's bytes, and what can be wrong from there on.

/// What keeps a file from being whole. Which kind of file it is, the caller knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// It ends before its end.
    Truncated,
    /// It holds more than one frame.
    Animated,
    /// Anything else, in words.
    Damaged(&'static str),
}

/// Reads on from a place; at the end of the bytes the file is [`Fault::Truncated`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    /// What has not been read.
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
