//! The menu: every page has a name of its own.

use std::collections::BTreeMap;

use testkit::Backend;

use crate::people::joined;
use crate::rest::service::Service;

fn between<'t>(text: &'t str, start: &str, end: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(start)?;
    Some(rest.split_once(end)?.0)
}

#[test]
fn no_two_pages_of_the_menu_have_the_same_title() {
    let service = Service::start(Backend::Sqlite);
    let more = ["--role", "operator", "--account", "main"];
    let mut browser = joined(&service, "op@example.com", &more);
    let overview = browser.get("/dashboard").text();
    let menu = between(&overview, "<nav", "</nav>").expect("a menu");
    let links: Vec<&str> = menu
        .split("<a href=\"")
        .skip(1)
        .filter_map(|link| link.split('"').next())
        .collect();
    assert!(links.len() > 35, "{links:?}");
    let mut pages = BTreeMap::new();
    for link in links {
        let page = browser.get(link);
        assert_eq!(page.status, 200, "{link}");
        let title = between(&page.text(), "<title>", "</title>").map(str::to_owned);
        let title = title.unwrap_or_else(|| panic!("no title: {link}"));
        if let Some(other) = pages.insert(title.clone(), link) {
            panic!("{link} and {other} are both called {title}");
        }
    }
}
