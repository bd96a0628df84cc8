//! Clients for the outside world, built from the configuration.

use std::sync::Arc;

use domain::message::lookup::HomeOperator;
use domain::ports::{
    CallbackSender, ClientDocuments, HomeNetwork, ImageGuard, Mailer, NotificationSender,
    NumberLocator, Store, UrlGuard,
};
use domain::{Msisdn, Network};
use engine::{Catalogues, Outside};
use numbering::reference::{NetworkEntry, NetworkStatus, Operator};
use outbound::callback::TRY_TIMEOUT;
use outbound::client_document::{self, FETCH_TIMEOUT};
use outbound::image::{CHECK_TIMEOUT, MAX_FETCHES};
use outbound::{
    CallbackClient, CallbackOptions, DialerOptions, DnsOptions, DnsResolver, DocumentFetch,
    DocumentOptions, Guard, ImageCheck, ImageOptions, Notifier, Resolve, SharedLookups, UrlCheck,
};
use smpp_server::SmppSessions;
use store::DatabaseUrl;

use crate::config::Config;
use crate::machine::ThisMachine;

/// Resolves host names that callers give. All clients share its cache.
pub(crate) fn resolver(config: &Config) -> Arc<dyn Resolve> {
    let resolver = DnsResolver::new(DnsOptions {
        name_servers: config.callbacks.name_servers.clone(),
        ..DnsOptions::default()
    });
    Arc::new(SharedLookups::new(Arc::new(resolver)))
}

/// Decides which URLs callers may give.
pub(crate) fn url_guard(config: &Config, resolver: Arc<dyn Resolve>) -> Arc<dyn UrlGuard> {
    Arc::new(UrlCheck::new(guard(config), resolver))
}

/// Checks the images of messages.
pub(crate) fn image_guard(config: &Config, resolver: Arc<dyn Resolve>) -> Arc<dyn ImageGuard> {
    Arc::new(ImageCheck::new(ImageOptions {
        dialer: DialerOptions {
            guard: guard(config),
            resolver,
            source: config.callbacks.source.clone(),
            tls: outbound::dial::public_roots(),
            proxy: None,
        },
        check_timeout: CHECK_TIMEOUT,
        max_fetches: MAX_FETCHES,
    }))
}

/// Fetches metadata documents of OAuth clients. Anybody can trigger a fetch, so `callbacks.allow` does not apply.
pub(crate) fn client_documents(
    config: &Config,
    resolver: Arc<dyn Resolve>,
) -> Arc<dyn ClientDocuments> {
    Arc::new(DocumentFetch::new(DocumentOptions {
        dialer: DialerOptions {
            guard: Guard::default(),
            resolver,
            source: config.callbacks.source.clone(),
            tls: outbound::dial::public_roots(),
            proxy: None,
        },
        fetch_timeout: FETCH_TIMEOUT,
        max_fetches: client_document::MAX_FETCHES,
    }))
}

/// Delivers callbacks. `callbacks.tls_ca` and `callbacks.proxy` apply to nothing else.
fn callback_client(
    config: &Config,
    resolver: Arc<dyn Resolve>,
) -> anyhow::Result<Arc<dyn CallbackSender>> {
    Ok(Arc::new(client(config, resolver, guard(config))?))
}

/// What a worker reaches outside, and the SMPP sessions among its receivers of callbacks.
pub(crate) fn of_worker(
    config: &Config,
    database: &DatabaseUrl,
    store: Arc<dyn Store>,
    resolver: &Arc<dyn Resolve>,
    mailer: Option<&Arc<dyn Mailer>>,
) -> anyhow::Result<(Outside, Arc<SmppSessions>)> {
    let http = callback_client(config, resolver.clone())?;
    let sessions = SmppSessions::new(http, store);
    let outside = Outside {
        callbacks: sessions.clone(),
        notifications: notifier(config, resolver.clone())?,
        machine: Arc::new(ThisMachine::new(config, database)),
        mailer: mailer.cloned(),
    };
    Ok((outside, sessions))
}

/// Sends notifications.
fn notifier(
    config: &Config,
    resolver: Arc<dyn Resolve>,
) -> anyhow::Result<Arc<dyn NotificationSender>> {
    Ok(Arc::new(Notifier {
        guarded: client(config, resolver.clone(), guard(config))?,
        open: client(config, resolver, Guard::open())?,
    }))
}

fn client(
    config: &Config,
    resolver: Arc<dyn Resolve>,
    guard: Guard,
) -> anyhow::Result<CallbackClient> {
    Ok(CallbackClient::new(CallbackOptions {
        dialer: DialerOptions {
            guard,
            resolver,
            source: config.callbacks.source.clone(),
            tls: config.callbacks.trusted()?,
            proxy: config.callbacks.http_proxy()?,
        },
        try_timeout: TRY_TIMEOUT,
    }))
}

pub(crate) fn number_locator(catalogues: Arc<Catalogues>) -> Arc<dyn NumberLocator> {
    Arc::new(ReferenceBook(catalogues))
}

struct ReferenceBook(Arc<Catalogues>);

impl ReferenceBook {
    fn home_from(operator: &Operator) -> HomeNetwork {
        HomeNetwork {
            country: operator.country,
            operator: Some(HomeOperator {
                id: operator.id.get(),
                name: operator.name.to_string(),
                country: operator.country,
            }),
            network: operator.main,
        }
    }
}

impl NumberLocator for ReferenceBook {
    fn locate(&self, number: &Msisdn) -> HomeNetwork {
        let live = self.0.live();
        let location = live.reference.locate(number);
        let operator = location.operator.and_then(|id| live.reference.operator(id));
        operator.map_or_else(
            || HomeNetwork {
                country: location.country,
                ..HomeNetwork::default()
            },
            Self::home_from,
        )
    }

    fn operator_of(&self, network: Network) -> Option<HomeNetwork> {
        let live = self.0.live();
        let mut entries = live.reference.find_network(network);
        let entry = entries.next()?;
        // Territories may share a network: then its country is unknown.
        let is_shared = entries.any(|other| other.country != entry.country);
        let operator = live.reference.operator(entry.operator).map(Self::home_from);
        let home = operator.unwrap_or_default();
        Some(HomeNetwork {
            country: entry.country.filter(|_| !is_shared),
            network: Some(network),
            ..home
        })
    }

    fn other_operator(&self, home: &HomeNetwork) -> Option<HomeNetwork> {
        let live = self.0.live();
        let own = home.operator.as_ref().map(|operator| operator.id);
        let is_other = |entry: &&NetworkEntry| {
            entry.status == NetworkStatus::Operational && Some(entry.operator.get()) != own
        };
        let other = live
            .reference
            .networks(home.country?)
            .iter()
            .find(is_other)?;
        live.reference.operator(other.operator).map(Self::home_from)
    }
}

fn guard(config: &Config) -> Guard {
    Guard::new(config.callback_allow())
}
