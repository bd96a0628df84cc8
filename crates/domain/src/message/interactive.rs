//! The button and the image of a Viber message.
//!
//! Every error text continues `Invalid value for field '…':`. The URL of a button is a [`CallbackUrl`] too, because the
//! same rules apply.

use serde::{Deserialize, Serialize};
use url::Url;

use crate::callback_url::{CallbackUrl, CallbackUrlError};
use crate::quoted::Quoted;

/// The longest label of a button, in Unicode code points: longer labels do not fit on a phone.
pub const MAX_TITLE_CHARS: usize = 30;

/// The allowed file name extensions of an image, in any case.
const IMAGE_ENDINGS: [&str; 3] = [".jpeg", ".png", ".gif"];

/// An optional button and an optional image.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Interactive {
    pub action: Option<Action>,
    pub image: Option<ImageUrl>,
}

/// A button.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    pub url: CallbackUrl,
    pub title: ActionTitle,
}

/// The label of a button, as the caller wrote it: 1 to 30 code points without control characters, not only white
/// space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionTitle(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ActionTitleError {
    #[error("the label is empty; give 1 to 30 characters")]
    Blank,
    #[error("{} has {chars} characters; give 1 to 30", Quoted(.value))]
    TooLong {
        value: String,
        /// In code points.
        chars: usize,
    },
    /// A label has one line.
    #[error("{} holds control characters; a label is one line of text", Quoted(.value))]
    Control { value: String },
}

impl ActionTitle {
    pub fn parse(value: &str) -> Result<Self, ActionTitleError> {
        let chars = value.chars().count();
        if value.trim().is_empty() {
            return Err(ActionTitleError::Blank);
        }
        if chars > MAX_TITLE_CHARS {
            let value = value.to_owned();
            return Err(ActionTitleError::TooLong { value, chars });
        }
        if value.chars().any(char::is_control) {
            let value = value.to_owned();
            return Err(ActionTitleError::Control { value });
        }
        Ok(Self(value.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The URL of an image, as the caller wrote it. Its name ends like that of a JPEG, PNG or GIF;
/// [`crate::ports::ImageGuard`] checks the image itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageUrl(CallbackUrl);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImageUrlError {
    /// The URL is invalid.
    #[error(transparent)]
    Url(#[from] CallbackUrlError),
    /// The usual short form, which the networks do not accept.
    #[error("the path ends in '.jpg'; name the image '.jpeg' instead")]
    Jpg,
    /// Another extension.
    #[error("the path's last segment is {}; it must end in '.jpeg', '.png' or '.gif'", Quoted(.name))]
    Ending {
        /// The last segment of the path.
        name: String,
    },
}

impl ImageUrl {
    pub fn parse(value: &str) -> Result<Self, ImageUrlError> {
        let checked = CallbackUrl::parse(value)?;
        let parsed = Url::parse(value).expect("a callback URL has been parsed before");
        // Parsed by the URL standard, so neither the query nor the fragment counts as the name.
        let name = parsed.path().rsplit('/').next().unwrap_or_default();
        if IMAGE_ENDINGS.iter().any(|ending| ends_in(name, ending)) {
            return Ok(Self(checked));
        }
        if ends_in(name, ".jpg") {
            return Err(ImageUrlError::Jpg);
        }
        let name = name.to_owned();
        Err(ImageUrlError::Ending { name })
    }

    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    pub fn as_url(&self) -> &CallbackUrl {
        &self.0
    }
}

fn ends_in(name: &str, ending: &str) -> bool {
    let start = name.len().checked_sub(ending.len());
    let tail = start.and_then(|start| name.get(start..));
    tail.is_some_and(|tail| tail.eq_ignore_ascii_case(ending))
}

/// The stored JSON: the `im` object of the request, without absent fields.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredInteractive<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    action: Option<StoredAction<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    image: Option<StoredImage<'a>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredAction<'a> {
    #[serde(borrow)]
    url: Text<'a>,
    #[serde(borrow)]
    title: Text<'a>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredImage<'a> {
    #[serde(borrow)]
    url: Text<'a>,
}

/// Borrowed when written and when read, unless the JSON contains escapes.
type Text<'a> = std::borrow::Cow<'a, str>;

/// The stored JSON was not written by [`Interactive::to_json`].
#[derive(Debug, thiserror::Error)]
pub enum StoredInteractiveError {
    #[error("the stored settings cannot be read")]
    Json(#[from] serde_json::Error),
    #[error("the stored button has no address that can be opened")]
    Action(#[from] CallbackUrlError),
    #[error("the stored button has no fit label")]
    Title(#[from] ActionTitleError),
    #[error("the stored image has no fit address")]
    Image(#[from] ImageUrlError),
}

impl Interactive {
    pub fn is_empty(&self) -> bool {
        self.action.is_none() && self.image.is_none()
    }

    /// The stored form.
    pub fn to_json(&self) -> String {
        let stored = StoredInteractive {
            action: self.action.as_ref().map(|action| StoredAction {
                url: action.url.as_str().into(),
                title: action.title.as_str().into(),
            }),
            image: self.image.as_ref().map(|image| StoredImage {
                url: image.as_str().into(),
            }),
        };
        serde_json::to_string(&stored).expect("texts are JSON")
    }

    /// Reads the result of [`Self::to_json`]. It is checked again: an invalid value was not written by us.
    pub fn from_json(json: &[u8]) -> Result<Self, StoredInteractiveError> {
        let stored: StoredInteractive<'_> = serde_json::from_slice(json)?;
        let image = stored.image.map(|image| ImageUrl::parse(&image.url));
        Ok(Self {
            action: stored
                .action
                .as_ref()
                .map(Action::from_stored)
                .transpose()?,
            image: image.transpose()?,
        })
    }
}

impl Action {
    fn from_stored(stored: &StoredAction<'_>) -> Result<Self, StoredInteractiveError> {
        Ok(Self {
            url: CallbackUrl::parse(&stored.url)?,
            title: ActionTitle::parse(&stored.title)?,
        })
    }
}

#[cfg(test)]
mod tests;
