//! Catalogues: versions, history, two importers at once.

use std::sync::Arc;

use domain::Channel;
use domain::billing::Priced;
use domain::ports::{CatalogueEntry, CatalogueKind, Store};

use super::sample::{account, at};

on_both_stores!(
    every_import_is_stored_as_a_version,
    one_of_two_concurrent_imports_is_refused,
);

const RATES: CatalogueKind = CatalogueKind::Rates(Priced::Channel(Channel::Sms));

async fn import(store: &Arc<dyn Store>, kind: CatalogueKind, previous: u32, content: &str) -> bool {
    let second = i64::from(previous) + 1;
    let imported = store.import(kind, previous, content, 7, at(second)).await;
    imported.expect("the store answers")
}

fn entry(kind: CatalogueKind, version: u32) -> CatalogueEntry {
    CatalogueEntry {
        kind,
        version,
        at: at(version.into()),
        rows: 7,
    }
}

async fn every_import_is_stored_as_a_version(store: Arc<dyn Store>) {
    assert_eq!(store.list_newest().await.expect("answers"), []);
    let of_account = CatalogueKind::AccountRates(Priced::Channel(Channel::Hlr), account(3));
    for (kind, previous, content) in [
        (RATES, 0, "one"),
        (RATES, 1, "two"),
        (of_account, 0, "own"),
        (CatalogueKind::Reference, 0, "data"),
    ] {
        assert!(import(&store, kind, previous, content).await, "{content}");
    }
    let newest = store.list_newest().await.expect("answers");
    let expected = [
        entry(CatalogueKind::Reference, 1),
        entry(RATES, 2),
        entry(of_account, 1),
    ];
    assert_eq!(newest, expected);
    let versions = store.list_versions(RATES).await.expect("answers");
    assert_eq!(versions, [entry(RATES, 2), entry(RATES, 1)]);
    for (version, content) in [(1, Some("one")), (2, Some("two")), (3, None)] {
        let found = store.find_catalogue(RATES, version).await.expect("answers");
        assert_eq!(found.map(|found| found.content).as_deref(), content);
    }
}

async fn one_of_two_concurrent_imports_is_refused(store: Arc<dyn Store>) {
    let (first, second) =
        tokio::join!(import(&store, RATES, 0, "a"), import(&store, RATES, 0, "b"));
    assert!(first != second, "one is stored, the other is refused");
    assert!(!import(&store, RATES, 0, "c").await);
    assert!(!import(&store, RATES, 5, "d").await);
    assert!(import(&store, RATES, 1, "e").await);
}
