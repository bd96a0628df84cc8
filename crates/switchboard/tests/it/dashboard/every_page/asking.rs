//! Forms that ask for the password again, some minutes after signing in.

use super::site::Viewer::Operator;
use super::site::{SentForm, Site};
use crate::dashboard::asking::age_sessions;

const PEOPLE: &str = "/dashboard/operator/people";
const CARRIER: &str = "/dashboard/operator/carriers/edit?name=gamma";

const FORMS: &[SentForm] = &[
    (
        "ask-password",
        PEOPLE,
        "",
        &[
            ("action", "reset"),
            ("person", "1"),
            ("who", "ann@example.com"),
        ],
        200,
        "Current password",
    ),
    (
        "ask-password-refused",
        PEOPLE,
        "",
        &[
            ("action", "reset"),
            ("person", "1"),
            ("who", "ann@example.com"),
            ("current_password", "not this one"),
        ],
        422,
        "This is not your password.",
    ),
];

pub(super) async fn check(site: &mut Site) {
    age_sessions(&site.service);
    site.check_page("operator-carrier-password", Operator, CARRIER)
        .await;
    for form in FORMS {
        site.check_form(Operator, form).await;
    }
}
