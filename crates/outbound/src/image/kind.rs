//! Detects the type of an image by its bytes.

use std::fmt;

use super::reader::Fault;
use super::{gif, jpeg, png};

#[cfg(test)]
#[path = "../../tests/it/samples.rs"]
mod samples;
#[cfg(test)]
mod tests;

/// A type of image that can be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageKind {
    Jpeg,
    Png,
    /// With a single frame.
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

/// Why a file cannot be sent as an image. The text is for the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotAnImage {
    #[error("the file is empty")]
    Empty,
    #[error("the file is not a JPEG, PNG or GIF, whatever its name says")]
    Unknown,
    #[error("the GIF is animated; give one with a single frame")]
    Animated,
    #[error("the {0} is not whole: its end is missing")]
    Truncated(ImageKind),
    /// It starts like an image, but is malformed.
    #[error("the {kind} is damaged: {fault}")]
    Damaged {
        kind: ImageKind,
        fault: &'static str,
    },
}

/// Detects the type of an image.
///
/// Walks the file block by block to its end, which finds text files with an image's name, truncated uploads and second
/// frames. The picture itself is not decoded. Data after the end is ignored, as image viewers do: cameras put data
/// there.
pub fn detect_kind(bytes: &[u8]) -> Result<ImageKind, NotAnImage> {
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
