//! `switchboard smsc`

use std::sync::Arc;
use std::time::Duration;

use domain::Clock as _;
use engine::clock::SystemClock;
use outbound::smsc::{ArrivedMessage, Ids, Observer};
use outbound::{Smsc, SmscSettings};

use super::TIME;
use crate::cli::{IdFormat, SmscArgs};
use crate::config::{Config, Traces};
use crate::{serve, telemetry};

/// Serves SMPP until it is interrupted.
pub(super) async fn run(config: &Config, args: SmscArgs) -> anyhow::Result<()> {
    telemetry::start_logs(&config.log, &Traces::default())?;
    let settings = SmscSettings {
        delay: Duration::from_millis(args.delay_ms),
        credentials: args.system_id.zip(args.password),
        most_per_second: args.max_per_second,
        ids: match args.ids {
            IdFormat::Decimal => Ids::Decimal,
            IdFormat::Hex => Ids::Hex,
            IdFormat::HexThenDecimal => Ids::HexThenDecimal,
        },
    };
    let observer: Option<Observer> = (!args.quiet).then(|| Arc::new(print) as Observer);
    let stop = serve::stop_signal()?;
    let listener = serve::bind(args.listen)?;
    println!("SMSC listening on smpp://{}", listener.local_addr()?);
    tokio::select! {
        () = Smsc::new(settings, Arc::new(SystemClock), observer).serve(listener) => {}
        () = stop => {}
    }
    Ok(())
}

fn print(arrived: ArrivedMessage) {
    let ArrivedMessage {
        from,
        to,
        text,
        part,
    } = arrived;
    let part = part.map_or_else(String::new, |(part, of)| format!(" ({part}/{of})"));
    let at = SystemClock.now().strftime(TIME);
    println!("{at}  {from} → {to}{part}\n  {text}");
}
