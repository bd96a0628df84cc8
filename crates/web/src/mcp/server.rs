//! The handler for `rmcp`: server information, the list of tools, and tool calls.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use bytes::Bytes;
use domain::Money;
use domain::quoted::Quoted;
use http::request::Parts;
use http::{HeaderName, Response, StatusCode};
use requests::{REQUIRED_PERMISSION, RefusalNote};
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestMethod,
    CompleteRequestParams, CompleteResult, DiscoverResult, Implementation, InputRequiredResult,
    ListPromptsRequestMethod, ListPromptsResult, ListResourceTemplatesRequestMethod,
    ListResourceTemplatesResult, ListResourcesRequestMethod, ListResourcesResult, ListToolsResult,
    MetaObject, PaginatedRequestParams, ProtocolVersion, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::Value;

use super::McpSettings;
use super::api::{ApiUnavailable, Bearer, RestApi};
use super::consent::{self, Consent, Price};
use super::endpoint::{DoubledArgument, Refused, Verdict};
use super::envelope::{Envelope, ErrorCode};
use super::message::VERSIONS;
use super::tools::{self, Answer, Tool, known_arguments};
use super::waiting::Waits;

/// How long a client may cache the list of tools, which changes only with the program.
const LIST_TTL_MS: u64 = 60 * 60 * 1000;

/// Instructions for the model of a client.
const INSTRUCTIONS: &str = "Switchboard sends SMS and one-time codes, registers sender IDs, looks subscribers up (HLR), and knows operators, networks, prefixes and prices. \
These tools cost the account money each time they succeed: send_sms (per part and recipient), lookup_hlr (per query), start_verification (its message) and, where the account has a price for it, check_verification; ask the user before calling them unless they asked for exactly that. \
To know what a message costs, and whether it would be accepted, give send_sms preview true. To try sending without cost or recipient, give it testMode \"1\". Prices are in get_sms_rates. \
An ID from send_sms or lookup_hlr is not a delivery or a result yet: call get_message or get_lookup with it and waitSeconds 30. cancel_message calls off a scheduled message. get_account tells the balance and what this token may do, list_senders the registered senders. \
Numbers are in international form, such as +37120000001; correct_phone_number makes them so. \
Lists come in pages: when nextCursor is not null, call again with it as cursor. \
A failed call has isError and an object error: code (AUTH_REQUIRED, FORBIDDEN, RATE_LIMITED, INVALID_INPUT, NOT_FOUND, CONFLICT, UPSTREAM_UNAVAILABLE or INTERNAL), message (what is wrong and what to change), retryable (whether the very same call may work later) and service_error_code (of the service's catalogue, or null).";

/// The tools, as the protocol lists them.
static LISTED: LazyLock<Vec<rmcp::model::Tool>> =
    LazyLock::new(|| tools::ALL.iter().map(|tool| tool.listed()).collect());

static SERVER_INFO: LazyLock<Implementation> = LazyLock::new(|| {
    Implementation::new("switchboard", env!("CARGO_PKG_VERSION"))
        .with_title("Switchboard")
        .with_description("SMS, sender IDs, HLR lookups, prices and numbering data")
});

/// The same as metadata, for every result of the newer protocol versions.
static SERVER_META: LazyLock<MetaObject> = LazyLock::new(|| {
    let discovered = DiscoverResult::new(Vec::new(), ServerCapabilities::default());
    let discovered = discovered.with_server_info(SERVER_INFO.clone());
    discovered.meta.unwrap_or_default()
});

#[derive(Clone)]
pub(super) struct ToolServer(Arc<Shared>);

struct Shared {
    api: Arc<dyn RestApi>,
    token_header: HeaderName,
    amount_header: HeaderName,
    currency: String,
    confirm_above: Money,
    waits: Waits,
}

impl ToolServer {
    pub(super) fn new(api: Arc<dyn RestApi>, settings: &McpSettings, waits: Waits) -> Self {
        Self(Arc::new(Shared {
            api,
            token_header: settings.token_header.clone(),
            amount_header: settings.amount_header.clone(),
            currency: settings.currency.clone(),
            confirm_above: settings.confirm_above,
            waits,
        }))
    }

    async fn call(
        &self,
        tool: &Tool,
        arguments: &tools::Arguments,
        parts: &Parts,
    ) -> CallToolResult {
        let answered = match check_names(tool, arguments, parts) {
            Err(envelope) => Err(envelope),
            Ok(()) if tool.waits => self.answer_when_final(tool, arguments, parts).await,
            Ok(()) => self.answer(tool, arguments, parts).await,
        };
        match answered {
            Ok(result) => CallToolResult::structured(result),
            Err(envelope) => failed(tool, parts, &envelope),
        }
    }

    /// The question to the user before a costly message; `None` if the call needs no consent or has it.
    async fn find_question(
        &self,
        tool: &Tool,
        arguments: &tools::Arguments,
        parts: &Parts,
        consent: Consent,
        can_ask: bool,
    ) -> Result<Option<InputRequiredResult>, Envelope> {
        let Some(preview) = tools::preview_of(tool, arguments) else {
            return Ok(None);
        };
        // An answer counts whatever the price is now, and whatever the client says it can show.
        if consent == Consent::Declined {
            return Err(consent::declined());
        }
        if !can_ask {
            return Ok(None);
        }
        check_names(tool, arguments, parts)?;
        // Without a price nothing is sent, because the user could not agree to it.
        let preview = self.answer(tool, &preview, parts).await?;
        let price = Price::read(&preview, &self.0.currency);
        let Some(price) = price.filter(|price| price.total > self.0.confirm_above) else {
            return Ok(None);
        };
        match consent {
            Consent::Given(most) if price.total <= most => Ok(None),
            _ => Ok(Some(price.question())),
        }
    }

    /// Answers as soon as the result is final, or when the time that the caller gives is over.
    async fn answer_when_final(
        &self,
        tool: &Tool,
        arguments: &tools::Arguments,
        parts: &Parts,
    ) -> Result<Value, Envelope> {
        let is_final = |result: &Value| result[tools::FINAL] == true;
        let time = Duration::from_secs(tools::wait_s(arguments)?);
        let mut newest = self.answer(tool, arguments, parts).await?;
        let bearer = parts.extensions.get::<Bearer>();
        let Some(account) = bearer.and_then(|bearer| bearer.account) else {
            return Ok(newest);
        };
        if time.is_zero() || is_final(&newest) {
            return Ok(newest);
        }
        let mut wait = self.0.waits.begin(account, time).ok_or_else(|| {
            let message = "Too many calls are waiting for their results. Wait for fewer at once, or call this without waitSeconds.";
            Envelope::new(ErrorCode::RateLimited, message)
        })?;
        while !is_final(&newest) && wait.pause().await {
            match self.answer(tool, arguments, parts).await {
                Ok(result) => newest = result,
                // The next read may succeed.
                Err(envelope) if envelope.is_retryable() => {}
                Err(envelope) => return Err(envelope),
            }
        }
        Ok(newest)
    }

    /// Asks REST once.
    async fn answer(
        &self,
        tool: &Tool,
        arguments: &tools::Arguments,
        parts: &Parts,
    ) -> Result<Value, Envelope> {
        let request = (tool.ask)(arguments)?;
        let Some(bearer) = parts.extensions.get::<Bearer>() else {
            return Err(Envelope::new(ErrorCode::AuthRequired, "No access token."));
        };
        let request = request.into_http(bearer, &self.0.token_header);
        let asked = self.0.api.ask(request).await;
        let response = asked.map_err(|error| unreachable_api(&error))?;
        if response.status().is_success() {
            return self.read(tool, arguments, &response);
        }
        let envelope = Envelope::from_rest(&response);
        if let (Some(refused), Some(verdict)) = (
            refused(tool, &response, &envelope),
            parts.extensions.get::<Verdict>(),
        ) {
            verdict.pass(refused);
        }
        Err(envelope)
    }

    fn read(
        &self,
        tool: &Tool,
        arguments: &tools::Arguments,
        response: &Response<Bytes>,
    ) -> Result<Value, Envelope> {
        let answer = Answer {
            response,
            amount_header: &self.0.amount_header,
            currency: &self.0.currency,
        };
        (tool.read)(arguments, &answer).ok_or_else(|| {
            tracing::error!(
                tool = tool.name,
                "the REST API answered in a form that is not known"
            );
            let message = "The REST API answered in a form that this server does not know. The operation may have taken place.";
            Envelope::new(ErrorCode::Internal, message)
        })
    }
}

/// An argument that is unknown or appears twice is refused, because the caller relies on it.
fn check_names(tool: &Tool, arguments: &tools::Arguments, parts: &Parts) -> Result<(), Envelope> {
    if let Some(DoubledArgument(name)) = parts.extensions.get() {
        let message = format!("The argument {} appears twice; give it once.", Quoted(name));
        return Err(Envelope::invalid(message));
    }
    let listed = LISTED.iter().find(|listed| listed.name == tool.name);
    let schema = listed.map(|listed| &listed.input_schema);
    schema.map_or(Ok(()), |schema| known_arguments::check(schema, arguments))
}

fn is_newer_version(context: &RequestContext<RoleServer>) -> bool {
    let version = context.protocol_version();
    version.is_some_and(|version| !version.has_initialize())
}

fn unreachable_api(error: &ApiUnavailable) -> Envelope {
    tracing::warn!(%error, "a tool could not be called");
    let message = "The REST API cannot be reached at the moment. Whether it has acted on this call is not known; try again shortly.";
    Envelope::new(ErrorCode::UpstreamUnavailable, message)
}

/// The result of a failed call.
fn failed(tool: &Tool, parts: &Parts, envelope: &Envelope) -> CallToolResult {
    note(parts, envelope.note(Some(tool.name)));
    CallToolResult::structured_error(envelope.to_json())
}

/// Notes an error for the log of refused requests.
fn note(parts: &Parts, error: RefusalNote) {
    if let Some(verdict) = parts.extensions.get::<Verdict>() {
        verdict.note(error);
    }
}

/// Whether REST refused the token.
fn refused(tool: &Tool, response: &Response<Bytes>, envelope: &Envelope) -> Option<Refused> {
    match response.status() {
        StatusCode::UNAUTHORIZED => Some(Refused::Token(envelope.clone())),
        StatusCode::FORBIDDEN if response.headers().contains_key(REQUIRED_PERMISSION) => {
            let refuse = |scope| Refused::Scope(scope, envelope.clone());
            tool.scope.map(refuse)
        }
        _ => None,
    }
}

impl ServerHandler for ToolServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        ServerConfig::new(capabilities)
            .with_server_info(SERVER_INFO.clone())
            .with_instructions(INSTRUCTIONS)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(VERSIONS)
    }

    async fn discover(&self, _: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let discovered = DiscoverResult::from_server_info(VERSIONS.to_vec(), self.get_info());
        Ok(discovered
            .with_ttl_ms(LIST_TTL_MS)
            .with_cache_scope(CacheScope::Public))
    }

    /// The same for all tokens; REST checks permissions.
    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        if request.is_some_and(|request| request.cursor.is_some()) {
            let message = "There is one page of tools, so there is no cursor.";
            return Err(ErrorData::invalid_params(message, None));
        }
        let mut list = ListToolsResult::with_all_items(LISTED.clone());
        // Older clients do not know the hints.
        if is_newer_version(&context) {
            list.meta = Some(SERVER_META.clone());
            list = list
                .with_ttl_ms(LIST_TTL_MS)
                .with_cache_scope(CacheScope::Public);
        }
        Ok(list)
    }

    fn get_tool(&self, name: &str) -> Option<rmcp::model::Tool> {
        LISTED.iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let parts = context
            .extensions
            .get::<Parts>()
            .ok_or_else(|| ErrorData::internal_error("the request is not known", None))?;
        let Some(tool) = tools::ALL.iter().find(|tool| tool.name == request.name) else {
            let message = format!("There is no tool {}.", Quoted(&request.name));
            note(parts, Envelope::invalid(message.clone()).note(None));
            return Err(ErrorData::invalid_params(message, None));
        };
        let consent = Consent::read(&request);
        let arguments = request.arguments.unwrap_or_default();
        let can_ask = is_newer_version(&context) && consent::can_ask(&context);
        let question = self.find_question(tool, &arguments, parts, consent, can_ask);
        let question = question.await;
        let mut result = match question {
            Ok(Some(question)) => return Ok(question.with_meta(SERVER_META.clone()).into()),
            Err(envelope) => failed(tool, parts, &envelope),
            Ok(None) => tokio::select! {
                result = self.call(tool, &arguments, parts) => result,
                // Nobody reads the answer any more, and only a wait can be given up without doubt about what was done.
                () = context.ct.cancelled(), if tool.waits => return Err(ErrorData::internal_error("the client went away", None)),
            },
        };
        if is_newer_version(&context) {
            result.meta = Some(SERVER_META.clone());
        }
        Ok(result.into())
    }

    // The server has only tools. `rmcp` would answer these with empty lists.

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Err(ErrorData::method_not_found::<CompleteRequestMethod>())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListPromptsRequestMethod>())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListResourcesRequestMethod>())
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Err(ErrorData::method_not_found::<
            ListResourceTemplatesRequestMethod,
        >())
    }
}
