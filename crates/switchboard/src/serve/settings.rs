//! The settings of each part of the service, from the configuration.

use std::net::SocketAddr;
use std::time::Duration;

use dashboard::{DashboardSettings, SecondFactorDemand, oauth_refused, session_cookie_name};
use domain::ports::NodeInfo;
use engine::GrantSettings;
use jiff::SignedDuration;
use url::Url;
use web::rest::MAX_CORRECTIONS;
use web::server;
use web::{Landing, OAuthSettings, RestSettings};

use crate::cli::Role;
use crate::config::{Config, SecondFactor};
use crate::open_files;

/// Submissions in one transaction.
const ACCEPT_BATCH: usize = 512;

pub(super) fn engine_settings(
    config: &Config,
    roles: &[Role],
    listening: SocketAddr,
) -> anyhow::Result<engine::Settings> {
    let days = |days: u32| SignedDuration::from_hours(i64::from(days) * 24);
    Ok(engine::Settings {
        node_info: NodeInfo {
            roles: roles.iter().map(|role| role.name()).collect(),
            works: roles.contains(&Role::Worker),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            host: whoami::hostname().unwrap_or_else(|_| "unknown".to_owned()),
            listen: listening.to_string(),
        },
        accept_queue: config.limits.accept_queue,
        accept_batch: ACCEPT_BATCH,
        held: config.limits.held_messages,
        park_callbacks_after: config.callbacks.park_after_days.map(days),
        callback_tries: open_files::share_for_callbacks(open_files::raise()),
        keep_messages: Some(config.retention.messages_days)
            .filter(|days| *days > 0)
            .map(days),
        keep_texts: Some(config.retention.texts_days)
            .filter(|days| *days > 0)
            .map(days),
        keep_ported: days(config.retention.ported_days),
        incomplete_after: SignedDuration::from_secs(config.inbound.incomplete_seconds.into()),
        words: config.words(),
        fold_ledger_after: Some(config.retention.ledger_days)
            .filter(|days| *days > 0)
            .map(days),
        metrics_by_account: config.metrics.accounts,
        notify: config.notify_targets()?,
        pin_from: config.pin_from()?,
        grants: grant_settings(config, listening),
    })
}

fn grant_settings(config: &Config, listening: SocketAddr) -> GrantSettings {
    let seconds = |seconds: u32| SignedDuration::from_secs(i64::from(seconds));
    let days = |days: u32| SignedDuration::from_hours(i64::from(days) * 24);
    GrantSettings {
        issuer: config.auth_url(listening),
        resource: format!("{}/mcp", config.mcp_url(listening)),
        code_lifetime: seconds(config.oauth.code_seconds),
        access_lifetime: seconds(config.oauth.access_seconds),
        refresh_lifetime: days(config.oauth.refresh_days),
        grant_lifetime: days(config.oauth.grant_days),
    }
}

pub(super) fn rest_settings(config: &Config) -> anyhow::Result<RestSettings> {
    Ok(RestSettings {
        token_header: config.token_header()?,
        amount_header: config.amount_header()?,
        query_token: config.auth.query_token,
        trusted_proxies: config.auth.trusted_proxies.clone(),
        body_bytes: config.limits.body_bytes,
        body_time: Duration::from_secs(config.limits.body_seconds),
        currency: config.billing.currency.clone(),
    })
}

pub(super) fn oauth_settings(config: &Config, listening: SocketAddr) -> OAuthSettings {
    let dashboard_url = config.dashboard_url(listening);
    OAuthSettings {
        session_cookie: session_cookie_name(dashboard_url.starts_with("https:")),
        refusal_page: oauth_refused,
        consent_url: format!("{dashboard_url}/oauth/consent"),
        trusted_proxies: config.auth.trusted_proxies.clone(),
    }
}

pub(super) fn dashboard_settings(config: &Config, listening: SocketAddr) -> DashboardSettings {
    DashboardSettings {
        secure: config.dashboard_url(listening).starts_with("https:"),
        dashboard_url: config.dashboard_url(listening),
        base_url: config.base_url(listening),
        mcp_url: format!("{}/mcp", config.mcp_url(listening)),
        auth_url: config.auth_url(listening),
        token_header: format!("{}-Token", config.server.header_prefix),
        max_api_corrections: MAX_CORRECTIONS,
        currency: config.billing.currency.clone(),
        trusted_proxies: config.auth.trusted_proxies.clone(),
        second_factor: match config.auth.second_factor {
            SecondFactor::Optional => SecondFactorDemand::Nobody,
            SecondFactor::Operators => SecondFactorDemand::Operators,
            SecondFactor::Everyone => SecondFactorDemand::Everyone,
        },
    }
}

/// What `/` answers. A node names what it serves itself, and what `[urls]` says is elsewhere.
pub(super) fn landing(config: &Config, roles: &[Role], listening: SocketAddr) -> Landing {
    let urls = &config.urls;
    let is_known = |role, url: Option<&Url>| roles.contains(&role) || url.is_some();
    let base = is_known(Role::Api, urls.base.as_ref()).then(|| config.base_url(listening));
    let dashboard = is_known(Role::Dashboard, urls.dashboard.as_ref())
        .then(|| format!("{}/dashboard", config.dashboard_url(listening)));
    let mcp = is_known(Role::Mcp, urls.mcp.as_ref().or(urls.base.as_ref()))
        .then(|| format!("{}/mcp", config.mcp_url(listening)));
    Landing {
        name: "Switchboard",
        version: env!("CARGO_PKG_VERSION"),
        docs: base.as_ref().map(|base| format!("{base}/docs")),
        openapi: base.map(|base| format!("{base}/openapi.json")),
        // A path, because without `urls.dashboard` this node does not know its own address behind a proxy.
        redirect: match urls.dashboard {
            None => dashboard.is_some().then(|| "/dashboard".to_owned()),
            Some(_) => dashboard.clone(),
        },
        dashboard,
        mcp,
    }
}

pub(super) fn server_limits(config: &Config) -> server::Limits {
    let limits = &config.limits;
    server::Limits {
        connections: limits.connections,
        connections_per_address: limits.per_address(),
        trusted_proxies: config.auth.trusted_proxies.clone(),
        in_flight: limits.in_flight,
        header_time: Duration::from_secs(limits.header_seconds),
        request_time: Duration::from_secs(limits.request_seconds),
        write_time: Duration::from_secs(limits.write_seconds),
        grace: Duration::from_secs(limits.shutdown_seconds),
    }
}
