//! Starts the service, runs it, and stops it gracefully.

mod settings;
mod smpp;

use std::fs::{File, TryLockError};
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use axum::Router;
use dashboard::{Dashboard, assets_router};
use domain::Clock;
use domain::ports::{CarrierReports, Store};
use engine::catalogue::plans::CarrierPlans;
use engine::cluster::database_clock::DatabaseClock;
use engine::{Engine, Guards};
use metrics_exporter_prometheus::PrometheusHandle;
use store::{DatabaseUrl, OpenError};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal as unix_signal};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use web::rest::document_router;
use web::server::{self, Ending, Tls, with_unknown_addresses};
use web::{OAuth, Observe, RenderMetrics, Rest};

use crate::carriers::Carriers;
use crate::cli::{ConfigPaths, Role, ServeArgs};
use crate::config::Config;
use crate::follower::Follower;
use crate::keys::Keys;
use crate::service_manager::ServiceManager;
use crate::stored_plan::operators::OperatorPlans;
use crate::telemetry::TraceExport;
use crate::{first_start, keys, mcp, outside, private, telemetry};
use settings::{
    dashboard_settings, engine_settings, landing, oauth_settings, rest_settings, server_limits,
};
use smpp::SmppListeners;

/// Old measurements are dropped this often, so that they do not pile up when nobody asks for them.
const METRICS_UPKEEP: Duration = Duration::from_secs(5);

/// Runs the service until it is asked to stop.
pub(crate) async fn run(
    mut config: Config,
    paths: &ConfigPaths,
    args: ServeArgs,
) -> anyhow::Result<()> {
    if let Some(listen) = args.listen {
        config.server.listen = listen;
        config.check()?;
    }
    let roles = args.roles.unwrap_or_else(Role::all);
    let traces = telemetry::start_logs(&config.log, &config.traces)?.map(TraceExport::start);
    let metrics = telemetry::start_metrics()?;
    let manager = ServiceManager::find();
    // First, so that a start on a used port leaves no trace in the database.
    let listener = bind(config.server.listen)?;
    let listening = listener.local_addr()?;
    let smpp_listeners = SmppListeners::bind(&config, &roles)?;
    let smpp_addresses = smpp_listeners.addresses();
    let database = config.database_url()?;
    let store = open_store(&config, &database).await?;
    warn_of_key_in_database(&config, &database);
    let clock: Arc<dyn Clock> = DatabaseClock::start(store.clone())
        .await
        .context("the service cannot start without its database")?;
    let worker = roles.contains(&Role::Worker);
    let _only_worker = if worker { lock(&database)? } else { None };
    let resolver = outside::resolver(&config);
    let mailer = config.mail.mailer()?;
    let outside = worker.then(|| {
        let mailer = mailer.as_ref();
        outside::of_worker(&config, &database, store.clone(), &resolver, mailer)
    });
    let (outside, smpp_sessions) = outside.transpose()?.unzip();
    let engine = Engine::start(
        store.clone(),
        clock.clone(),
        Guards {
            urls: outside::url_guard(&config, resolver.clone()),
            images: outside::image_guard(&config, resolver.clone()),
            clients: outside::client_documents(&config, resolver),
            mailer,
        },
        outside,
        engine_settings(&config, &roles, listening)?,
    );
    let engine = Arc::new(
        engine
            .await
            .context("the service cannot start without its database")?,
    );
    let carriers = Carriers::new(engine.clone(), store.clone(), clock, listening);
    let follower = Follower::start(&engine, &*store, paths, config.clone(), carriers);
    let mut follower = follower.await?;

    let (leave, leaving) = watch::channel(false);
    let (stop, stopped) = watch::channel(false);
    let parts = AppParts {
        engine: &engine,
        reports: follower.reports(),
        plans: OperatorPlans::new(follower.config(), store.clone(), engine.catalogues.clone()),
        metrics: &metrics,
        listening,
        stopped: &stopped,
    };
    let mut app = App::build(&config, &roles, parts)?;
    let mut signals = StopSignals::listen()?;
    let reload = unix_signal(SignalKind::hangup()).context("cannot wait for SIGHUP")?;
    let ending = Ending { leaving, stopped };
    let mut serving = app.start(listener, &ending);
    let tls = app.tls.as_deref();
    serving.extend(smpp_listeners.start(&config, &engine, smpp_sessions, tls, &ending));

    announce(&config, &roles, &engine, listening, &smpp_addresses).await?;
    manager.ready(&format!("listening on {}", config.local_url(listening)));
    let _watchdog = manager.start_watchdog();
    let mut end = tokio::select! {
        () = signals.next() => End::Asked,
        () = follower.run(reload, &manager) => End::Asked,
        () = engine.broken() => End::Broken,
        () = engine.outdated() => End::Outdated,
    };
    manager.stopping();
    app.observe.stopping();
    if matches!(end, End::Asked) && config.limits.drain_seconds > 0 {
        leave.send_replace(true);
        end = drain(&config, &engine, &mut signals).await;
    }
    tracing::info!("stopping: no new connections, answering what is under way");
    stop.send_replace(true);
    for server in serving {
        server.await?;
    }
    // Unsettled work is found at the next start; on a broken disk nothing can be settled.
    let patience = match end {
        End::Asked | End::Outdated => app.limits.grace,
        End::Broken => Duration::ZERO,
    };
    if tokio::time::timeout(patience, engine.stop()).await.is_err() {
        tracing::warn!("some work could not be settled in time; the next start goes on with it");
    }
    drop((app, follower, engine));
    close(store).await;
    if let Some(traces) = traces {
        traces.finish().await;
    }
    tracing::info!("stopped");
    end.outcome()
}

fn warn_of_key_in_database(config: &Config, database: &DatabaseUrl) {
    if matches!(database, DatabaseUrl::Postgres(_)) && config.security.key.is_none() {
        tracing::warn!(
            "security.key is not set: the key that encrypts secrets is kept in the database, beside what it encrypts; set \
             it on every node (docs/SECURITY.md, Keys)"
        );
    }
}

enum End {
    /// By a signal.
    Asked,
    /// A write to the disk failed.
    Broken,
    /// A newer version has changed the database.
    Outdated,
}

impl End {
    fn outcome(self) -> anyhow::Result<()> {
        match self {
            Self::Asked => Ok(()),
            Self::Broken => bail!(
                "the database could not make a write durable; nothing more is accepted. Check the disk, then start again: what was answered is there"
            ),
            Self::Outdated => bail!(
                "a newer version has changed the database so that this one cannot work with it any more; start the newer version"
            ),
        }
    }
}

/// Answers requests as usual while load balancers notice that this node is not ready. Another signal ends this at once.
async fn drain(config: &Config, engine: &Engine, signals: &mut StopSignals) -> End {
    let seconds = config.limits.drain_seconds;
    tracing::info!(
        seconds,
        "leaving: not ready any more, but answering for a while"
    );
    tokio::select! {
        () = tokio::time::sleep(Duration::from_secs(seconds)) => End::Asked,
        () = signals.next() => End::Asked,
        () = engine.broken() => End::Broken,
        () = engine.outdated() => End::Outdated,
    }
}

struct App {
    public: Router,
    private: Option<(TcpListener, Router)>,
    tls: Option<Arc<Tls>>,
    limits: server::Limits,
    observe: Arc<Observe>,
    upkeep: JoinHandle<()>,
}

/// What the routes need.
struct AppParts<'a> {
    engine: &'a Arc<Engine>,
    reports: Arc<dyn CarrierReports>,
    plans: Arc<dyn CarrierPlans>,
    metrics: &'a PrometheusHandle,
    listening: SocketAddr,
    stopped: &'a watch::Receiver<bool>,
}

impl App {
    fn build(config: &Config, roles: &[Role], parts: AppParts<'_>) -> anyhow::Result<Self> {
        let AppParts {
            engine,
            reports,
            plans,
            metrics,
            listening,
            stopped,
        } = parts;
        let render = metrics.clone();
        let metrics_token = config.metrics.token.as_ref().map(|token| token.0.as_str());
        let render: RenderMetrics = Arc::new(move || render.render());
        let observe = Observe::new(engine.clone(), render, metrics_token);
        let landing = landing(config, roles, listening);
        let mut public = observe.health_router().merge(landing.router());
        let rest = if roles.contains(&Role::Api) {
            Some(Rest::new(engine.clone(), rest_settings(config)?).router())
        } else {
            None
        };
        if roles.contains(&Role::Mcp) {
            let router = mcp::router(config, engine, rest.clone(), listening, stopped)?;
            public = public.merge(router);
        }
        if let Some(rest) = rest {
            public = public.merge(rest);
            public = public.merge(document_router(&config.server.header_prefix));
        }
        let shows_pages = [Role::Dashboard, Role::Auth];
        if shows_pages.iter().any(|role| roles.contains(role)) {
            public = public.merge(assets_router());
        }
        if roles.contains(&Role::Dashboard) {
            let settings = dashboard_settings(config, listening);
            let dashboard = Dashboard::new(engine.clone(), plans, settings, stopped.clone());
            public = public.merge(dashboard.router());
        }
        if roles.contains(&Role::Auth) {
            public = public
                .merge(OAuth::new(engine.clone(), oauth_settings(config, listening)).router());
        }
        if roles.contains(&Role::Worker) {
            public = public.merge(web::carriers::router(reports));
        }
        let private = match config.metrics.listen {
            Some(address) => {
                let router = with_unknown_addresses(observe.metrics_router());
                Some((bind(address)?, router))
            }
            None => None,
        };
        if private.is_none() && (config.is_loopback() || config.metrics.token.is_some()) {
            public = public.merge(observe.shared_metrics_router());
        }
        Ok(Self {
            public: with_unknown_addresses(public),
            private,
            tls: start_tls(config)?,
            limits: server_limits(config),
            observe,
            upkeep: supervise::spawn("metrics-upkeep", {
                let metrics = metrics.clone();
                move || keep_metrics_small(metrics.clone())
            }),
        })
    }

    /// Starts the listeners; each task ends when its connections are closed.
    fn start(&mut self, listener: TcpListener, ending: &Ending) -> Vec<JoinHandle<()>> {
        let serve = |listener, router, tls| {
            tokio::spawn(server::serve(
                listener,
                router,
                tls,
                self.limits.clone(),
                ending.clone(),
            ))
        };
        let mut tasks = vec![serve(listener, self.public.clone(), self.tls.clone())];
        if let Some((listener, router)) = self.private.take() {
            tasks.push(serve(listener, router, None));
        }
        tasks
    }
}

impl Drop for App {
    fn drop(&mut self) {
        self.upkeep.abort();
    }
}

pub(crate) fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    server::bind(address).with_context(|| {
        format!("cannot listen on {address}; if something else uses the port, choose another with --listen 127.0.0.1:PORT")
    })
}

/// Opens the database, and creates the data folder if necessary.
pub(crate) async fn open_store(
    config: &Config,
    database: &DatabaseUrl,
) -> anyhow::Result<Arc<dyn Store>> {
    create_folder(database)?;
    private::folder(&config.data_dir)?;
    let keys = keys::load(config, database)?;
    let options = store_options(config, &keys);
    let opened = store::open(database, &options).await;
    if let Err(OpenError::WrongKey { .. }) = &opened {
        keys.discard();
    }
    opened.context("the service cannot start without its database")
}

pub(crate) fn store_options(config: &Config, keys: &Keys) -> store::Options {
    store::Options {
        keys: keys.ring.clone(),
        keep_key: keys.storage,
        postgres_connections: config.database.connections,
    }
}

/// Creates the folder of a database file.
pub(crate) fn create_folder(database: &DatabaseUrl) -> anyhow::Result<()> {
    match database {
        DatabaseUrl::Sqlite(file) => private::folder(file.parent().unwrap_or(Path::new(""))),
        DatabaseUrl::Postgres(_) => Ok(()),
    }
}

/// Which process may work on a database.
pub(crate) enum WorkerLock {
    /// This process, as long as it keeps the file open. PostgreSQL needs no lock.
    Ours(Option<File>),
    /// Another process, on this file.
    Others(PathBuf),
}

/// A SQLite file has one worker: a second one would consider the first one dead.
fn lock(database: &DatabaseUrl) -> anyhow::Result<Option<File>> {
    match try_lock(database)? {
        WorkerLock::Ours(lock) => Ok(lock),
        WorkerLock::Others(file) => bail!(
            "another service already works on {}; stop it, choose another --data-dir, or use PostgreSQL, which serves many",
            file.display()
        ),
    }
}

/// Takes the worker lock of a database file, if it is free. The system releases it when the process ends.
pub(crate) fn try_lock(database: &DatabaseUrl) -> anyhow::Result<WorkerLock> {
    let DatabaseUrl::Sqlite(file) = database else {
        return Ok(WorkerLock::Ours(None));
    };
    let path = file.with_extension("lock");
    let lock = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path);
    let lock = lock.with_context(|| format!("cannot open {}", path.display()))?;
    match lock.try_lock() {
        Ok(()) => Ok(WorkerLock::Ours(Some(lock))),
        Err(TryLockError::WouldBlock) => Ok(WorkerLock::Others(file.clone())),
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("cannot lock {}", path.display()))
        }
    }
}

/// Dropping the last reference may wait for the disk, so it happens on a thread of its own.
async fn close(store: Arc<dyn Store>) {
    if let Err(error) = tokio::task::spawn_blocking(move || drop(store)).await {
        tracing::error!(%error, "closing the database failed");
    }
}

fn start_tls(config: &Config) -> anyhow::Result<Option<Arc<Tls>>> {
    match (&config.tls.cert, &config.tls.key) {
        (Some(cert), Some(key)) => Ok(Some(Tls::start(cert, key)?)),
        _ => Ok(None),
    }
}

async fn keep_metrics_small(metrics: PrometheusHandle) {
    let mut tick = tokio::time::interval(METRICS_UPKEEP);
    loop {
        tick.tick().await;
        metrics.run_upkeep();
    }
}

/// Prints where the service listens and, at the first start, how to use it.
async fn announce(
    config: &Config,
    roles: &[Role],
    engine: &Engine,
    listening: SocketAddr,
    smpp: &[(&str, SocketAddr)],
) -> anyhow::Result<()> {
    let first_start = first_start::prepare(engine).await?;
    let database = config.database_url()?;
    tracing::info!(%listening, %database, version = env!("CARGO_PKG_VERSION"), "started");
    let mut text = format!(
        "Switchboard {} listening on {}\n",
        env!("CARGO_PKG_VERSION"),
        config.local_url(listening)
    );
    let smpp = smpp.iter();
    text.extend(smpp.map(|(name, address)| format!("{name} listening on {address}\n")));
    if let Some(first_start) = first_start {
        text += &first_start.welcome(config, roles, listening);
    }
    // Log lines go to standard error. They wait for this lock, so that none appears within the text on a terminal.
    let _no_log_lines = std::io::stderr().lock();
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// The signals that stop the process. They are registered before the service announces that it listens, so that an
/// early signal does not kill it.
struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    fn listen() -> anyhow::Result<Self> {
        Ok(Self {
            terminate: unix_signal(SignalKind::terminate()).context("cannot wait for SIGTERM")?,
            interrupt: unix_signal(SignalKind::interrupt()).context("cannot wait for Ctrl-C")?,
        })
    }

    /// Returns at the next signal.
    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Completes when the process is asked to stop; signals are registered from now on.
pub(crate) fn stop_signal() -> anyhow::Result<impl Future<Output = ()>> {
    let mut signals = StopSignals::listen()?;
    Ok(async move { signals.next().await })
}
