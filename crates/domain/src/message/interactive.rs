//! What a Viber message has besides its text: a button and an image.
//!
//! Every error here reads on after `Invalid value for field '…':`. The address of a button is a [`CallbackUrl`], too:
//! the same rules make it an address that can be opened.

use serde::{Deserialize, Serialize};
use url::Url;

use crate::callback_url::{CallbackUrl, CallbackUrlError};
use crate::shown::Shown;

/// The longest label of a button, in Unicode code points: longer ones do not fit the button on a phone.
pub const MAX_TITLE_CHARS: usize = 30;

/// How the name of an image may end, in any case.
const IMAGE_ENDINGS: [&str; 3] = [".jpeg", ".png", ".gif"];

/// A button and an image, either of them or none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Interactive {
    /// The button under the text.
    pub action: Option<Action>,
    /// The image beside the text.
    pub image: Option<ImageUrl>,
}

/// A button: what it says and what it opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    /// What it opens.
    pub url: CallbackUrl,
    /// What it says.
    pub title: ActionTitle,
}

/// The label of a button, as the caller wrote it: 1 to 30 code points without control characters, not all of them
/// white space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionTitle(String);

/// Why a text is no label for a button.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ActionTitleError {
    /// Nothing to be seen.
    #[error("the label is empty; give 1 to 30 characters")]
    Blank,
    /// It does not fit.
    #[error("{} has {chars} characters; give 1 to 30", Shown(.value))]
    TooLong {
        /// What was sent.
        value: String,
        /// Its length, in code points.
        chars: usize,
    },
    /// A label has one line.
    #[error("{} holds control characters; a label is one line of text", Shown(.value))]
    Control {
        /// What was sent.
        value: String,
    },
}

impl ActionTitle {
    /// Checks a label.
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

    /// The label as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The address of an image, as the caller wrote it. Its name promises a JPEG, a PNG or a GIF; whether there is one is
/// for [`crate::ports::ImageGuard`] to find out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageUrl(CallbackUrl);

/// Why an address cannot be that of an image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImageUrlError {
    /// Not an address that can be fetched.
    #[error(transparent)]
    Url(#[from] CallbackUrlError),
    /// The usual short form, which the networks do not take.
    #[error("the path ends in '.jpg'; name the image '.jpeg' instead")]
    Jpg,
    /// Some other name.
    #[error("the path's last segment is {}; it must end in '.jpeg', '.png' or '.gif'", Shown(.name))]
    Ending {
        /// The last segment of the path.
        name: String,
    },
}

impl ImageUrl {
    /// Checks an address.
    pub fn parse(value: &str) -> Result<Self, ImageUrlError> {
        let checked = CallbackUrl::parse(value)?;
        let parsed = Url::parse(value).expect("a callback URL has been parsed before");
        // As the standard for URLs reads it: neither the query nor the fragment can stand in for the name.
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

    /// The address as it was given.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The address as one that the guard over what may be dialled can judge.
    pub fn as_url(&self) -> &CallbackUrl {
        &self.0
    }
}

fn ends_in(name: &str, ending: &str) -> bool {
    let start = name.len().checked_sub(ending.len());
    let tail = start.and_then(|start| name.get(start..));
    tail.is_some_and(|tail| tail.eq_ignore_ascii_case(ending))
}

/// The JSON that databases keep: the `im` object of the request, without what is absent.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    action: Option<KeptAction<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    image: Option<KeptImage<'a>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptAction<'a> {
    #[serde(borrow)]
    url: Text<'a>,
    #[serde(borrow)]
    title: Text<'a>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptImage<'a> {
    #[serde(borrow)]
    url: Text<'a>,
}

/// Borrowed when written, and also when read, unless escapes have to be undone.
type Text<'a> = std::borrow::Cow<'a, str>;

/// What was read is nothing that [`Interactive::to_json`] writes.
#[derive(Debug, thiserror::Error)]
pub enum KeptInteractiveError {
    /// Not JSON, or with other fields.
    #[error("the kept settings cannot be read")]
    Json(#[from] serde_json::Error),
    /// A button that leads nowhere.
    #[error("the kept button has no address that can be opened")]
    Action(#[from] CallbackUrlError),
    /// A button without a label.
    #[error("the kept button has no fit label")]
    Title(#[from] ActionTitleError),
    /// An image that cannot be one.
    #[error("the kept image has no fit address")]
    Image(#[from] ImageUrlError),
}

impl Interactive {
    /// Whether there is nothing besides the text.
    pub fn is_empty(&self) -> bool {
        self.action.is_none() && self.image.is_none()
    }

    /// As databases keep it.
    pub fn to_json(&self) -> String {
        let kept = Kept {
            action: self.action.as_ref().map(|action| KeptAction {
                url: action.url.as_str().into(),
                title: action.title.as_str().into(),
            }),
            image: self.image.as_ref().map(|image| KeptImage {
                url: image.as_str().into(),
            }),
        };
        serde_json::to_string(&kept).expect("texts are JSON")
    }

    /// Reads what [`Self::to_json`] wrote, and nothing else: what is not valid today was not written by us.
    pub fn from_json(json: &[u8]) -> Result<Self, KeptInteractiveError> {
        let kept: Kept<'_> = serde_json::from_slice(json)?;
        let image = kept.image.map(|image| ImageUrl::parse(&image.url));
        Ok(Self {
            action: kept.action.as_ref().map(Action::from_kept).transpose()?,
            image: image.transpose()?,
        })
    }
}

impl Action {
    fn from_kept(kept: &KeptAction<'_>) -> Result<Self, KeptInteractiveError> {
        Ok(Self {
            url: CallbackUrl::parse(&kept.url)?,
            title: ActionTitle::parse(&kept.title)?,
        })
    }
}

#[cfg(test)]
mod tests;
