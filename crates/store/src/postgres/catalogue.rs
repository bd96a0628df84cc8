//! What is imported as a whole.

use async_trait::async_trait;
use domain::Timestamp;
use domain::ports::{Catalogue, CatalogueEntry, CatalogueKind, CatalogueStore, StoreError};
use tokio_postgres::Row;

use super::{PostgresStore, column};
use crate::rows::billing::CatalogueColumns;
use crate::rows::{Corrupt, micros};

const LIST_NEWEST: &str = "
    SELECT DISTINCT ON (kind, account_id) kind, account_id, version, at_us, row_count FROM catalogue
    ORDER BY kind, account_id, version DESC";
const LIST_VERSIONS: &str = "
    SELECT kind, account_id, version, at_us, row_count FROM catalogue WHERE kind = $1 AND account_id = $2
    ORDER BY version DESC";
const FIND: &str = "
    SELECT kind, account_id, version, at_us, row_count, content FROM catalogue
    WHERE kind = $1 AND account_id = $2 AND version = $3";
/// Of two that import at once, the second finds its number taken.
const IMPORT: &str = "
    INSERT INTO catalogue (kind, account_id, version, at_us, row_count, content)
    SELECT $1::smallint, $2::bigint, $3::bigint + 1, $4::bigint, $5::bigint, $6::text
    WHERE $3::bigint = (SELECT coalesce(max(version), 0) FROM catalogue WHERE kind = $1 AND account_id = $2)
    ON CONFLICT DO NOTHING RETURNING version";

#[async_trait]
impl CatalogueStore for PostgresStore {
    async fn list_newest(&self) -> Result<Vec<CatalogueEntry>, StoreError> {
        let read = |row: &Row| columns(row)?.known_entry();
        let newest = self.list("list catalogues", LIST_NEWEST, &[], read).await?;
        Ok(newest.into_iter().flatten().collect())
    }

    async fn list_versions(&self, kind: CatalogueKind) -> Result<Vec<CatalogueEntry>, StoreError> {
        let (kind, account) = kind.numbers();
        let operation = "list the versions of a catalogue";
        self.list(operation, LIST_VERSIONS, &[&kind, &account], entry)
            .await
    }

    async fn find_catalogue(
        &self,
        kind: CatalogueKind,
        version: u32,
    ) -> Result<Option<Catalogue>, StoreError> {
        let (kind, account) = kind.numbers();
        let read = |row: &Row| {
            Ok(Catalogue {
                entry: entry(row)?,
                content: column(row, 5)?,
            })
        };
        let values: super::Values<'_> = &[&kind, &account, &i64::from(version)];
        self.find("find a catalogue", FIND, values, read).await
    }

    async fn import(
        &self,
        kind: CatalogueKind,
        previous: u32,
        content: &str,
        rows: u32,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let (kind, account) = kind.numbers();
        let (previous, at_us, rows) = (i64::from(previous), micros(now), i64::from(rows));
        let values: super::Values<'_> = &[&kind, &account, &previous, &at_us, &rows, &content];
        let imported = self.query("import a catalogue", IMPORT, values).await?;
        Ok(!imported.is_empty())
    }
}

fn entry(row: &Row) -> Result<CatalogueEntry, Corrupt> {
    columns(row)?.entry()
}

fn columns(row: &Row) -> Result<CatalogueColumns, Corrupt> {
    Ok(CatalogueColumns {
        kind: column(row, 0)?,
        account_id: column(row, 1)?,
        version: column(row, 2)?,
        at_us: column(row, 3)?,
        row_count: column(row, 4)?,
    })
}
