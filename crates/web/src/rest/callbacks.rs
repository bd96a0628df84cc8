//! The callbacks, as the OpenAPI document describes them. `engine` sends them.

use utoipa::openapi::OpenApi as Document;
use utoipa::openapi::path::PathsBuilder;
use utoipa::{Modify, OpenApi, ToSchema};

use super::inbox::InboundMessage;
use super::shapes::{SenderKindName, SenderStateName};

/// Adds the callbacks to the document, as webhooks.
pub(super) struct Callbacks;

impl Modify for Callbacks {
    fn modify(&self, document: &mut Document) {
        let described = Described::openapi();
        let paths = described.paths.paths.into_iter();
        let webhooks = paths.fold(PathsBuilder::new(), |webhooks, (path, item)| {
            webhooks.path(path.trim_start_matches('/'), item)
        });
        document.webhooks = Some(webhooks.build());
        let components = document.components.get_or_insert_default();
        let schemas = described.components.map(|components| components.schemas);
        components.schemas.extend(schemas.into_iter().flatten());
    }
}

#[derive(OpenApi)]
#[openapi(paths(delivery_report, sender_notification, lookup_result, inbound_message))]
struct Described;

/// The end of a message.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the callback for the document")]
pub(super) struct DeliveryReport {
    /// The ID that the submission returned.
    #[schema(example = "10001")]
    id: String,
    /// 1 delivered, 2 not delivered, 3 seen (Viber), 16 expired after it was sent.
    #[schema(example = 1)]
    status: u8,
    /// The service error code; 0 for none.
    #[schema(example = 0)]
    error: u16,
    /// Mobile country code; absent if it is not known.
    #[schema(example = "247", nullable = false)]
    mcc: Option<String>,
    /// Mobile network code; absent if it is not known.
    #[schema(example = "02", nullable = false)]
    mnc: Option<String>,
}

/// A change of a sender's status.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the callback for the document")]
pub(super) struct SenderNotification {
    /// The ID that the registration returned.
    #[schema(example = 123)]
    id: u64,
    /// The name, or the number with a leading plus sign.
    #[schema(example = "Acme")]
    name: String,
    /// What kind of sender it is.
    #[schema(rename = "type", value_type = SenderKindName)]
    kind: String,
    /// The new status.
    #[schema(value_type = SenderStateName)]
    status: String,
    /// The status before.
    #[schema(rename = "previousStatus", value_type = SenderStateName)]
    previous_status: String,
    /// Why, in the reviewer's words; null when none were given.
    reason: Option<String>,
    /// When it changed, RFC 3339.
    #[schema(format = DateTime, example = "2030-01-31T09:30:00Z")]
    timestamp: String,
}

/// What a network says about a subscriber. Unknown fields are left out.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the callback for the document")]
pub(super) struct LookupResult {
    /// The ID of the lookup.
    #[schema(example = "7")]
    id: String,
    /// 0, or the service error code that says why the subscriber cannot be reached.
    #[schema(example = 0)]
    error: u16,
    /// The subscriber's identity in the network.
    #[schema(example = 247_010_000_000_001_u64, nullable = false)]
    imsi: Option<u64>,
    /// The country of the network that serves the number, ISO 3166-1 alpha-2.
    #[schema(example = "LV", nullable = false)]
    country: Option<String>,
    /// The operator that serves the number.
    #[schema(rename = "operatorId", example = 1635, nullable = false)]
    operator_id: Option<u32>,
    /// Mobile country code.
    #[schema(example = "247", nullable = false)]
    mcc: Option<String>,
    /// Mobile network code.
    #[schema(example = "01", nullable = false)]
    mnc: Option<String>,
    /// The operator that the number was first given to; only if it was ported.
    #[schema(nullable = false)]
    ported: Option<Vec<OriginalOperator>>,
}

/// The operator that a ported number was first given to.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the callback for the document")]
pub(super) struct OriginalOperator {
    #[schema(rename = "operatorId", example = 1635)]
    operator_id: u32,
    /// Its name.
    #[schema(example = "LMT")]
    operator: String,
    /// ISO 3166-1 alpha-2.
    #[schema(example = "LV")]
    country: Option<String>,
}

macro_rules! callback {
    ($(#[$doc:meta])* $name:ident, $path:tt, $body:ident, $answer:tt) => {
        $(#[$doc])*
        #[utoipa::path(
            post,
            path = $path,
            tag = "Callbacks",
            security(()),
            request_body = $body,
            params(
                ("webhook-id" = String, Header, description = "The ID of the callback. A repetition has the same."),
                ("webhook-timestamp" = String, Header, pattern = "^[0-9]+$", description = "When it was sent, in seconds since 1970."),
                ("webhook-signature" = String, Header, description = "`v1,` and the base64 of an HMAC-SHA256 over `ID.TIMESTAMP.BODY` with the account's secret `whsec_…`; two of them, separated by a space, while a secret is replaced."),
            ),
            responses((status = 200, description = $answer, body = String, content_type = "text/plain", example = "OK")),
        )]
        #[expect(dead_code, reason = "describes the callback for the document")]
        fn $name() {}
    };
}

callback!(
    /// The end of a message, sent to its `dlrUrl`
    delivery_report,
    "/deliveryReport",
    DeliveryReport,
    "Received. The body must be `OK`; otherwise the callback is repeated."
);
callback!(
    /// A change of a sender's status, sent to its `notificationUrl`
    sender_notification,
    "/senderNotification",
    SenderNotification,
    "Received. Any status from 200 to 299 counts."
);
callback!(
    /// The result of a lookup, sent to its `callBackUrl`
    lookup_result,
    "/lookupResult",
    LookupResult,
    "Received. The body must be `OK`; otherwise the callback is repeated."
);
callback!(
    /// A message from a handset, sent to the URL of the number or of the account
    inbound_message,
    "/inboundMessage",
    InboundMessage,
    "Received. The body must be `OK`; otherwise the callback is repeated."
);
