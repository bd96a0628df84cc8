//! `switchboard config check --connect`

use std::time::Instant;

use anyhow::ensure;
use outbound::{HttpCarrier, SmppCarrier, Upstream};

use crate::carriers::smpp_settings;
use crate::config::Config;
use crate::config::carriers::Carrier;

/// Connects to each carrier with its settings and says what came of it. Nothing is sent.
pub(super) async fn run(config: &Config) -> anyhow::Result<()> {
    let carriers = config.carriers();
    let mut failed = 0;
    // Standard output has the values in effect.
    for carrier in &carriers {
        let begun = Instant::now();
        let what = match carrier {
            Carrier::Simulator(_) => "needs no connection".to_owned(),
            Carrier::Smpp(_) | Carrier::Upstream(_) | Carrier::Http(_) => {
                match connect(config, carrier).await {
                    Ok(()) => format!("works ({} ms)", begun.elapsed().as_millis()),
                    Err(error) => {
                        failed += 1;
                        format!("failed: {error:#}")
                    }
                }
            }
        };
        eprintln!("carrier '{}' ({}): {what}", carrier.name(), carrier.kind());
    }
    ensure!(
        failed == 0,
        "{failed} of {} carriers cannot be reached with these settings",
        carriers.len()
    );
    Ok(())
}

async fn connect(config: &Config, carrier: &Carrier) -> anyhow::Result<()> {
    let connected = match carrier {
        Carrier::Simulator(_) => Ok(()),
        Carrier::Smpp(carrier) => SmppCarrier::try_connection(&smpp_settings(carrier)?).await,
        Carrier::Upstream(carrier) => {
            let base_url = config.base_url(config.server.listen);
            Upstream::try_connection(&carrier.settings(&base_url)?).await
        }
        Carrier::Http(carrier) => {
            let base_url = config.base_url(config.server.listen);
            // Nothing is sent, so nothing has to be proven.
            HttpCarrier::try_connection(&carrier.settings(&base_url, Vec::new())?).await
        }
    };
    connected.map_err(anyhow::Error::msg)
}
