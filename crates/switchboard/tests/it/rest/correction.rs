//! Number correction over the API. The tests of `numbering` compare the corrections themselves with Google's.

use std::thread;

use serde_json::{Value, json};
use testkit::Backend;
use testkit::http::Response;

use super::service::{Service, message};

fn correct(service: &Service, items: &Value) -> Response {
    let body = items.to_string();
    service.call_as(&service.token, "POST", "/numberCorrection", body.as_bytes())
}

#[test]
fn answers_are_in_the_order_of_the_items() {
    let service = Service::start(Backend::Sqlite);
    let good = |number, kind, country, e164| json!({"Error": null, "Number": number, "NumberType": kind, "CountryIso": country, "Mobile": kind == "mobile", "NumberE164": e164});
    let cases = [
        (
            json!({"Number": "29 100 000", "CountryIso": "LV"}),
            good("29 100 000", "mobile", json!("LV"), "+37129100000"),
        ),
        (
            json!({"Number": "67000000", "country": "lv"}),
            good("67000000", "landline", json!("LV"), "+37167000000"),
        ),
        (
            json!({"Number": 37_129_100_000_u64}),
            good("37129100000", "mobile", json!("LV"), "+37129100000"),
        ),
        (
            json!({"Number": "+12125550123", "CountryIso": null}),
            good("+12125550123", "unknown", json!("US"), "+12125550123"),
        ),
        (
            json!({"Number": "+80012345678", "CountryIso": "DE"}),
            good("+80012345678", "unknown", Value::Null, "+80012345678"),
        ),
    ];
    let items: Vec<Value> = cases.iter().map(|(item, _)| item.clone()).collect();
    let expected: Vec<Value> = cases.into_iter().map(|(_, expected)| expected).collect();
    let response = correct(&service, &json!(items));
    assert_eq!(response.status, 200, "{}", response.text());
    assert_eq!(response.json(), json!(expected));
    let body = json!(items).to_string();
    for headers in [&[][..], &[("Content-Type", "application/json")]] {
        let mut all = vec![("X-Service-Token", service.token.as_str())];
        all.extend_from_slice(headers);
        let get = service.raw("GET", "/numberCorrection", &all, body.as_bytes());
        assert_eq!(
            get.body,
            response.body,
            "GET with a body works, too: {}",
            get.text()
        );
    }
    assert_eq!(correct(&service, &json!([])).json(), json!([]));
}

#[test]
fn a_bad_item_does_not_affect_the_others() {
    let service = Service::start(Backend::Sqlite);
    let items = json!([
        {"Number": "29100000", "CountryIso": "XX"},
        {"Number": "12", "CountryIso": "LV"},
        {"Number": "abc", "CountryIso": "LV"},
        {"CountryIso": "LV"},
        {"Number": ["1"], "CountryIso": "LV"},
        {"Number": "29100000", "CountryIso": 7},
        "29100000",
        null,
        {"Number": "29100000", "CountryIso": "LV"},
    ]);
    let answer = correct(&service, &items).json();
    let answer = answer.as_array().expect("a list");
    assert_eq!(answer.len(), 9);
    let (last, bad) = answer.split_last().expect("the last");
    for item in bad {
        let error = item["Error"]
            .as_str()
            .unwrap_or_else(|| panic!("no error: {item}"));
        assert!(error.ends_with('.') && error.len() > 10, "{item}");
        assert_eq!(
            (&item["NumberE164"], &item["Mobile"], &item["NumberType"]),
            (&Value::Null, &json!(false), &json!("unknown"))
        );
    }
    assert_eq!(last["NumberE164"], "+37129100000");
    for (body, words) in [
        ("{}", "give a JSON array"),
        ("[", "not valid JSON"),
        ("[{\"Number\":1,\"Number\":2}]", "appears twice"),
    ] {
        let response =
            service.call_as(&service.token, "POST", "/numberCorrection", body.as_bytes());
        assert_eq!(response.status, 400, "{body}");
        assert!(message(&response).contains(words), "{}", response.text());
    }
}

/// Ten thousand numbers are accepted, one more is not. Other requests are answered meanwhile.
#[test]
fn many_numbers_do_not_delay_other_requests() {
    let service = Service::start(Backend::Sqlite);
    let items = |count: usize| {
        let item = |number: usize| json!({"Number": format!("29{number:06}"), "CountryIso": "LV"});
        json!((0..count).map(item).collect::<Vec<Value>>())
    };
    let most = items(10_000);
    thread::scope(|scope| {
        let busy: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| correct(&service, &most)))
            .collect();
        while !busy.iter().all(thread::ScopedJoinHandle::is_finished) {
            assert_eq!(service.get("/token").status, 200);
        }
        for answer in busy {
            let answer = answer.join().expect("it does not panic").json();
            let answer = answer.as_array().expect("a list").clone();
            assert_eq!(answer.len(), 10_000);
            assert_eq!(answer[9_999]["NumberE164"], "+37129009999");
        }
    });
    let response = correct(&service, &items(10_001));
    assert_eq!(response.status, 400);
    assert!(
        message(&response).contains("10001 items"),
        "{}",
        response.text()
    );
}
