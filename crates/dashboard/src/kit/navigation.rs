//! The navigation menu of each role.

mod icons;

use domain::person::{Role, SignedIn};

pub(crate) struct NavLink {
    pub(crate) label: &'static str,
    pub(crate) path: &'static str,
    /// The path of an SVG.
    pub(crate) icon: &'static str,
    pub(crate) is_here: bool,
}

pub(crate) struct Section {
    pub(crate) title: &'static str,
    pub(crate) links: Vec<NavLink>,
    /// Whether it is unfolded when the page opens.
    pub(crate) is_open: bool,
}

pub(crate) const OPERATOR_TITLE: &str = "Operator";
const SETTINGS_TITLE: &str = "Settings";
const ACCOUNT: [(&str, &str); 16] = [
    ("Overview", "/dashboard"),
    ("Send", "/dashboard/send"),
    ("Send to many", "/dashboard/bulk"),
    ("Templates", "/dashboard/templates"),
    ("Messages", "/dashboard/messages"),
    ("Inbox", "/dashboard/inbox"),
    ("Scheduled", "/dashboard/scheduled"),
    ("Callbacks", "/dashboard/callbacks"),
    ("Senders", "/dashboard/senders"),
    ("Opt-outs", "/dashboard/opt-outs"),
    ("Lookups", "/dashboard/lookups"),
    ("Verify", "/dashboard/verify"),
    ("Numbers", "/dashboard/numbers"),
    ("Rates", "/dashboard/rates"),
    ("Statement", "/dashboard/statement"),
    ("Connect", "/dashboard/connect"),
];
const SECURITY: (&str, &str) = ("Security", "/dashboard/settings/security");
const ACCOUNTS: (&str, &str) = ("Your accounts", "/dashboard/accounts");
const SETTINGS: [(&str, &str); 6] = [
    ("API", "/dashboard/settings/api"),
    ("People", "/dashboard/settings/people"),
    ("Notifications", "/dashboard/settings/notifications"),
    SECURITY,
    ACCOUNTS,
    ("Audit log", "/dashboard/settings/audit"),
];
const OPERATOR: [(&str, &str); 19] = [
    ("Accounts", "/dashboard/operator/accounts"),
    ("All traffic", "/dashboard/operator/traffic"),
    ("All messages", "/dashboard/operator/messages"),
    ("All people", "/dashboard/operator/people"),
    ("Sender review", "/dashboard/operator/senders"),
    ("Block list", "/dashboard/operator/blocks"),
    ("Verify conversion", "/dashboard/operator/verify"),
    ("SMPP users", "/dashboard/operator/smpp-users"),
    ("Inbound numbers", "/dashboard/operator/numbers"),
    ("Unclaimed messages", "/dashboard/operator/unclaimed"),
    ("Carriers", "/dashboard/operator/carriers"),
    ("Routes", "/dashboard/operator/routes"),
    ("Prices", "/dashboard/operator/prices"),
    ("Margin", "/dashboard/operator/margin"),
    ("Reference data", "/dashboard/operator/reference"),
    ("Queues", "/dashboard/operator/queues"),
    ("Callback hosts", "/dashboard/operator/hosts"),
    ("Nodes", "/dashboard/operator/nodes"),
    ("Full audit log", "/dashboard/operator/audit"),
];

/// The pages that a person may open. `here` is the current path.
pub(crate) fn sections(signed_in: &SignedIn, here: &str) -> Vec<Section> {
    let (role, has_account) = (signed_in.role(), signed_in.account().is_some());
    let mut sections = Vec::new();
    if has_account {
        sections.push(section("Account", &ACCOUNT, here));
    }
    let is_person = signed_in.person().is_some();
    let settings: Vec<_> = SETTINGS
        .into_iter()
        .filter(|page| match *page {
            SECURITY | ACCOUNTS => is_person,
            _ => has_account && role != Role::Member,
        })
        .collect();
    if !settings.is_empty() {
        sections.push(section(SETTINGS_TITLE, &settings, here));
    }
    if role == Role::Operator {
        sections.push(section(OPERATOR_TITLE, &OPERATOR, here));
    }
    sections
}

fn section(title: &'static str, pages: &[(&'static str, &'static str)], here: &str) -> Section {
    let link = |&(label, path): &(&'static str, &'static str)| NavLink {
        label,
        path,
        icon: icons::icon(path),
        is_here: is_within(here, path),
    };
    let links: Vec<NavLink> = pages.iter().map(link).collect();
    Section {
        title,
        // Settings are rarely needed.
        is_open: title != SETTINGS_TITLE || links.iter().any(|link| link.is_here),
        links,
    }
}

/// Whether the current path is a page of the menu, or below it.
fn is_within(here: &str, path: &str) -> bool {
    let Some(rest) = here.strip_prefix(path) else {
        return false;
    };
    rest.is_empty() || (path != "/dashboard" && rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use domain::ids::PersonId;
    use domain::{AccountId, Person};

    use super::*;

    fn person(role: Role, account: Option<u64>) -> SignedIn {
        SignedIn::Person(Person {
            id: PersonId::new(1).expect("in range"),
            email: "ann@example.com".parse().expect("an address"),
            role,
            account: account.and_then(AccountId::new),
        })
    }

    #[test]
    fn each_role_sees_its_own_pages() {
        let titles = |signed_in: &SignedIn| {
            sections(signed_in, "/dashboard")
                .iter()
                .map(|section| (section.title, section.links.len()))
                .collect::<Vec<_>>()
        };
        for (signed_in, expected) in [
            (
                person(Role::Member, Some(1)),
                vec![("Account", 16), ("Settings", 2)],
            ),
            (
                person(Role::Admin, Some(1)),
                vec![("Account", 16), ("Settings", 6)],
            ),
            (
                person(Role::Operator, Some(1)),
                vec![("Account", 16), ("Settings", 6), ("Operator", 19)],
            ),
            (
                person(Role::Operator, None),
                vec![("Settings", 2), ("Operator", 19)],
            ),
            (
                SignedIn::ByLink(AccountId::new(1).expect("in range")),
                vec![("Account", 16), ("Settings", 4), ("Operator", 19)],
            ),
        ] {
            assert_eq!(titles(&signed_in), expected, "{signed_in:?}");
        }
    }

    #[test]
    fn no_two_pages_have_the_same_name() {
        let sections = sections(&person(Role::Operator, Some(1)), "/dashboard");
        let links = sections.iter().flat_map(|section| &section.links);
        let mut names: Vec<_> = links.map(|link| link.label).collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all, "{names:?}");
    }

    #[test]
    fn settings_unfold_on_their_own_pages() {
        let admin = person(Role::Admin, Some(1));
        for (here, expected) in [
            ("/dashboard", [true, false]),
            ("/dashboard/settings/api/new", [true, true]),
        ] {
            let sections = sections(&admin, here);
            let open: Vec<bool> = sections.iter().map(|section| section.is_open).collect();
            assert_eq!(open, expected, "{here}");
        }
    }

    #[test]
    fn pages_below_a_link_belong_to_it() {
        for (here, path, expected) in [
            ("/dashboard", "/dashboard", true),
            ("/dashboard/messages", "/dashboard", false),
            ("/dashboard/messages", "/dashboard/messages", true),
            ("/dashboard/messages/42", "/dashboard/messages", true),
            ("/dashboard/sendings", "/dashboard/send", false),
        ] {
            assert_eq!(is_within(here, path), expected, "{here} {path}");
        }
    }
}
