//! Ports that no node uses in a simulation.

use async_trait::async_trait;
use domain::access::token::TokenHash;
use domain::ids::{AuditId, TokenId};
use domain::ports::{
    AccessStore, AccountRecord, AuditEntry, AuditFilter, AuditStore, Catalogue, CatalogueEntry,
    CatalogueKind, CatalogueStore, Change, Cursor, NewAccount, NewToken, Page, StoreError,
    TokenInput, TokenRecord,
};
use domain::{Access, AccountId, Timestamp};

/// Has no catalogues; every other call fails.
pub(super) struct Unused;

fn unused() -> StoreError {
    StoreError::Unexpected {
        operation: "nothing that is simulated",
        source: "not part of the simulation".into(),
    }
}

#[async_trait]
impl CatalogueStore for Unused {
    async fn list_newest(&self) -> Result<Vec<CatalogueEntry>, StoreError> {
        Ok(Vec::new())
    }

    async fn list_versions(&self, _: CatalogueKind) -> Result<Vec<CatalogueEntry>, StoreError> {
        Err(unused())
    }

    async fn find_catalogue(
        &self,
        _: CatalogueKind,
        _: u32,
    ) -> Result<Option<Catalogue>, StoreError> {
        Err(unused())
    }

    async fn import(
        &self,
        _: CatalogueKind,
        _: u32,
        _: &str,
        _: u32,
        _: Timestamp,
    ) -> Result<bool, StoreError> {
        Err(unused())
    }
}

#[async_trait]
impl AuditStore for Unused {
    async fn record_change(&self, _: &Change) -> Result<AuditId, StoreError> {
        Err(unused())
    }

    async fn search_changes(
        &self,
        _: &AuditFilter,
        _: Cursor<AuditId>,
    ) -> Result<Page<AuditEntry, AuditId>, StoreError> {
        Err(unused())
    }
}

#[async_trait]
impl AccessStore for Unused {
    async fn access_version(&self) -> Result<u64, StoreError> {
        Err(unused())
    }

    async fn find_access(&self, _: &TokenHash) -> Result<Option<Access>, StoreError> {
        Err(unused())
    }

    async fn create_account(&self, _: &NewAccount) -> Result<Option<AccountId>, StoreError> {
        Err(unused())
    }

    async fn find_account(&self, _: &str) -> Result<Option<AccountRecord>, StoreError> {
        Err(unused())
    }

    async fn find_account_by_id(&self, _: AccountId) -> Result<Option<AccountRecord>, StoreError> {
        Err(unused())
    }

    async fn list_accounts(&self) -> Result<Vec<AccountRecord>, StoreError> {
        Err(unused())
    }

    async fn search_accounts(
        &self,
        _: Option<&str>,
        _: Cursor<AccountId>,
    ) -> Result<Page<AccountRecord, AccountId>, StoreError> {
        Err(unused())
    }

    async fn list_account_names(
        &self,
        _: &[AccountId],
    ) -> Result<Vec<(AccountId, String)>, StoreError> {
        Err(unused())
    }

    async fn set_suspended(&self, _: &str, _: bool) -> Result<bool, StoreError> {
        Err(unused())
    }

    async fn create_token(&self, _: &NewToken) -> Result<TokenId, StoreError> {
        Err(unused())
    }

    async fn list_tokens(&self, _: Option<AccountId>) -> Result<Vec<TokenRecord>, StoreError> {
        Err(unused())
    }

    async fn change_token(
        &self,
        _: AccountId,
        _: TokenId,
        _: &TokenInput,
    ) -> Result<bool, StoreError> {
        Err(unused())
    }

    async fn replace_token(
        &self,
        _: TokenId,
        _: Option<Timestamp>,
        _: &NewToken,
    ) -> Result<Option<TokenId>, StoreError> {
        Err(unused())
    }

    async fn revoke_token(
        &self,
        _: Option<AccountId>,
        _: TokenId,
        _: Timestamp,
    ) -> Result<bool, StoreError> {
        Err(unused())
    }

    async fn record_token_use(&self, _: &[(TokenHash, Timestamp)]) -> Result<(), StoreError> {
        Err(unused())
    }
}
