//! Price lists as tables.

use std::collections::HashMap;
use std::sync::LazyLock;

use domain::Msisdn;
use proptest::prelude::*;

use super::*;

static REFERENCE: LazyLock<Reference> = LazyLock::new(Reference::embedded);

const HEADER: &str = "CountryName,CountryCode,Operator,Network,MCC,MNC,Rate\n";

fn read(rows: &str) -> Result<PriceList, Vec<PriceProblem>> {
    PriceList::read(&format!("{HEADER}{rows}"), Format::Csv, &REFERENCE)
}

fn location(number: &str) -> Location {
    REFERENCE.locate(&Msisdn::parse(number).expect(number))
}

/// A number of LMT, one of another Latvian operator, one that is no mobile number, one elsewhere.
const LMT: &str = "+37129100000";
const TELE2: &str = "+37129500000";
const RIGA: &str = "+37167000000";
const GERMANY: &str = "+4915112345678";

#[test]
fn the_nearest_price_counts() {
    let all = [
        "Latvia,LV,LMT,LMT,247,01,0.01\n",
        "Latvia,LV,LMT,All,247,,0.02\n",
        "Latvia,LV,Default,Default,247,,0.03\n",
        ",,Default,Default,,,0.04\n",
    ];
    // Without its first rows the list says less and less about the number.
    for (from, number, price) in [
        (0, LMT, Some("0.01")),
        (1, LMT, Some("0.02")),
        (2, LMT, Some("0.03")),
        (3, LMT, Some("0.04")),
        (4, LMT, None),
        (0, TELE2, Some("0.03")),
        (0, RIGA, Some("0.03")),
        (0, GERMANY, Some("0.04")),
    ] {
        let list = read(&all[from..].concat()).expect("valid");
        let found = list.price(&location(number)).map(|price| price.to_string());
        assert_eq!(found.as_deref(), price, "{number} from row {from}");
    }
}

#[test]
fn an_accounts_own_price_wins() {
    let list = read(
        "Latvia,LV,LMT,LMT,247,01,0.01\nLatvia,LV,All other carriers,All other carriers,247,,0.03\n",
    );
    let own = read("Latvia,LV,All,All,247,,0.02\n");
    let (acme, other) = (
        AccountId::new(1).expect("an ID"),
        AccountId::new(2).expect("an ID"),
    );
    let prices = Prices {
        list: Arc::new(list.expect("valid")),
        of_account: HashMap::from([(acme, Arc::new(own.expect("valid")))]),
        is_demonstration: false,
    };
    for (account, number, price) in [
        (acme, LMT, "0.02"),
        (other, LMT, "0.01"),
        (acme, RIGA, "0.02"),
        (other, RIGA, "0.03"),
    ] {
        let found = prices
            .price(account, &location(number))
            .map(|price| price.to_string());
        assert_eq!(found.as_deref(), Some(price), "{account} {number}");
    }
    let rates = |account| -> Vec<String> {
        let list = prices.list_of(account);
        list.rows()
            .iter()
            .map(|row| format!("{} {}", row.operator, row.rate))
            .collect()
    };
    assert_eq!(rates(other), ["LMT 0.01", "All other carriers 0.03"]);
    assert_eq!(rates(acme), ["LMT 0.01", "All 0.02"]);
}

#[test]
fn every_problem_is_named_with_its_row() {
    for (row, reason) in [
        ("Latvia,XX,All,All,247,,0.1", "'XX' is not an ISO 3166-1"),
        ("Latvia,LV,All,All,24,,0.1", "'24' is not three digits"),
        ("Latvia,LV,All,All,2４7,,0.1", "is not three digits"),
        (
            "Latvia,LV,LMT,LMT,247,1,0.1",
            "'1' is not two or three digits",
        ),
        ("Latvia,LV,LMT,LMT,247,01,", "'' is not an amount of money"),
        (
            "Latvia,LV,LMT,LMT,247,01,0.1 EUR",
            "'0.1 EUR' is not an amount",
        ),
        ("Latvia,LV,LMT,LMT,247,01,\"0,1\"", "'0,1' is not an amount"),
        (
            "Latvia,LV,LMT,LMT,247,01,-0.1",
            "-0.10 is not between 0 and",
        ),
        (
            "Latvia,LV,LMT,LMT,247,01,10000.01",
            "is not between 0 and 10000.00",
        ),
        (
            "Latvia,LV,Nobody,Nobody,247,,0.1",
            "'Nobody' is not an operator of LV",
        ),
        ("Latvia,LV,,All,247,,0.1", "must have a name"),
        ("Latvia,,LMT,LMT,247,01,0.1", "CountryCode is empty"),
        ("Estonia,EE,All,All,248,,0.1", "the same price as row 2"),
    ] {
        let rows = format!("Estonia,EE,All,All,248,,0.2\n{row}\n");
        let problems = read(&rows).expect_err(row);
        assert_eq!(read(&rows.replace('\n', "\r\n")).expect_err(row), problems);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert_eq!(problems[0].row, 3, "{row}");
        assert!(
            problems[0].reason.contains(reason),
            "{row}: {}",
            problems[0]
        );
    }
}

#[test]
fn a_list_that_cannot_be_read_is_a_problem() {
    for (text, format, reason) in [
        (
            "Country,Rate\nLV,1\n",
            Format::Csv,
            "the header line must be",
        ),
        ("", Format::Csv, "the header line must be"),
        (
            &format!("{HEADER}LV,1\n"),
            Format::Csv,
            "found record with 2 fields",
        ),
        ("{}", Format::Json, "not an array of objects"),
        (
            "[{\"CountryCode\": [1]}]",
            Format::Json,
            "CountryCode is [1]",
        ),
    ] {
        let problems = PriceList::read(text, format, &REFERENCE).expect_err(text);
        assert!(
            problems[0].reason.contains(reason),
            "{text}: {}",
            problems[0]
        );
    }
}

#[test]
fn a_list_is_written_sorted_and_safe_for_spreadsheets() {
    let list = read(concat!(
        "x,LV,All other carriers,All other carriers,,,0.03\n",
        "x,LV,\"A \"\"B\"\", C\",=SUM(A1),247,05,0.5\n",
        "x,lv,LMT,'+1,247,01,0.0125\n",
        ",,Default,Default,,,1\n",
        "x,EE,All,All,248,,2\n",
        "x,AQ,All,All,,,3\n",
    ));
    let list = list.expect("valid");
    let csv = concat!(
        "CountryName,CountryCode,Operator,Network,MCC,MNC,Rate\r\n",
        "Antarctica,AQ,All,All,,,3.00\r\n",
        "Estonia,EE,All,All,248,,2.00\r\n",
        "Latvia,LV,LMT,'+1,247,01,0.0125\r\n",
        "Latvia,LV,\"A \"\"B\"\", C\",'=SUM(A1),247,05,0.50\r\n",
        "Latvia,LV,All other carriers,All other carriers,247,,0.03\r\n",
        "All other countries,,Default,Default,,,1.00\r\n",
    );
    assert_eq!(list.to_csv(), csv);
    let again = PriceList::read(csv, Format::Csv, &REFERENCE).expect("valid");
    assert_eq!(again.rows(), list.rows());
    let json = list.to_json();
    assert!(json.starts_with(r#"[{"CountryName":"Antarctica","CountryCode":"AQ","Operator":"All","Network":"All","MCC":null,"MNC":null,"Rate":"3.00"},"#), "{json}");
    let again = PriceList::read(&json, Format::Json, &REFERENCE).expect("valid");
    assert_eq!(again.rows(), list.rows());
    assert_eq!(PriceList::default().to_json(), "[]");
}

#[test]
fn a_difference_says_what_changes() {
    let old = read("x,LV,LMT,LMT,247,01,0.01\nx,LV,Tele2,Tele2,247,02,0.02\nx,LV,All,All,,,0.03\n")
        .expect("valid");
    let new = read("x,LV,LMT,LMT,247,01,0.05\nx,LV,All,All,,,0.03\nx,EE,All,All,,,0.04\n")
        .expect("valid");
    let difference = PriceDifference::between(&old, &new).to_string();
    let expected = concat!(
        "1 added, 1 changed, 1 removed, 1 as before\n",
        "  + EE All  0.04\n",
        "  ~ LV 247-01 LMT  0.01 -> 0.05\n",
        "  - LV 247-02 Tele2  0.02\n",
    );
    assert_eq!(difference, expected);
}

#[test]
fn the_demonstration_list_prices_every_country_and_keeps_the_contracts_words() {
    let list = demonstration(Channel::Sms, &REFERENCE);
    for country in Country::all() {
        let rows: Vec<&PriceRow> = list
            .rows()
            .iter()
            .filter(|row| row.country == Some(country))
            .collect();
        let (default, named): (Vec<&PriceRow>, Vec<&PriceRow>) =
            rows.iter().partition(|row| row.mnc.is_none());
        assert_eq!(default.len(), 1, "{country}");
        let word = if named.is_empty() {
            "All"
        } else {
            "All other carriers"
        };
        assert_eq!(
            (default[0].operator.as_str(), default[0].network.as_str()),
            (word, word),
            "{country}"
        );
        assert_eq!(
            default[0].mcc.is_none(),
            REFERENCE.main_mcc(country).is_none(),
            "{country}"
        );
    }
}

#[test]
fn viber_and_lookups_have_a_price_everywhere() {
    for channel in [Channel::Viber, Channel::Hlr] {
        let list = demonstration(channel, &REFERENCE);
        for number in [LMT, RIGA, GERMANY, "+881612345678"] {
            assert!(
                list.price(&location(number)).is_some(),
                "{channel} {number}"
            );
        }
    }
}

proptest! {
    #[test]
    fn any_names_and_prices_round_trip(
        rows in prop::collection::btree_map(0_u16..1000, ("[ -~äß']{1,12}", "[=+@'-]{0,3}[ -~]{1,8}", 0_i64..10_000_000), 0..12),
    ) {
        let keyed = rows.into_iter().map(|(mnc, (operator, network, rate))| {
            let mnc = format!("{mnc:03}");
            let country = Country::parse("US").expect("a country");
            let row = PriceRow {
                country: Some(country),
                operator: format!("x{}x", operator.trim()),
                network: format!("{}x", network.trim()),
                mcc: Some(310),
                mnc: Some(mnc.clone()),
                rate: Money::from_micros(rate),
            };
            (Key::Network(country, Network::new("310", &mnc).expect("a network")), row)
        });
        let list = PriceList::from_rows(keyed.collect());
        for (text, format) in [(list.to_csv(), Format::Csv), (list.to_json(), Format::Json)] {
            let again = PriceList::read(&text, format, &REFERENCE).expect("what was written is valid");
            prop_assert_eq!(again.rows(), list.rows());
        }
    }
}
