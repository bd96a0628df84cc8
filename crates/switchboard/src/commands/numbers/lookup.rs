//! `switchboard numbers lookup`

use anyhow::ensure;
use domain::{AccountId, Channel, Money, Network};
use engine::catalogue::CatalogueSnapshot;
use numbering::Corrected;
use numbering::reference::{Location, Operator};
use serde_json::{Value, json};

use crate::cli::LookupArgs;
use crate::commands::{account_id, catalogues, print_json, rates, store};
use crate::config::Config;

struct NumberDetail {
    number: Corrected,
    location: Location,
    operator: Option<(u32, String)>,
    price: Option<Money>,
}

pub(in crate::commands) async fn lookup(config: &Config, args: LookupArgs) -> anyhow::Result<()> {
    let store = store(config).await?;
    let account = account_id(&store, args.account.as_deref()).await?;
    let catalogues = catalogues(store).await?;
    rates::warn_of_demonstration(&catalogues, Channel::Sms.into());
    let live = catalogues.live();
    let examined: Vec<_> = args
        .numbers
        .iter()
        .map(|raw| {
            let corrected = numbering::examine(raw, args.country);
            (raw, corrected.map(|number| find(&live, account, number)))
        })
        .collect();
    if args.output.json {
        let shown = examined.iter().map(|(raw, found)| match found {
            Ok(found) => as_json(raw, found),
            Err(error) => json!({ "number": raw, "error": error.to_string() }),
        });
        print_json(&shown.collect());
    } else {
        print_header(&config.billing.currency);
        examined
            .iter()
            .flat_map(|(_, found)| found)
            .for_each(print_row);
        for error in examined
            .iter()
            .filter_map(|(_, found)| found.as_ref().err())
        {
            eprintln!("{error}");
        }
    }
    let wrong = examined.iter().filter(|(_, found)| found.is_err()).count();
    ensure!(wrong == 0, "{wrong} of {} are no numbers", examined.len());
    Ok(())
}

fn find(live: &CatalogueSnapshot, account: Option<AccountId>, number: Corrected) -> NumberDetail {
    let location = live.reference.locate(&number.number);
    let operator = location.operator.and_then(|id| live.reference.operator(id));
    let named = |operator: &Operator| (operator.id.get(), operator.name.to_string());
    let prices = live.prices(Channel::Sms);
    let price = match account {
        Some(account) => prices.price(account, &location),
        None => prices.list.price(&location),
    };
    NumberDetail {
        number,
        location,
        operator: operator.map(named),
        price,
    }
}

impl NumberDetail {
    fn country(&self) -> Option<domain::Country> {
        self.number.country.or(self.location.country)
    }
}

fn as_json(raw: &str, found: &NumberDetail) -> Value {
    let operator = found.operator.as_ref();
    json!({
        "number": raw,
        "numberE164": found.number.number.to_string(),
        "type": found.number.kind.name(),
        "country": found.country().as_ref().map(domain::Country::as_str),
        "operatorId": operator.map(|(id, _)| id),
        "operator": operator.map(|(_, name)| name),
        "mcc": found.location.network.map(Network::mcc),
        "mnc": found.location.network.map(Network::mnc),
        "price": found.price.map(|price| price.to_string()),
        "error": null,
    })
}

fn print_header(currency: &str) {
    println!(
        "{:<16}  {:<8}  {:<7}  {:<7}  {:>9}  {:>11}  OPERATOR",
        "NUMBER",
        "TYPE",
        "COUNTRY",
        "MCC-MNC",
        format!("PRICE {currency}"),
        "OPERATOR ID"
    );
}

fn print_row(found: &NumberDetail) {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let network = found.location.network;
    let network = network.map(|network| format!("{:03}-{}", network.mcc(), network.mnc()));
    let (id, name) = found.operator.clone().unzip();
    println!(
        "{:<16}  {:<8}  {:<7}  {:<7}  {:>9}  {:>11}  {}",
        found.number.number.to_string(),
        found.number.kind.name(),
        or_dash(found.country().map(|country| country.to_string())),
        or_dash(network),
        or_dash(found.price.map(|price| price.to_string())),
        or_dash(id.map(|id| id.to_string())),
        or_dash(name)
    );
}
