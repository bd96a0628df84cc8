//! Rows of people, invitations and sessions.

use domain::access::attempts::Attempts;
use domain::ids::{AccountId, PersonId};
use domain::person::Membership;
use domain::person::{
    Device, Email, OpenSession, PasswordHash, Person, Role, SessionRecord, SignedIn, TotpSecret,
};
use domain::ports::{
    Credentials, Invitation, InvitationRecord, PendingSignIn, PersonRecord, Purpose, SecondFactor,
};
use domain::{KeyRing, TokenHash};

use super::{Corrupt, SqlRow, account_id, timestamp};
use crate::rows::encrypted::{self, totp_context};

/// The columns of a person, in the order in which both databases select them.
pub(crate) struct PersonColumns {
    pub(crate) id: i64,
    pub(crate) email: String,
    pub(crate) role: String,
    pub(crate) account_id: Option<i64>,
}

impl PersonColumns {
    pub(crate) fn read<R: SqlRow>(row: &R) -> Result<Self, R::Error> {
        Ok(Self {
            id: row.column(0)?,
            email: row.column(1)?,
            role: row.column(2)?,
            account_id: row.column(3)?,
        })
    }

    pub(crate) fn person(self) -> Result<Person, Corrupt> {
        Ok(Person {
            id: person_id(self.id)?,
            email: email(&self.email)?,
            role: role(&self.role)?,
            account: self.account_id.map(account_id).transpose()?,
        })
    }

    /// With the next columns: the password, and whether the person has a second factor.
    pub(crate) fn credentials(
        self,
        password: String,
        has_second_factor: bool,
    ) -> Result<Credentials, Corrupt> {
        Ok(Credentials {
            person: self.person()?,
            password: PasswordHash::new(password),
            has_second_factor,
        })
    }

    /// With the next columns, which lists show.
    pub(crate) fn record(
        self,
        created_us: i64,
        seen_us: Option<i64>,
        has_second_factor: bool,
    ) -> Result<PersonRecord, Corrupt> {
        Ok(PersonRecord {
            person: self.person()?,
            created_at: timestamp(created_us)?,
            seen_at: seen_us.map(timestamp).transpose()?,
            has_second_factor,
        })
    }
}

/// The columns of a further account.
pub(crate) struct MembershipColumns {
    pub(crate) person_id: i64,
    pub(crate) account_id: i64,
    pub(crate) role: String,
    pub(crate) seen_us: Option<i64>,
}

impl MembershipColumns {
    pub(crate) fn read<R: SqlRow>(row: &R) -> Result<Self, R::Error> {
        Ok(Self {
            person_id: row.column(0)?,
            account_id: row.column(1)?,
            role: row.column(2)?,
            seen_us: row.column(3)?,
        })
    }

    pub(crate) fn membership(self) -> Result<Membership, Corrupt> {
        Ok(Membership {
            person: person_id(self.person_id)?,
            account: account_id(self.account_id)?,
            role: role(&self.role)?,
            seen_at: self.seen_us.map(timestamp).transpose()?,
        })
    }
}

/// The columns of an invitation.
pub(crate) struct InvitationColumns {
    pub(crate) email: String,
    pub(crate) person_id: Option<i64>,
    pub(crate) role: String,
    pub(crate) account_id: Option<i64>,
}

impl InvitationColumns {
    pub(crate) fn read<R: SqlRow>(row: &R) -> Result<Self, R::Error> {
        Ok(Self {
            email: row.column(0)?,
            person_id: row.column(1)?,
            role: row.column(2)?,
            account_id: row.column(3)?,
        })
    }

    /// A role is stored for both purposes, so that the column is never empty.
    pub(crate) fn from_invitation(invitation: &Invitation) -> Self {
        let (person_id, role, account_id) = match invitation.purpose {
            Purpose::Join { role, account } => (None, role, account.map(AccountId::as_i64)),
            Purpose::NewPassword(person) => (Some(person.as_i64()), Role::Member, None),
        };
        Self {
            email: invitation.email.as_str().to_owned(),
            person_id,
            role: role.name().to_owned(),
            account_id,
        }
    }

    /// With the next columns: the account concerned, and the expiry.
    pub(crate) fn record(
        self,
        account: Option<i64>,
        expires_us: i64,
    ) -> Result<InvitationRecord, Corrupt> {
        Ok(InvitationRecord {
            invitation: self.invitation()?,
            account: account.map(account_id).transpose()?,
            expires: timestamp(expires_us)?,
        })
    }

    pub(crate) fn invitation(self) -> Result<Invitation, Corrupt> {
        let purpose = match self.person_id {
            Some(person) => Purpose::NewPassword(person_id(person)?),
            None => Purpose::Join {
                role: role(&self.role)?,
                account: self.account_id.map(account_id).transpose()?,
            },
        };
        Ok(Invitation {
            email: email(&self.email)?,
            purpose,
        })
    }
}

/// A session of a person, or of the account of a sign-in link.
pub(crate) fn open_session(
    link_account: Option<i64>,
    person: Option<PersonColumns>,
    seen_us: i64,
) -> Result<OpenSession, Corrupt> {
    let signed_in = match (link_account, person) {
        (Some(account), None) => SignedIn::ByLink(account_id(account)?),
        (None, Some(columns)) => SignedIn::Person(columns.person()?),
        _ => return Err(Corrupt("session")),
    };
    Ok(OpenSession {
        signed_in,
        seen_at: timestamp(seen_us)?,
    })
}

/// The columns of a session, as its person sees it.
pub(crate) struct SessionColumns {
    pub(crate) hash: Vec<u8>,
    pub(crate) opened_us: i64,
    pub(crate) seen_us: i64,
    pub(crate) expires_us: i64,
    pub(crate) address: Option<String>,
    pub(crate) browser: String,
}

impl SessionColumns {
    pub(crate) fn read<R: SqlRow>(row: &R) -> Result<Self, R::Error> {
        Ok(Self {
            hash: row.column(0)?,
            opened_us: row.column(1)?,
            seen_us: row.column(2)?,
            expires_us: row.column(3)?,
            address: row.column(4)?,
            browser: row.column(5)?,
        })
    }

    pub(crate) fn record(self) -> Result<SessionRecord, Corrupt> {
        let hash: [u8; 32] = self.hash.try_into().map_err(|_| Corrupt("session"))?;
        let address = self.address.map(|text| text.parse()).transpose();
        Ok(SessionRecord {
            hash: TokenHash::from_bytes(hash),
            opened_at: timestamp(self.opened_us)?,
            seen_at: timestamp(self.seen_us)?,
            expires: timestamp(self.expires_us)?,
            device: Device {
                address: address.map_err(|_| Corrupt("address"))?,
                browser: self.browser,
            },
        })
    }
}

/// The columns of a second factor.
pub(crate) struct FactorColumns {
    pub(crate) secret: Option<Vec<u8>>,
    pub(crate) offered: Option<Vec<u8>>,
    pub(crate) step: i64,
    pub(crate) codes: i64,
}

impl FactorColumns {
    pub(crate) fn read<R: SqlRow>(row: &R) -> Result<Self, R::Error> {
        Ok(Self {
            secret: row.column(0)?,
            offered: row.column(1)?,
            step: row.column(2)?,
            codes: row.column(3)?,
        })
    }

    pub(crate) fn factor(self, keys: &KeyRing, person: PersonId) -> Result<SecondFactor, Corrupt> {
        let totp = |value: Vec<u8>| totp(keys, person.as_i64(), &value);
        Ok(SecondFactor {
            active: self.secret.map(totp).transpose()?,
            offered: self.offered.map(totp).transpose()?,
            last_step: self.step,
            codes_left: u32::try_from(self.codes).map_err(|_| Corrupt("number of codes"))?,
        })
    }
}

/// A pending sign-in.
pub(crate) fn pending_sign_in(
    keys: &KeyRing,
    person: PersonColumns,
    secret: &[u8],
    last_step: i64,
) -> Result<PendingSignIn, Corrupt> {
    let secret = totp(keys, person.id, secret)?;
    Ok(PendingSignIn {
        person: person.person()?,
        secret,
        last_step,
    })
}

fn totp(keys: &KeyRing, person: i64, value: &[u8]) -> Result<TotpSecret, Corrupt> {
    let bytes = encrypted::decrypt(keys, &totp_context(person), value)?;
    let bytes = bytes.try_into().map_err(|_| Corrupt("second factor"))?;
    Ok(TotpSecret::new(bytes))
}

/// The stored form of a TOTP key.
pub(crate) fn encrypted_totp(keys: &KeyRing, person: PersonId, secret: &TotpSecret) -> Vec<u8> {
    let context = totp_context(person.as_i64());
    encrypted::encrypt(keys, &context, secret.as_bytes())
}

/// The stored form of a device's address.
pub(crate) fn address(device: &Device) -> Option<String> {
    device.address.map(|address| address.to_string())
}

/// The columns of counted attempts.
pub(crate) fn tries(count: i64, since_us: i64) -> Result<Attempts, Corrupt> {
    Ok(Attempts {
        count: u32::try_from(count).map_err(|_| Corrupt("tries"))?,
        since: timestamp(since_us)?,
    })
}

/// Reads a person's ID.
pub(crate) fn person_id(number: i64) -> Result<PersonId, Corrupt> {
    PersonId::from_i64(number).ok_or(Corrupt("person ID"))
}

fn email(text: &str) -> Result<Email, Corrupt> {
    text.parse().map_err(|_| Corrupt("email address"))
}

fn role(name: &str) -> Result<Role, Corrupt> {
    name.parse().map_err(|_| Corrupt("role"))
}
