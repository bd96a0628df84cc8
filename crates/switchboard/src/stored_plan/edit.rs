//! Changing the carriers and routes in the database.

use std::collections::BTreeSet;

use anyhow::{Context as _, bail, ensure};
use domain::ports::CatalogueKind;
use engine::audit::Action;
use engine::catalogue::plans::NewPlan;
use engine::sending::published_rules::NamedCarrier;
use engine::{Actor, Catalogues};
use toml::{Table, Value};

use super::{NAME, StoredPlan, settings};
use crate::config::{Config, Places, check_plan};

/// What is changed, for the history and the audit log. It has no secrets.
pub(crate) struct Change {
    action: Action,
    subject: String,
    detail: String,
}

impl Change {
    pub(crate) fn new(action: Action, subject: String, detail: impl Into<String>) -> Self {
        Self {
            action,
            subject,
            detail: detail.into(),
        }
    }

    pub(crate) fn undo(to: u32) -> Self {
        let subject = format!("version {to} of carriers and routes");
        Self::new(Action::CarrierUndo, subject, "")
    }
}

/// The carriers and routes in the database, while they are changed.
pub(crate) struct Edited<'a> {
    config: &'a Config,
    catalogues: &'a Catalogues,
    previous: u32,
    plan: StoredPlan,
    /// The carrier that is described, and the lines of its settings.
    described: Option<(String, Places)>,
}

impl<'a> Edited<'a> {
    pub(crate) async fn open(
        config: &'a Config,
        catalogues: &'a Catalogues,
    ) -> anyhow::Result<Self> {
        let (previous, plan) = StoredPlan::read(catalogues).await?;
        Ok(Self {
            previous,
            plan,
            ..Self::open_any(config, catalogues)
        })
    }

    /// Without reading the newest version, which may be unreadable.
    pub(crate) fn open_any(config: &'a Config, catalogues: &'a Catalogues) -> Self {
        Self {
            config,
            catalogues,
            previous: catalogues.live().version(CatalogueKind::Plan),
            plan: StoredPlan::default(),
            described: None,
        }
    }

    /// A stored carrier.
    pub(crate) fn carrier(&self, name: &str) -> Option<&Table> {
        let mut carriers = self.plan.carriers.iter();
        carriers.find(|carrier| StoredPlan::name(carrier) == name)
    }

    /// Adds a carrier, or replaces the one of this name.
    pub(crate) fn put_carrier(
        &mut self,
        name: &str,
        mut carrier: Table,
        places: Places,
    ) -> anyhow::Result<()> {
        ensure!(
            !self.is_of_file(name),
            "carrier '{name}' is in the configuration file; change it there and reload, or remove it there first"
        );
        settings::refuse_files(&carrier)?;
        carrier.insert(NAME.to_owned(), Value::String(name.to_owned()));
        let carriers = &mut self.plan.carriers;
        match carriers.iter().position(|it| StoredPlan::name(it) == name) {
            Some(index) => carriers[index] = carrier,
            None => carriers.push(carrier),
        }
        self.described = Some((name.to_owned(), places));
        Ok(())
    }

    pub(crate) fn remove_carrier(&mut self, name: &str) -> anyhow::Result<()> {
        if let Some(route) = self.plan.routes.iter().find(|route| names(route, name)) {
            let route = StoredPlan::name(route);
            bail!("the route '{route}' uses carrier '{name}'; change or remove the route first");
        }
        let carriers = &mut self.plan.carriers;
        let before = carriers.len();
        carriers.retain(|carrier| StoredPlan::name(carrier) != name);
        if carriers.len() == before {
            ensure!(
                !self.is_of_file(name),
                "carrier '{name}' is in the configuration file; remove it there and reload"
            );
            bail!("there is no carrier '{name}' in the database");
        }
        Ok(())
    }

    fn is_of_file(&self, name: &str) -> bool {
        let mut own = self.config.own_carriers().iter();
        own.any(|own| own.name() == name)
    }

    pub(crate) fn has_route(&self, name: &str) -> bool {
        find(&self.plan.routes, name).is_some()
    }

    /// Adds a route, or replaces the one of this name. Settings are typed as `KEY=VALUE`.
    pub(crate) fn put_route(
        &mut self,
        name: &str,
        typed: &[String],
        before: Option<&str>,
    ) -> anyhow::Result<()> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        ensure!(
            (1..=32).contains(&name.len()) && name.bytes().all(is_plain),
            "the name '{name}' must be 1 to 32 letters, digits, dots, dashes and underscores"
        );
        let mut route = Table::from_iter([(NAME.to_owned(), Value::String(name.to_owned()))]);
        for typed in typed {
            let (key, value) = settings::route_setting(typed)?;
            ensure!(key != NAME, "the name is the first argument");
            ensure!(
                route.insert(key, value).is_none(),
                "'{typed}' is given twice; give it once"
            );
        }
        let routes = &mut self.plan.routes;
        let place = find(routes, name);
        if let Some(index) = place {
            routes.remove(index);
        }
        let index = match before {
            Some(next) => find(routes, next)
                .with_context(|| format!("there is no route '{next}' in the database"))?,
            None => place.unwrap_or(routes.len()),
        };
        routes.insert(index, route);
        Ok(())
    }

    pub(crate) fn remove_route(&mut self, name: &str) -> anyhow::Result<()> {
        let routes = &mut self.plan.routes;
        let index = find(routes, name).with_context(|| {
            format!(
                "there is no route '{name}' in the database; those of the configuration file are changed there"
            )
        })?;
        routes.remove(index);
        Ok(())
    }

    /// Takes over a version, or the one before the last. Returns its number.
    pub(crate) async fn go_back(&mut self, to: Option<u32>) -> anyhow::Result<u32> {
        ensure!(self.previous > 0, "nothing was changed in the database yet");
        let to = to.unwrap_or(self.previous - 1);
        self.plan = match to {
            // Before the first change.
            0 => StoredPlan::default(),
            to => StoredPlan::read_version(self.catalogues, to)
                .await?
                .with_context(|| {
                    format!("there is no version {to}; see `switchboard carrier history`")
                })?,
        };
        Ok(to)
    }

    /// Checks everything together, and stores it.
    pub(crate) async fn store(mut self, by: &Actor, change: Change) -> anyhow::Result<()> {
        self.name_carriers_of_files();
        self.check()?;
        let Change {
            action,
            subject,
            detail,
        } = change;
        self.plan.by.clone_from(&by.who);
        self.plan.change = format!("{} {subject}", action.name());
        let rows = self.plan.carriers.len() + self.plan.routes.len();
        let new = NewPlan {
            action,
            subject: &subject,
            detail: &detail,
            previous: self.previous,
            content: &self.plan.to_json(),
            rows: u32::try_from(rows).unwrap_or(u32::MAX),
        };
        self.catalogues.publish_plan(by, new).await?;
        Ok(())
    }

    fn check(&self) -> anyhow::Result<()> {
        let places = |at: Option<usize>| match (&self.described, at) {
            (Some((_, places)), Some(at)) => places.as_item(&format!("carrier.{}", at + 1)),
            _ => Places::default(),
        };
        let is_described = |name: &str| {
            let described = self.described.as_ref();
            described.is_some_and(|(described, _)| described == name)
        };
        let mut stored = self.plan.carriers.iter();
        let at = stored.position(|carrier| is_described(StoredPlan::name(carrier)));
        let plan = self.plan.load_at(&places(at))?;
        let all = plan.carriers(self.config);
        let at = all.iter().position(|carrier| is_described(carrier.name()));
        check_plan(&all, &plan.routes, &plan.named, &places(at))?;
        Ok(())
    }

    /// Nodes without a carrier of this file must know its channels, if a route names it.
    fn name_carriers_of_files(&mut self) {
        let routes = self.plan.routes.iter();
        let carriers = routes.filter_map(|route| route.get("carriers")?.as_array());
        let mut wanted: BTreeSet<String> = carriers
            .flatten()
            .filter_map(|name| Some(name.as_str()?.to_owned()))
            .collect();
        for stored in &self.plan.carriers {
            wanted.remove(StoredPlan::name(stored));
        }
        let mut named = Vec::new();
        for own in self.config.own_carriers() {
            if wanted.remove(own.name()) {
                named.push(NamedCarrier::new(own.name(), &own.channels()));
            }
        }
        // Those of other files stay as they were named there.
        let others = self.plan.named.drain(..);
        named.extend(others.filter(|other| wanted.contains(&other.name)));
        self.plan.named = named;
    }
}

/// Whether a route names a carrier.
fn names(route: &Table, carrier: &str) -> bool {
    let carriers = route.get("carriers").and_then(|list| list.as_array());
    carriers.is_some_and(|carriers| carriers.iter().any(|name| name.as_str() == Some(carrier)))
}

fn find(routes: &[Table], name: &str) -> Option<usize> {
    let mut routes = routes.iter();
    routes.position(|route| StoredPlan::name(route) == name)
}
