//! Where carriers reach this service.

use domain::encryption::KEY_BYTES;
use domain::ports::Store;
use outbound::http::CarrierLinks;

use crate::config::Config;
use crate::config::carriers::Carrier;

/// The base URL of this service: as configured, or that of a running node that takes reports.
pub(crate) async fn base_url(config: &Config, store: &dyn Store) -> anyhow::Result<String> {
    let nodes = store.list_nodes().await?;
    let mut alive = nodes.iter().filter(|node| !node.is_dead);
    let listening = alive.find_map(|node| {
        let info = &node.facts.as_ref()?.info;
        info.works.then(|| info.listen.parse().ok())?
    });
    Ok(config.base_url(listening.unwrap_or(config.server.listen)))
}

/// Where a carrier sends messages from handsets, if it sends them by HTTP.
pub(crate) fn inbound_url(
    carrier: &Carrier,
    base_url: &str,
    keys: &[[u8; KEY_BYTES]],
) -> anyhow::Result<Option<String>> {
    match carrier {
        Carrier::Upstream(upstream) => {
            let url = upstream.settings(base_url)?.inbound_url();
            Ok(Some(url.to_string()))
        }
        Carrier::Http(carrier) if carrier.has_inbound() => {
            let base_url = carrier.reached_at(base_url)?;
            let links = CarrierLinks::new(&carrier.name, &base_url, keys);
            Ok(Some(links.inbound_url()))
        }
        Carrier::Http(_) | Carrier::Simulator(_) | Carrier::Smpp(_) => Ok(None),
    }
}
