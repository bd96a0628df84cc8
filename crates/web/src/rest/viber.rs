//! Sending Viber messages.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use engine::sending::submit::{ActionInput, ViberInput};
use http::HeaderMap;
use requests::{InvalidField, Problem};
use utoipa::ToSchema;

use super::body::JsonBody;
use super::caller::{Caller, ViberSend};
use super::document::{Failure, PriorityName};
use super::json::{Fields, Value, require};
use super::shapes::{DateTimeText, Recipients, SenderText, TestModeValue};
use super::{Rest, sms};

/// A Viber message to send. JSON null means absent; unknown fields are ignored.
#[derive(ToSchema)]
#[schema(example = json!({"to": "+37120000001", "from": "Acme", "message": "Your order is on its way", "im": {"action": {"url": "https://example.com/order", "title": "Follow it"}}}))]
#[expect(
    dead_code,
    reason = "describes the body for the document; the operation reads it leniently"
)]
pub(super) struct ViberRequest {
    to: Recipients,
    /// An approved sender of this account.
    from: SenderText,
    /// The text: at most 1,000 characters.
    #[schema(
        min_length = 1,
        max_length = 1000,
        example = "Your order is on its way"
    )]
    message: String,
    /// Where the delivery report is sent: an http or https address.
    #[schema(
        rename = "dlrUrl",
        format = "uri",
        max_length = 2048,
        pattern = "^[Hh][Tt][Tt][Pp][Ss]?://"
    )]
    dlr_url: Option<String>,
    priority: Option<PriorityName>,
    /// When to send, ISO 8601 with offset: up to a year ahead.
    #[schema(inline)]
    scheduled: Option<DateTimeText>,
    #[schema(rename = "testMode")]
    test_mode: Option<TestModeValue>,
    /// ISO 3166-1 alpha-2 country that local recipients are completed for.
    #[schema(rename = "correctBy", example = "LV", pattern = "^[A-Za-z]{2}$")]
    correct_by: Option<String>,
    im: Option<InteractiveRequest>,
}

/// A button and an image, either of them or both.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the body for the document")]
pub(super) struct InteractiveRequest {
    action: Option<ActionRequest>,
    image: Option<ImageRequest>,
}

/// A button; it needs both fields.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the body for the document")]
pub(super) struct ActionRequest {
    /// What it opens: an http or https address.
    #[schema(
        format = "uri",
        max_length = 2048,
        pattern = "^[Hh][Tt][Tt][Pp][Ss]?://"
    )]
    url: String,
    /// What it says: 1 to 30 characters, on one line.
    #[schema(
        min_length = 1,
        max_length = 30,
        pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]*$"
    )]
    title: String,
}

/// An image.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the body for the document")]
pub(super) struct ImageRequest {
    /// A JPEG, PNG or GIF of at most 1 MiB, not animated; the address ends in `.jpeg`, `.png` or `.gif`. It is fetched and
    /// looked at before the message is accepted.
    #[schema(
        format = "uri",
        max_length = 2048,
        pattern = "^[Hh][Tt][Tt][Pp][Ss]?://[^?#]*[.]([Jj][Pp][Ee][Gg]|[Pp][Nn][Gg]|[Gg][Ii][Ff])([?#]|$)"
    )]
    url: String,
}

/// Send a Viber message to one or several recipients
///
/// Accepts the message and answers with one ID for each recipient, in their order, once it is stored durably. `from`
/// must be an approved sender of the account. Its end is reported as that of an SMS, and where the network tells, also
/// that it was seen: status 3.
#[utoipa::path(
    post,
    path = "/viber",
    operation_id = "sendViber",
    tag = "Viber",
    request_body = ViberRequest,
    params(
        ("Idempotency-Key" = Option<String>, Header, min_length = 1, max_length = 255, pattern = "^[!-~]+$", description = "Makes a repeated request harmless, as in `POST /sms`."),
    ),
    responses(
        (status = 200, description = "Stored. One message ID for each recipient.", body = Vec<String>, headers(
            ("X-Service-Amount-Sent" = u32, description = "The number of messages: one for each recipient."),
        ), links(
            ("status" = (operation_id = "readMessageStatus", parameters(("id" = "$response.body#/0")), description = "What became of the first message.")),
        )),
        (status = 400, description = "A field breaks a rule, or the image cannot be used; the message says which.", body = Failure),
        (status = 401, description = "No valid token.", body = Failure),
        (status = 403, description = "The token lacks `viber:send`, `from` is no approved sender, or the account cannot pay or may not send so much or there.", body = Failure),
        (status = 409, description = "The Idempotency-Key was used with another body.", body = Failure),
        (status = 503, description = "Overloaded or without its database; `Retry-After` says when to try again.", body = Failure),
    ),
)]
pub(super) async fn send(
    State(rest): State<Arc<Rest>>,
    caller: Caller<ViberSend>,
    headers: HeaderMap,
    JsonBody(body): JsonBody,
) -> Result<Response, Problem> {
    let repeatable = sms::repeatable(&headers, &body)?;
    if let Some(request) = &repeatable
        && let Some(earlier) = sms::find_answer(&rest, caller.access.account, request).await?
    {
        return Ok(sms::answer(&rest, earlier));
    }
    let order = read_order(Fields::parse(&body)?)?;
    let sent =
        rest.engine
            .submit
            .send_viber(&caller.access, order, repeatable, sms::trace(&headers));
    let problem = |error| Problem::from_submit(error, &rest.settings.currency);
    Ok(sms::answer(&rest, sent.await.map_err(problem)?))
}

fn read_order(mut fields: Fields<'_>) -> Result<ViberInput<'_>, InvalidField> {
    let mut interactive = take_object(&mut fields, "im")?.unwrap_or_default();
    let action = take_object(&mut interactive, "action")?;
    let image = take_object(&mut interactive, "image")?;
    let from = fields.take_digits("from")?;
    Ok(ViberInput {
        to: sms::read_recipients(&mut fields)?,
        from: require(from, "from", "an approved sender")?,
        message: require(fields.take_text("message")?, "message", "the text")?,
        dlr_url: fields.take_text("dlrUrl")?,
        priority: fields.take_text("priority")?,
        scheduled: fields.take_text("scheduled")?,
        test_mode: fields.take_digits("testMode")?,
        correct_by: fields.take_text("correctBy")?,
        action: action.map(read_action).transpose()?,
        image: image.map(read_image).transpose()?,
    })
}

fn read_action(mut fields: Fields<'_>) -> Result<ActionInput<'_>, InvalidField> {
    Ok(ActionInput {
        url: fields.take_text("url")?,
        title: fields.take_text("title")?,
    })
}

fn read_image(mut fields: Fields<'_>) -> Result<std::borrow::Cow<'_, str>, InvalidField> {
    require(
        fields.take_text("url")?,
        "im.image.url",
        "the address of the image",
    )
}

fn take_object<'a>(
    fields: &mut Fields<'a>,
    name: &'static str,
) -> Result<Option<Fields<'a>>, InvalidField> {
    match fields.take(name) {
        None => Ok(None),
        Some(Value::Object(object)) => Ok(Some(object)),
        Some(other) => Err(InvalidField::new(
            name,
            format_args!("{other}; give an object"),
        )),
    }
}
