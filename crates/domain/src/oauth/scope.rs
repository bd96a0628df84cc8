//! The scopes that a client may ask for.

use crate::access::permission::{Permission, Permissions};
use crate::quoted::Quoted;

/// The permissions that a client can get, in the order in which the consent page lists them.
pub const SCOPES: [Permission; 5] = [
    Permission::SmsSend,
    Permission::SmsRates,
    Permission::SenderWrite,
    Permission::HlrLookup,
    Permission::NumbersRead,
];

/// Asks for a refresh token, which every client gets anyway.
const OFFLINE: &str = "offline_access";

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} is not a scope here; there are {}", Quoted(.0), names())]
pub struct ScopeError(String);

fn names() -> String {
    SCOPES.map(Permission::name).join(", ")
}

/// Parses the parameter `scope`: names separated by spaces. The result is empty if it names nothing.
pub fn parse_scopes(text: Option<&str>) -> Result<Permissions, ScopeError> {
    let mut asked = Vec::new();
    let names = text.unwrap_or_default().split(' ');
    for name in names.filter(|name| !name.is_empty() && *name != OFFLINE) {
        let permission = name.parse().ok();
        let scope = permission.filter(|permission| SCOPES.contains(permission));
        asked.push(scope.ok_or_else(|| ScopeError(name.to_owned()))?);
    }
    Ok(asked.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_names_of_permissions_that_can_be_granted() {
        for (text, expected) in [
            (None, Ok("")),
            (Some(""), Ok("")),
            (Some("  "), Ok("")),
            (Some("offline_access"), Ok("")),
            (Some("sms:rates"), Ok("sms:rates")),
            (Some("sms:rates sms:rates"), Ok("sms:rates")),
            (
                Some("sms:rates offline_access  sms:send"),
                Ok("sms:send sms:rates"),
            ),
            (Some("sms:read"), Err("sms:read")),
            (Some("viber:send"), Err("viber:send")),
            (Some("sms:send sms:all"), Err("sms:all")),
            (Some("SMS:send"), Err("SMS:send")),
            (Some("sms:send\tsms:rates"), Err("sms:send\tsms:rates")),
            (Some("*"), Err("*")),
        ] {
            let parsed = parse_scopes(text).map(Permissions::to_names);
            let expected = expected
                .map(str::to_owned)
                .map_err(|name| ScopeError(name.to_owned()));
            assert_eq!(parsed, expected, "{text:?}");
        }
    }
}
