//! What a file is, by its bytes alone.

use std::fmt;

use super::reader::Fault;
use super::{gif, jpeg, png};

#[cfg(test)]
#[path = "../../tests/it/samples.rs"]
mod samples;
#[cfg(test)]
mod tests;

/// A kind of image that may go with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageKind {
    /// A JPEG.
    Jpeg,
    /// A PNG.
    Png,
    /// A GIF with a single frame.
    Gif,
}

impl fmt::Display for ImageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Jpeg => "JPEG",
            Self::Png => "PNG",
            Self::Gif => "GIF",
        })
    }
}

/// Why a file is no image that may go with a message. The text is for the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotAnImage {
    /// No bytes at all.
    #[error("the file is empty")]
    Empty,
    /// Something else, whatever its name says.
    #[error("the file is not a JPEG, PNG or GIF, whatever its name says")]
    Unknown,
    /// More than one frame.
    #[error("the GIF is animated; give one with a single frame")]
    Animated,
    /// The end is missing.
    #[error("the {0} is not whole: its end is missing")]
    Truncated(ImageKind),
    /// It begins like one, but is none.
    #[error("the {kind} is damaged: {fault}")]
    Damaged {
        /// What it begins like.
        kind: ImageKind,
        /// What is wrong.
        fault: &'static str,
    },
}

/// Says what kind of image the bytes are.
///
/// The file is walked from its first byte to its end, block by block, so that a page of text under an image's name, an
/// upload that broke off and a second frame are found. The picture itself is not decoded. What follows the end is
/// ignored, as by everybody who shows images: cameras put data of their own there.
pub fn kind_of(bytes: &[u8]) -> Result<ImageKind, NotAnImage> {
    if bytes.is_empty() {
        return Err(NotAnImage::Empty);
    }
    let (kind, walked) = if let Some(rest) = bytes.strip_prefix(&jpeg::START) {
        (ImageKind::Jpeg, jpeg::walk(rest))
    } else if let Some(rest) = bytes.strip_prefix(&png::START) {
        (ImageKind::Png, png::walk(rest))
    } else if let Some(rest) = gif::STARTS.iter().find_map(|s| bytes.strip_prefix(s)) {
        (ImageKind::Gif, gif::walk(rest))
    } else {
        return Err(NotAnImage::Unknown);
    };
    match walked {
        Ok(()) => Ok(kind),
        Err(Fault::Truncated) => Err(NotAnImage::Truncated(kind)),
        Err(Fault::Animated) => Err(NotAnImage::Animated),
        Err(Fault::Damaged(fault)) => Err(NotAnImage::Damaged { kind, fault }),
    }
}
