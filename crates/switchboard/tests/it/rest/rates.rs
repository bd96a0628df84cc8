//! The price list, in both formats.

use serde_json::json;
use testkit::Backend;

use super::service::{Service, message};

#[test]
fn the_list_follows_the_contract_in_both_formats() {
    let service = Service::start(Backend::Sqlite);
    let response = service.get("/rates/");
    assert_eq!(response.header("x-demonstration-prices"), Some("true"));
    assert_eq!(response.header("content-type"), Some("application/json"));
    let rates = response.json();
    let rates = rates.as_array().expect("a list");
    assert!(rates.len() > 1000, "{}", rates.len());
    let lmt = rates
        .iter()
        .find(|row| row["CountryCode"] == "LV" && row["MNC"] == "01")
        .expect("LMT");
    let price = lmt["Rate"].as_str().expect("a string");
    assert_eq!(
        *lmt,
        json!({"CountryName": "Latvia", "CountryCode": "LV", "Operator": "LMT", "Network": "LMT", "MCC": 247, "MNC": "01", "Rate": price})
    );
    let csv = service.get("/rates?format=csv");
    assert_eq!(csv.header("content-type"), Some("text/csv; charset=utf-8"));
    let text = csv.text();
    let mut lines = text.split("\r\n");
    assert_eq!(
        lines.next(),
        Some("CountryName,CountryCode,Operator,Network,MCC,MNC,Rate")
    );
    assert_eq!(lines.filter(|line| !line.is_empty()).count(), rates.len());
    assert!(text.contains(&format!("\r\nLatvia,LV,LMT,LMT,247,01,{price}\r\n")));
    assert_eq!(service.get("/rates/?format=json").body, response.body);
    let unknown = service.get("/rates/?format=xml");
    assert_eq!(unknown.status, 400);
    assert!(message(&unknown).contains("'xml'"), "{}", unknown.text());
}

#[test]
fn each_channel_has_its_list() {
    let service = Service::start(Backend::Sqlite);
    let csv = "CountryName,CountryCode,Operator,Network,MCC,MNC,Rate\r\nLatvia,LV,All,All,247,,0.0123\r\n";
    let file = service.server.data_dir().join("viber.csv");
    std::fs::write(&file, csv).expect("a file");
    let file = file.to_str().expect("a path");
    let import = ["rates", "import", file, "--channel", "viber"];
    assert!(service.server.cli(&import).status.success());
    let row = json!([{"CountryName": "Latvia", "CountryCode": "LV", "Operator": "All", "Network": "All", "MCC": 247, "MNC": null, "Rate": "0.0123"}]);
    super::service::wait_for("the list is in force", || {
        (service.get("/rates/?channel=viber").json() == row).then_some(())
    });
    let text = service.get("/rates/?channel=viber&format=csv").text();
    assert!(text.contains("Latvia,LV,All,All,247,,0.0123"), "{text}");
    let sms = service.get("/rates/").body;
    assert_eq!(service.get("/rates/?channel=sms").body, sms);
    let lookups = service.get("/rates/?channel=hlr");
    assert_eq!(lookups.status, 200);
    assert_ne!(lookups.body, sms, "lookups have prices of their own");
    let unknown = service.get("/rates/?channel=pigeon");
    assert_eq!(unknown.status, 400);
    assert!(message(&unknown).contains("'pigeon'"), "{}", unknown.text());
}
