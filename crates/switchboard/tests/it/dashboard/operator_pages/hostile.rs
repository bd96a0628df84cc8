//! Input from people and programs is escaped.

use testkit::Backend;

use super::{operator, post, register};
use crate::rest::service::Service;

const TAG: &str = "<img src=x onerror=alert(1)>";
const SCRIPT: &str = "\"></td></textarea><script>alert(1)</script>";

#[test]
fn hostile_names_notes_and_reasons_are_escaped() {
    let service = Service::start(Backend::Sqlite);
    let mut browser = operator(&service);
    let created = post(
        &mut browser,
        "/dashboard/operator/accounts",
        &[("name", TAG), ("balance", "5")],
    );
    assert_eq!(created.status, 303, "{}", created.text());
    let credit = [
        ("amount", "1"),
        ("note", SCRIPT),
        ("once", "1"),
        ("sure", "yes"),
    ];
    let credited = post(
        &mut browser,
        "/dashboard/operator/accounts/2/credit",
        &credit,
    );
    assert_eq!(credited.status, 303, "{}", credited.text());
    let first = register(&service, "Acme", SCRIPT, None);
    register(&service, "Other", TAG, None);
    let reject = [("decision", "reject"), ("reason", SCRIPT)];
    let path = format!("/dashboard/operator/senders/{first}");
    assert_eq!(post(&mut browser, &path, &reject).status, 303);

    let mut pages = String::new();
    for path in [
        "/dashboard/operator/accounts",
        "/dashboard/operator/accounts?name=%3Cimg",
        "/dashboard/operator/accounts/2",
        "/dashboard/operator/senders",
        "/dashboard/operator/senders?state=rejected",
        "/dashboard/operator/prices?account=%3Cimg+src%3Dx+onerror%3Dalert(1)%3E",
        "/dashboard/operator/prices?search=%22%3E%3Cscript%3Ealert(1)%3C/script%3E",
        "/dashboard/operator/reference?asked=%22%3E%3Cscript%3Ealert(1)%3C/script%3E",
    ] {
        let page = browser.get(path);
        assert_eq!(page.status, 200, "{path}: {}", page.text());
        pages.push_str(&page.text());
    }
    // A refused form is returned with the input.
    for (path, fields) in [
        (
            "/dashboard/operator/accounts",
            vec![("name", ""), ("balance", SCRIPT)],
        ),
        (
            "/dashboard/operator/accounts/1/limits",
            vec![("countries", SCRIPT), ("daily_cap", TAG)],
        ),
        (
            "/dashboard/operator/accounts/1/credit",
            vec![("amount", SCRIPT), ("note", TAG), ("once", "2")],
        ),
        ("/dashboard/operator/prices", vec![("csv", SCRIPT)]),
    ] {
        let page = post(&mut browser, path, &fields);
        assert_eq!(page.status, 422, "{path}: {}", page.text());
        pages.push_str(&page.text());
    }
    let routes = "/dashboard/operator/routes?to=%22%3E%3Cscript%3E&account=%3Cimg";
    pages.push_str(&browser.get(routes).text());
    assert!(!pages.contains("<script>"), "a page contains a script");
    assert!(!pages.contains("<img src=x"), "a page contains a tag");
    assert!(pages.contains("&#60;script&#62;alert(1)") && pages.contains("&#60;img src=x"));
}
