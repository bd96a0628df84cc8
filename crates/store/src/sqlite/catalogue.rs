//! The port for catalogues.

use async_trait::async_trait;
use domain::Timestamp;
use domain::ports::{Catalogue, CatalogueEntry, CatalogueKind, CatalogueStore, StoreError};
use rusqlite::{Connection, OptionalExtension, Result, Row, params};

use super::SqliteStore;
use crate::rows::billing::CatalogueColumns;
use crate::rows::encrypted::{read_content, stored_content};
use crate::rows::micros;
use crate::sql::catalogue as sql;

const LIST_NEWEST: &str = "
    SELECT kind, account_id, max(version), at_us, row_count FROM catalogue GROUP BY kind, account_id
    ORDER BY kind, account_id";
const IMPORT: &str = "
    INSERT INTO catalogue (kind, account_id, version, at_us, row_count, content)
    SELECT ?1, ?2, ?3 + 1, ?4, ?5, ?6
    WHERE ?3 = (SELECT coalesce(max(version), 0) FROM catalogue WHERE kind = ?1 AND account_id = ?2)";

#[async_trait]
impl CatalogueStore for SqliteStore {
    async fn list_newest(&self) -> Result<Vec<CatalogueEntry>, StoreError> {
        self.read("list catalogues", list_newest).await
    }

    async fn list_versions(&self, kind: CatalogueKind) -> Result<Vec<CatalogueEntry>, StoreError> {
        self.read("list the versions of a catalogue", move |db| {
            list_versions(db, kind)
        })
        .await
    }

    async fn find_catalogue(
        &self,
        kind: CatalogueKind,
        version: u32,
    ) -> Result<Option<Catalogue>, StoreError> {
        let keys = self.keys.clone();
        self.read("find a catalogue", move |db| {
            let found = find(db, kind, version)?;
            Ok(found.map(|found| read_content(&keys, found)).transpose()?)
        })
        .await
    }

    async fn import(
        &self,
        kind: CatalogueKind,
        previous: u32,
        content: &str,
        rows: u32,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let content = stored_content(&self.keys, kind, previous + 1, content).into_owned();
        self.write("import a catalogue", move |db| {
            import(db, kind, previous, &content, rows, micros(now))
        })
        .await
    }
}

/// The newest version of each catalogue.
fn list_newest(db: &Connection) -> Result<Vec<CatalogueEntry>> {
    let read = |row: &Row<'_>| Ok(CatalogueColumns::read(row)?.known_entry()?);
    let newest: Vec<_> = db
        .prepare_cached(LIST_NEWEST)?
        .query_map([], read)?
        .collect::<Result<_>>()?;
    Ok(newest.into_iter().flatten().collect())
}

/// All versions of a catalogue, the newest first.
fn list_versions(db: &Connection, kind: CatalogueKind) -> Result<Vec<CatalogueEntry>> {
    let (kind, account) = kind.numbers();
    db.prepare_cached(sql::LIST_VERSIONS.sqlite)?
        .query_map(params![kind, account], entry)?
        .collect()
}

fn find(db: &Connection, kind: CatalogueKind, version: u32) -> Result<Option<Catalogue>> {
    let (kind, account) = kind.numbers();
    let read = |row: &Row<'_>| {
        Ok(Catalogue {
            entry: entry(row)?,
            content: row.get(5)?,
        })
    };
    db.prepare_cached(sql::FIND.sqlite)?
        .query_row(params![kind, account, version], read)
        .optional()
}

/// Adds a version, unless somebody else has.
fn import(
    db: &Connection,
    kind: CatalogueKind,
    previous: u32,
    content: &str,
    rows: u32,
    at_us: i64,
) -> Result<bool> {
    let (kind, account) = kind.numbers();
    let values = params![kind, account, previous, at_us, rows, content];
    Ok(db.prepare_cached(IMPORT)?.execute(values)? > 0)
}

fn entry(row: &Row<'_>) -> Result<CatalogueEntry> {
    Ok(CatalogueColumns::read(row)?.entry()?)
}
