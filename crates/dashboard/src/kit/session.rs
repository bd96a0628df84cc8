//! Who may see a page: it says so in its signature.
//!
//! A handler that takes a [`Member`] is for whoever belongs to an account, one that takes an [`Admin`] for whoever runs
//! that account, one that takes an [`Operator`] for whoever runs the service. Others are sent to sign in, or told that
//! the page is not theirs.

use std::net::IpAddr;
use std::ops::Deref;
use std::sync::Arc;

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::response::Redirect;
use domain::Access;
use domain::person::{Role, SignedIn};
use domain::ports::AccountRecord;
use engine::identity::rate::Requester;
use engine::{Accounts, By};
use http::request::Parts;

use crate::Dashboard;
use crate::kit::browser::{Visit, form_token};
use crate::kit::failure::Failure;
use crate::kit::form::{self, Form};
use crate::kit::page::Frame;
use crate::kit::return_path::ReturnPath;
use requests::rate_limit;

/// What the token of every form behind the sign-in is for.
const FORM: &str = "dashboard";

/// Somebody who is signed in.
pub(crate) struct Visitor {
    pub(crate) session: String,
    pub(crate) signed_in: SignedIn,
    pub(crate) address: IpAddr,
    path: String,
}

impl Visitor {
    /// What stands around their pages.
    pub(crate) fn frame(&self) -> Frame {
        let back = ReturnPath::parse(Some(&self.path));
        Frame::of(&self.session, &self.signed_in, &back).with_navigation(
            &self.signed_in,
            &self.path,
            form_token(&self.session, FORM),
        )
    }

    fn is_operator(&self) -> bool {
        self.signed_in.role() == Role::Operator
    }

    /// What people and logs call them.
    pub(crate) fn name(&self) -> String {
        let person = self.signed_in.person();
        person.map_or_else(
            || "operator by first link".to_owned(),
            |person| person.email.to_string(),
        )
    }

    /// Who they are to the log of changes.
    pub(crate) fn by(&self) -> By {
        By::signed_in(&self.signed_in, self.address)
    }
}

impl FromRequestParts<Arc<Dashboard>> for Visitor {
    type Rejection = Failure;

    async fn from_request_parts(
        parts: &mut Parts,
        dashboard: &Arc<Dashboard>,
    ) -> Result<Self, Failure> {
        let Ok(visit) = Visit::from_request_parts(parts, dashboard).await;
        let path = parts.uri.path().to_owned();
        let back = ReturnPath::parse(Some(&path));
        let (session, signed_in) = dashboard.signed_in(&visit, &back).await?;
        Ok(Self {
            session: session.to_owned(),
            signed_in,
            address: visit.address,
            path,
        })
    }
}

/// Somebody who works with an account.
pub(crate) struct Member {
    visitor: Visitor,
    pub(crate) account: AccountRecord,
}

impl Member {
    /// What stands around their pages, with the account that they are about.
    pub(crate) fn frame(&self) -> Frame {
        self.visitor.frame().of_account(&self.account.name)
    }

    /// How they act for the account.
    pub(crate) fn access(&self) -> Access {
        Accounts::access_of(&self.account, &self.visitor.name())
    }
}

impl FromRequestParts<Arc<Dashboard>> for Member {
    type Rejection = Failure;

    async fn from_request_parts(
        parts: &mut Parts,
        dashboard: &Arc<Dashboard>,
    ) -> Result<Self, Failure> {
        let visitor = Visitor::from_request_parts(parts, dashboard).await?;
        let account = match visitor.signed_in.account() {
            Some(account) => dashboard.engine.accounts.find_by_id(account).await?,
            None => None,
        };
        match account {
            Some(account) => {
                rate_limit::count(
                    &dashboard.engine.gate,
                    &parts.extensions,
                    account.id,
                    Requester::People,
                    account.rules.requests_per_second,
                )?;
                Ok(Self { visitor, account })
            }
            // Whoever only runs the service begins with that.
            None if visitor.is_operator() && visitor.path == "/dashboard" => {
                let accounts = Redirect::to("/dashboard/operator/accounts");
                Err(Failure::Elsewhere(accounts))
            }
            None => Err(Failure::NoAccount(Box::new(visitor.frame()))),
        }
    }
}

/// Somebody who runs an account.
pub(crate) struct Admin(Member);

impl FromRequestParts<Arc<Dashboard>> for Admin {
    type Rejection = Failure;

    async fn from_request_parts(
        parts: &mut Parts,
        dashboard: &Arc<Dashboard>,
    ) -> Result<Self, Failure> {
        let member = Member::from_request_parts(parts, dashboard).await?;
        match member.signed_in.role() {
            Role::Operator | Role::Admin => Ok(Self(member)),
            Role::Member => Err(Failure::NotYours(Box::new(member.frame()))),
        }
    }
}

/// Somebody who runs the service.
pub(crate) struct Operator(Visitor);

impl FromRequestParts<Arc<Dashboard>> for Operator {
    type Rejection = Failure;

    async fn from_request_parts(
        parts: &mut Parts,
        dashboard: &Arc<Dashboard>,
    ) -> Result<Self, Failure> {
        let visitor = Visitor::from_request_parts(parts, dashboard).await?;
        match visitor.signed_in.role() {
            Role::Operator => Ok(Self(visitor)),
            Role::Admin | Role::Member => Err(Failure::NotYours(Box::new(visitor.frame()))),
        }
    }
}

impl Deref for Member {
    type Target = Visitor;

    fn deref(&self) -> &Visitor {
        &self.visitor
    }
}

impl Deref for Admin {
    type Target = Member;

    fn deref(&self) -> &Member {
        &self.0
    }
}

impl Deref for Operator {
    type Target = Visitor;

    fn deref(&self) -> &Visitor {
        &self.0
    }
}

/// A form of at most so many bytes that a page behind the sign-in sent, and no other site. Stands last, so that nobody's
/// form is read who may not send it.
pub(crate) struct Posted<const MAX_BYTES: usize = { form::MAX_BYTES_WITHIN }>(pub(crate) Form);

impl<const MAX_BYTES: usize> FromRequest<Arc<Dashboard>> for Posted<MAX_BYTES> {
    type Rejection = Failure;

    async fn from_request(request: Request, dashboard: &Arc<Dashboard>) -> Result<Self, Failure> {
        let (mut parts, body) = request.into_parts();
        let Ok(visit) = Visit::from_request_parts(&mut parts, dashboard).await;
        let request = Request::from_parts(parts, body);
        let form = Form::read(request, MAX_BYTES).await?;
        if visit.session.is_some() && visit.sent(&form, FORM, visit.session.as_deref()) {
            Ok(Self(form))
        } else {
            Err(Failure::NotFromHere)
        }
    }
}
