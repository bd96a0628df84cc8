//! Creating, changing, replacing and revoking tokens.

use domain::kill_point::{KillPoint, pass};
use domain::ports::{NewToken, StoreError, TokenInput, TokenRecord};
use domain::{AccountId, AllowList, Timestamp, TokenId, TokenSecret};
use jiff::SignedDuration;

use super::{AccountError, Accounts};
use crate::audit::{self, Action, Actor};
use crate::entropy;

/// A token was replaced.
pub struct RotatedToken {
    /// Of the new token.
    pub secret: TokenSecret,
    /// Until when the old token works; `None` if it is revoked.
    pub old_until: Option<Timestamp>,
}

impl Accounts {
    /// Creates a token. The secret is returned here and stored nowhere.
    pub async fn create_token(
        &self,
        by: &Actor,
        account: AccountId,
        input: TokenInput,
    ) -> Result<(TokenId, TokenSecret), StoreError> {
        let secret = new_secret();
        let token = new_token(account, &secret, input, self.clock.now());
        let (subject, detail) = (format!("token {}", token.name), describe(&token));
        let recorded = self
            .audit
            .record(by, Some(account), Action::TokenCreate, subject, detail)
            .await?;
        let id = recorded.done(self.store.create_token(&token).await).await?;
        Ok((id, secret))
    }

    /// The live tokens of one account, or of all.
    pub async fn list_tokens(
        &self,
        account: Option<AccountId>,
    ) -> Result<Vec<TokenRecord>, StoreError> {
        self.store.list_tokens(account).await
    }

    /// Changes a token of an account; its secret stays. All nodes follow within a second. Tokens of OAuth clients are
    /// not found.
    pub async fn change_token(
        &self,
        by: &Actor,
        account: AccountId,
        id: TokenId,
        input: TokenInput,
    ) -> Result<(), AccountError> {
        let before = self.find_own_token(account, id).await?.input();
        let detail = differences(&before, &input);
        if detail.is_empty() {
            return Ok(());
        }
        let subject = format!("token {id} ({})", before.name);
        let recorded = self
            .audit
            .record(by, Some(account), Action::TokenChange, subject, detail)
            .await?;
        let changed = match self.store.change_token(account, id, &input).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(AccountError::UnknownToken(id)),
            Err(error) => Err(error.into()),
        };
        recorded.done(changed).await
    }

    /// Creates a token like this one, with a new secret and as long a lifetime. The old one works for `grace`, but not
    /// beyond its own expiry; without `grace` it is revoked. Tokens of OAuth clients are not found.
    pub async fn rotate_token(
        &self,
        by: &Actor,
        account: AccountId,
        id: TokenId,
        grace: Option<SignedDuration>,
    ) -> Result<RotatedToken, AccountError> {
        let now = self.clock.now();
        let record = self.find_own_token(account, id).await?;
        let mut input = record.input();
        let until = grace.map(|grace| match input.expires {
            Some(expires) => expires.min(now + grace),
            None => now + grace,
        });
        input.expires = rotated_expiry(&record, now);
        let secret = new_secret();
        let token = new_token(account, &secret, input, now);
        let old = until.map_or_else(
            || "the old one is revoked".to_owned(),
            |until| format!("the old one works until {until}"),
        );
        let (subject, detail) = (
            format!("token {id} ({})", token.name),
            format!("{}; {old}", describe(&token)),
        );
        let recorded = self
            .audit
            .record(by, Some(account), Action::TokenRotate, subject, detail)
            .await?;
        let replaced = match self.store.replace_token(id, until, &token).await {
            Ok(Some(_)) => Ok(RotatedToken {
                secret,
                old_until: until,
            }),
            Ok(None) => Err(AccountError::UnknownToken(id)),
            Err(error) => Err(error.into()),
        };
        recorded.done(replaced).await
    }

    /// Revokes a token of one account, or of any. All nodes refuse it within a second.
    pub async fn revoke_token(
        &self,
        by: &Actor,
        account: Option<AccountId>,
        id: TokenId,
    ) -> Result<(), AccountError> {
        let tokens = self.store.list_tokens(account).await?;
        let token = tokens.into_iter().find(|token| token.id == id);
        let access = token.ok_or(AccountError::UnknownToken(id))?.access;
        let subject = format!("token {id} ({})", access.name);
        let recorded = self
            .audit
            .record(by, Some(access.account), Action::TokenRevoke, subject, "")
            .await?;
        let revoked = match self.store.revoke_token(account, id, self.clock.now()).await {
            Ok(true) => {
                pass(KillPoint::TokenRevoked);
                Ok(())
            }
            Ok(false) => Err(AccountError::UnknownToken(id)),
            Err(error) => Err(error.into()),
        };
        recorded.done(revoked).await
    }

    /// A token that a person of the account created.
    async fn find_own_token(
        &self,
        account: AccountId,
        id: TokenId,
    ) -> Result<TokenRecord, AccountError> {
        let tokens = self.store.list_tokens(Some(account)).await?;
        let own = |token: &TokenRecord| token.id == id && token.grant.is_none();
        tokens
            .into_iter()
            .find(own)
            .ok_or(AccountError::UnknownToken(id))
    }
}

/// When the token expires that replaces this one now: it lives as long as this one was to live.
pub fn rotated_expiry(token: &TokenRecord, now: Timestamp) -> Option<Timestamp> {
    let expires = token.access.expires?;
    Some(now + expires.duration_since(token.created_at))
}

fn new_secret() -> TokenSecret {
    TokenSecret::from_seed(&entropy::bytes())
}

fn new_token(
    account: AccountId,
    secret: &TokenSecret,
    input: TokenInput,
    now: Timestamp,
) -> NewToken {
    NewToken {
        account,
        name: input.name,
        hash: secret.hash(),
        permissions: input.permissions,
        allow: input.allow,
        expires: input.expires,
        created_at: now,
    }
}

/// Describes a new token for the audit log.
fn describe(token: &NewToken) -> String {
    let until = token
        .expires
        .map_or_else(|| "no expiry".to_owned(), |time| format!("until {time}"));
    let permissions = token.permissions.to_names();
    format!("may {permissions}; from {}; {until}", from(&token.allow))
}

fn from(allow: &AllowList) -> String {
    match allow.to_string() {
        networks if networks.is_empty() => "anywhere".to_owned(),
        networks => networks,
    }
}

/// Describes what a change changes.
fn differences(before: &TokenInput, after: &TokenInput) -> String {
    let facts = |token: &TokenInput| {
        let expiry = token.expires.map(|time| time.to_string());
        [
            ("name", token.name.clone()),
            ("may", token.permissions.to_names()),
            ("from", from(&token.allow)),
            ("expiry", expiry.unwrap_or_else(|| "never".to_owned())),
        ]
    };
    audit::differences(facts(before), facts(after))
}

#[cfg(test)]
mod tests {
    use domain::Permissions;

    use super::*;

    #[test]
    fn a_change_says_what_it_changes() {
        let before = TokenInput {
            name: "backend".to_owned(),
            permissions: Permissions::from_names("sms:send").expect("a permission"),
            allow: AllowList::default(),
            expires: None,
        };
        assert_eq!(differences(&before, &before), "");
        let after = TokenInput {
            name: "shop".to_owned(),
            permissions: Permissions::from_names("sms:read").expect("a permission"),
            allow: "192.0.2.0/24".parse().expect("a network"),
            expires: Some(Timestamp::UNIX_EPOCH),
        };
        assert_eq!(
            differences(&before, &after),
            "name backend → shop; may sms:send → sms:read; from anywhere → 192.0.2.0/24; \
             expiry never → 1970-01-01T00:00:00Z"
        );
    }
}
