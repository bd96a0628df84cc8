//! The port for catalogues.

use async_trait::async_trait;
use domain::Timestamp;
use domain::ports::{Catalogue, CatalogueEntry, CatalogueKind, CatalogueStore, StoreError};
use tokio_postgres::Row;

use super::{PostgresStore, column};
use crate::rows::billing::CatalogueColumns;
use crate::rows::encrypted::{read_content, stored_content};
use crate::rows::{Corrupt, micros};
use crate::sql::catalogue as sql;

const LIST_NEWEST: &str = "
    SELECT DISTINCT ON (kind, account_id) kind, account_id, version, at_us, row_count FROM catalogue
    ORDER BY kind, account_id, version DESC";
/// If two nodes import at once, the version of the second one already exists.
const IMPORT: &str = "
    INSERT INTO catalogue (kind, account_id, version, at_us, row_count, content)
    SELECT $1::smallint, $2::bigint, $3::bigint + 1, $4::bigint, $5::bigint, $6::text
    WHERE $3::bigint = (SELECT coalesce(max(version), 0) FROM catalogue WHERE kind = $1 AND account_id = $2)
    ON CONFLICT DO NOTHING RETURNING version";

#[async_trait]
impl CatalogueStore for PostgresStore {
    async fn list_newest(&self) -> Result<Vec<CatalogueEntry>, StoreError> {
        let read = |row: &Row| CatalogueColumns::read(row)?.known_entry();
        let newest = self.list("list catalogues", LIST_NEWEST, &[], read).await?;
        Ok(newest.into_iter().flatten().collect())
    }

    async fn list_versions(&self, kind: CatalogueKind) -> Result<Vec<CatalogueEntry>, StoreError> {
        let (kind, account) = kind.numbers();
        let operation = "list the versions of a catalogue";
        self.list(
            operation,
            sql::LIST_VERSIONS.postgres,
            &[&kind, &account],
            entry,
        )
        .await
    }

    async fn find_catalogue(
        &self,
        kind: CatalogueKind,
        version: u32,
    ) -> Result<Option<Catalogue>, StoreError> {
        let (kind, account) = kind.numbers();
        let read = |row: &Row| {
            let found = Catalogue {
                entry: entry(row)?,
                content: column(row, 5)?,
            };
            read_content(&self.keys, found)
        };
        let values: super::Values<'_> = &[&kind, &account, &i64::from(version)];
        self.find("find a catalogue", sql::FIND.postgres, values, read)
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
        let content = stored_content(&self.keys, kind, previous + 1, content);
        let (kind, account) = kind.numbers();
        let (previous, at_us, rows) = (i64::from(previous), micros(now), i64::from(rows));
        let values: super::Values<'_> = &[&kind, &account, &previous, &at_us, &rows, &content];
        let imported = self.query("import a catalogue", IMPORT, values).await?;
        Ok(!imported.is_empty())
    }
}

fn entry(row: &Row) -> Result<CatalogueEntry, Corrupt> {
    CatalogueColumns::read(row)?.entry()
}
