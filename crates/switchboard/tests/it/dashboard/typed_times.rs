//! Times that are typed in forms: in the reader's time zone, or in UTC without JavaScript. Labels name the zone.

use domain::Timestamp;
use jiff::SignedDuration;
use serde_json::Value;
use testkit::Backend;
use testkit::chrome::{Chrome, Page};

use super::operator;
use crate::rest::service::{Service, in_seconds, sms};

const SEND: &str = "/dashboard/send";
const MESSAGES: &str = "/dashboard/messages";
/// Forms with times.
const WITH_TIMES: [&str; 5] = [
    SEND,
    MESSAGES,
    "/dashboard/operator/messages",
    "/dashboard/callbacks",
    "/dashboard/inbox",
];
/// Forms with days. Days are counted in UTC.
const WITH_DAYS: [&str; 4] = [
    "/dashboard",
    MESSAGES,
    "/dashboard/operator/traffic",
    "/dashboard/operator/margin",
];

/// A time as a form has it, this many hours east of UTC.
fn typed(at: Timestamp, hours: i64) -> String {
    let local = at + SignedDuration::from_hours(hours);
    local.strftime("%Y-%m-%dT%H:%M").to_string()
}

/// The labels of the fields of this type.
async fn labels(page: &Page, kind: &str) -> Vec<String> {
    let labels = format!(
        "[...document.querySelectorAll('main input[type={kind}]')].map((field) => field.labels[0].textContent.trim())"
    );
    let labels = page.evaluate(&labels).await;
    let labels = labels.as_array().expect("a list").iter();
    let labels = labels.map(|label| label.as_str().expect("a text").to_owned());
    labels.collect()
}

async fn open(service: &Service, page: &Page, path: &str) {
    page.open(&service.server.url(path)).await;
    assert_eq!(page.status(), Some(200), "{path}");
}

/// Every form with times or days names this zone for times, and UTC for days.
async fn check_labels(service: &Service, page: &Page, zone: &str) {
    for (paths, kind, zone) in [
        (&WITH_TIMES[..], "datetime-local", zone),
        (&WITH_DAYS, "date", "(UTC)"),
    ] {
        for path in paths {
            open(service, page, path).await;
            let labels = labels(page, kind).await;
            assert!(!labels.is_empty(), "{path}");
            for label in labels {
                assert!(label.ends_with(zone), "{path}: {label}, not {zone}");
            }
        }
    }
}

#[tokio::test]
async fn labels_name_the_zone_of_times_and_days() {
    let service = Service::start(Backend::Sqlite);
    let chrome = Chrome::start().await;
    let page = operator(&service, &chrome).await;
    page.set_zone("Asia/Tokyo").await;
    check_labels(&service, &page, "(GMT+9)").await;
    open(&service, &page, MESSAGES).await;
    page.wait_for("Times are in your time zone: Asia/Tokyo (GMT+9).")
        .await;

    page.disable_scripts().await;
    check_labels(&service, &page, "(UTC)").await;
    open(&service, &page, MESSAGES).await;
    page.wait_for("Times are in UTC.").await;
    page.assert_no_browser_errors();
}

#[tokio::test]
async fn a_search_reads_times_in_the_readers_zone() {
    let service = Service::start(Backend::Sqlite);
    let id = service.accept(&sms()).remove(0);
    let row = format!("#m{id}");
    let chrome = Chrome::start().await;
    let page = operator(&service, &chrome).await;
    page.set_zone("Asia/Tokyo").await;
    open(&service, &page, MESSAGES).await;
    // Read as UTC, it would be in the future, and nothing would be found.
    let at = in_seconds(-600);
    page.fill("From (GMT+9)", &typed(at, 9)).await;
    page.click("main >> Filter").await;
    let utc = at.strftime("since=%Y-%m-%dT%H%%3A%M").to_string();
    let path = page.path().await;
    assert!(path.contains(&utc), "{path}, not {utc}");
    assert_eq!(page.value("From (GMT+9)").await, typed(at, 9));
    assert_eq!(page.count(&row).await, 1);
    page.fill("Until (GMT+9)", &typed(at, 9)).await;
    page.click("main >> Filter").await;
    page.wait_for("Nothing found.").await;
    assert_eq!(page.count(&row).await, 0);

    // Each label names the zone as it is at the time that is typed.
    page.set_zone("Europe/Riga").await;
    open(&service, &page, MESSAGES).await;
    page.fill("input[name=since]", "2026-01-15T12:00").await;
    page.wait_for("From (GMT+2)").await;
    page.fill("input[name=until]", "2026-07-01T12:00").await;
    page.wait_for("Until (GMT+3)").await;
    page.click("main >> Filter").await;
    let path = page.path().await;
    for utc in ["since=2026-01-15T10%3A00", "until=2026-07-01T09%3A00"] {
        assert!(path.contains(utc), "{path}, not {utc}");
    }
    page.assert_no_browser_errors();
}

/// Sends a scheduled message by the form, and checks the time at which it is due.
async fn schedule(service: &Service, page: &Page, zone: &str, hours: i64) {
    let at = in_seconds(24 * 3600);
    let (field, time) = (format!("Send at ({zone})"), typed(at, hours));
    open(service, page, SEND).await;
    page.click("Time, report, test mode").await;
    page.fill(&field, &time).await;
    page.fill("To", "nobody").await;
    page.click("main >> Send").await;
    assert_eq!(page.status(), Some(422));
    assert_eq!(page.value(&field).await, time, "kept as it was typed");
    page.fill("To", "+37120000001").await;
    page.click("main >> Send").await;
    page.wait_until("location.pathname.startsWith('/dashboard/messages/')")
        .await;
    let due = at.strftime("%Y-%m-%d %H:%M:00").to_string();
    let scheduled = service.scheduled_as(&service.token);
    let scheduled: Vec<&Value> = scheduled.iter().map(|one| &one["scheduled"]).collect();
    assert_eq!(scheduled, [due.as_str()]);
    let id = page.path().await;
    let id = id.rsplit('/').next().expect("an ID");
    assert_eq!(service.delete(&format!("/sms/{id}")).status, 200);
}

#[tokio::test]
async fn a_message_is_scheduled_in_the_readers_zone() {
    let service = Service::start(Backend::Sqlite);
    let chrome = Chrome::start().await;
    let page = operator(&service, &chrome).await;
    page.set_zone("Asia/Tokyo").await;
    open(&service, &page, SEND).await;
    page.click("Time, report, test mode").await;
    page.wait_for("The time is in your time zone (GMT+9)").await;
    schedule(&service, &page, "GMT+9", 9).await;

    page.disable_scripts().await;
    open(&service, &page, SEND).await;
    page.click("Time, report, test mode").await;
    page.wait_for("The time is UTC").await;
    schedule(&service, &page, "UTC", 0).await;
    page.assert_no_browser_errors();
}
