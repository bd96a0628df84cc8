//! Operators, networks and prefixes, as the contract shows them.

use serde_json::{Value, json};
use testkit::Backend;

use super::service::{Service, message};

fn list(service: &Service, path: &str) -> Vec<Value> {
    let response = service.get(path);
    assert_eq!(response.status, 200, "{path}: {}", response.text());
    response.json().as_array().expect("a list").clone()
}

#[test]
fn networks_lead_to_operators() {
    let service = Service::start(Backend::Sqlite);
    for (country, mcc, mnc, name) in [
        ("LV", 247, "01", "LMT"),
        ("ua", 255, "01", "Vodafone"),
        ("DE", 262, "01", "Telekom"),
        ("US", 310, "260", "T-Mobile"),
        ("pL", 260, "02", "T-Mobile"),
    ] {
        let networks: Vec<Value> = (1..)
            .map(|page| list(&service, &format!("/mccmnc/{country}?Page={page}")))
            .take_while(|page| !page.is_empty())
            .flatten()
            .collect();
        let found = networks
            .iter()
            .find(|one| one["MCC"] == mcc && one["MNC"] == mnc);
        let found = found.unwrap_or_else(|| panic!("{country} {mcc}-{mnc}"));
        assert_eq!(found["country"], country.to_uppercase());
        let id = &found["operatorId"];
        let operator = service.get(&format!("/operators/{id}")).json();
        assert_eq!(
            (&operator["name"], &operator["country"]),
            (&json!(name), &json!(country.to_uppercase()))
        );
        assert_eq!(operator["mcc"], mcc, "{operator}");
        assert!(
            operator["mnc"]
                .as_array()
                .expect("a list")
                .contains(&json!(mnc)),
            "{operator}"
        );
    }
}

#[test]
fn answers_follow_the_contract() {
    let service = Service::start(Backend::Sqlite);
    let network = &list(&service, "/mccmnc/LV")[0];
    let operator = network["operatorId"].as_u64().expect("a number");
    assert_eq!(
        *network,
        json!({"country": "LV", "MCC": 247, "MNC": "01", "operatorId": operator})
    );
    let prefixes = list(&service, "/prefixes/LV/");
    let lmt = prefixes
        .iter()
        .find(|one| one["prefix"] == 371_291)
        .expect("a prefix of LMT");
    assert_eq!(
        *lmt,
        json!({"prefix": 371_291, "country": "LV", "operatorId": operator})
    );
    let sorted = |one: &[Value]| one[0]["prefix"].as_u64() < one[1]["prefix"].as_u64();
    assert!(prefixes.windows(2).all(sorted), "ascending");
    let described = service.get(&format!("/operators/{operator}")).json();
    assert_eq!(
        described,
        json!({"name": "LMT", "country": "LV", "mcc": 247, "mnc": ["01", "10"]})
    );
}

#[test]
fn pages_have_100_items_and_the_last_is_empty() {
    let service = Service::start(Backend::Sqlite);
    let first = service.get("/mccmnc/US");
    let total: usize = first
        .header("x-total-count")
        .expect("a total")
        .parse()
        .expect("a number");
    assert!(total > 200, "{total}");
    let mut items = Vec::new();
    for page in 1..=total.div_ceil(100) + 1 {
        let response = service.get(&format!("/mccmnc/US?Page={page}"));
        assert_eq!(response.header("x-total-count"), Some(&*total.to_string()));
        let page = response.json().as_array().expect("a list").clone();
        assert!(page.len() <= 100);
        items.extend(page);
    }
    assert_eq!(items.len(), total);
    assert_eq!(list(&service, "/mccmnc/US?page=2"), items[100..200]);
    assert_eq!(
        list(&service, "/mccmnc/US?Page=99999999999999999999"),
        [] as [Value; 0]
    );
    assert_eq!(
        list(&service, "/mccmnc/AQ"),
        [] as [Value; 0],
        "a country without networks"
    );
    let order = |one: &Value| {
        (
            one["MCC"].as_u64(),
            one["MNC"].as_str().map(str::to_owned),
            one["operatorId"].as_u64(),
        )
    };
    assert!(
        items
            .windows(2)
            .all(|pair| order(&pair[0]) < order(&pair[1])),
        "by MCC, MNC, operator"
    );
    for page in ["0", "-1", "x", "", "1.5"] {
        let response = service.get(&format!("/mccmnc/LV?Page={page}"));
        assert_eq!(response.status, 400, "{page}");
        assert!(message(&response).contains("'Page'"), "{}", response.text());
    }
}

#[test]
fn unknown_ids_and_countries_are_not_found() {
    let service = Service::start(Backend::Sqlite);
    for path in [
        "/operators/0",
        "/operators/99999999",
        "/operators/99999999999999999999",
        "/operators/x",
        "/operators/-1",
        "/operators/%FF",
        "/mccmnc/XX",
        "/mccmnc/LVA",
        "/prefixes/ZZ",
        "/prefixes/%FF",
    ] {
        assert_eq!(service.get(path).status, 404, "{path}");
    }
}

#[test]
fn an_unchanged_answer_is_304() {
    let service = Service::start(Backend::Sqlite);
    for path in [
        "/operators/1",
        "/mccmnc/LV",
        "/prefixes/LV",
        "/rates/",
        "/rates/?format=csv",
    ] {
        let first = service.get(path);
        let tag = first
            .header("etag")
            .unwrap_or_else(|| panic!("no ETag: {path}"))
            .to_owned();
        let again = service.call_with(&service.token, "GET", path, &[("If-None-Match", &tag)], b"");
        assert_eq!((again.status, again.body.len()), (304, 0), "{path}");
        assert_eq!(again.header("etag"), Some(&*tag), "{path}");
        let other = service.call_with(
            &service.token,
            "GET",
            path,
            &[("If-None-Match", "\"x\"")],
            b"",
        );
        assert_eq!((other.status, &other.body), (200, &first.body), "{path}");
        let head = service.call_as(&service.token, "HEAD", path, b"");
        assert_eq!(
            (head.status, head.header("etag")),
            (200, Some(&*tag)),
            "{path}"
        );
    }
}
