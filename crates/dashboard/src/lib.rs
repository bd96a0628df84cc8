//! The dashboard: server-rendered pages behind a session.
//!
//! `pages` has one file for each page, `kit` what the pages share. A page turns a form into a call of a use case and
//! its result into HTML; it has no rules of its own. The signature of a handler says who may see the page
//! (`kit::session`). Every page works without scripts, except for live updates. Every form carries a token that other
//! sites cannot know.

mod kit;
mod pages;

use std::sync::Arc;

use axum::Router;
use axum::response::Redirect;
use domain::person::{Role, SignedIn};
use engine::Engine;
use engine::catalogue::plans::CarrierPlans;
use ipnet::IpNet;
use requests::BlockingWork;
use tokio::sync::watch;

pub use kit::assets::router as assets_router;
pub use kit::browser::session_cookie_name;
pub use pages::oauth_refused::oauth_refused;

use kit::browser::Browser;
use kit::downloads::Downloads;
use kit::failure::Failure;
use kit::form_address::wrong_method_of_page;
use kit::live::Streams;
use kit::return_path::ReturnPath;
use pages::bulk::job::BulkJobs;

/// Addresses and names that the pages show, and how the dashboard is served.
#[derive(Debug, Clone)]
pub struct DashboardSettings {
    /// Whether it is served over HTTPS; its cookies then require HTTPS.
    pub secure: bool,
    /// The address of the dashboard itself, for invitation links.
    pub dashboard_url: String,
    /// The address of the REST API, for the examples.
    pub base_url: String,
    /// The address of the MCP server, `/mcp` included, for the examples.
    pub mcp_url: String,
    /// The address of the authorization server.
    pub auth_url: String,
    /// The header of the REST API that carries a token.
    pub token_header: String,
    /// How many numbers a request to the REST API may correct.
    pub max_api_corrections: usize,
    /// The currency of every amount.
    pub currency: String,
    /// Proxies whose `X-Forwarded-For` is trusted.
    pub trusted_proxies: Vec<IpNet>,
    pub second_factor: SecondFactorDemand,
}

/// Who must have a second factor. People without one can only set it up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SecondFactorDemand {
    #[default]
    Nobody,
    Operators,
    Everyone,
}

impl SecondFactorDemand {
    pub(crate) fn concerns(self, role: Role) -> bool {
        match self {
            Self::Nobody => false,
            Self::Operators => role == Role::Operator,
            Self::Everyone => true,
        }
    }
}

/// The state that the pages share.
pub struct Dashboard {
    engine: Arc<Engine>,
    plans: Arc<dyn CarrierPlans>,
    settings: DashboardSettings,
    corrections: BlockingWork,
    streams: Streams,
    downloads: Downloads,
    bulk: BulkJobs,
}

impl Dashboard {
    /// Live updates end when `stop` turns true.
    pub fn new(
        engine: Arc<Engine>,
        plans: Arc<dyn CarrierPlans>,
        settings: DashboardSettings,
        stop: watch::Receiver<bool>,
    ) -> Arc<Self> {
        Arc::new(Self {
            engine,
            plans,
            settings,
            corrections: BlockingWork::default(),
            streams: Streams::new(stop),
            downloads: Downloads::new(),
            bulk: BulkJobs::new(),
        })
    }

    /// All routes except those of [`assets_router`].
    pub fn router(self: &Arc<Self>) -> Router {
        pages::routes()
            .with_state(self.clone())
            .method_not_allowed_fallback(wrong_method_of_page)
    }

    /// The session of a browser, and who is signed in. Without one, redirects to the sign-in page, which leads back
    /// here.
    async fn signed_in<'a>(
        &self,
        browser: &'a Browser,
        back: &ReturnPath,
    ) -> Result<(&'a str, SignedIn), Failure> {
        if let Some(session) = &browser.session
            && let Some(signed_in) = self.engine.sign_in.find(session, browser.address).await?
        {
            self.demand_second_factor(&signed_in, back).await?;
            return Ok((session, signed_in));
        }
        Err(Failure::Elsewhere(Redirect::to(&back.sign_in_address())))
    }

    /// Leads people who must have a second factor, and have none, to the page that sets it up. The operator of the
    /// first start has no password yet, so no second factor either.
    async fn demand_second_factor(
        &self,
        signed_in: &SignedIn,
        here: &ReturnPath,
    ) -> Result<(), Failure> {
        const SECURITY: &str = "/dashboard/settings/security";
        let Some(person) = signed_in.person() else {
            return Ok(());
        };
        let is_demanded = self.settings.second_factor.concerns(signed_in.role());
        if !is_demanded || here.as_str().starts_with(SECURITY) {
            return Ok(());
        }
        let factor = self.engine.own.second_factor(person).await?;
        if factor.active.is_some() {
            return Ok(());
        }
        Err(Failure::Elsewhere(Redirect::to(SECURITY)))
    }
}
