//! Starting the service, keeping it up, stopping it in order.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use domain::Clock;
use domain::clock::SystemClock;
use domain::ports::Store;
use engine::Engine;
use metrics_exporter_prometheus::PrometheusHandle;
use store::DatabaseUrl;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use utoipa_swagger_ui::SwaggerUi;
use web::dashboard::{Dashboard, DashboardSettings};
use web::rest::with_unknown_addresses;
use web::server::{self, Tls};
use web::{Observe, Rest, RestSettings};

use crate::cli::{Role, ServeArgs};
use crate::config::Config;
use crate::{first_start, telemetry};

/// The most submissions that one transaction stores.
const ACCEPT_BATCH: usize = 512;
/// Old measurements are dropped this often, so that they do not pile up when nobody asks for them.
const METRICS_UPKEEP: Duration = Duration::from_secs(5);

/// Runs the service until it is told to stop.
pub(crate) async fn run(mut config: Config, args: ServeArgs) -> anyhow::Result<()> {
    if let Some(listen) = args.listen {
        config.server.listen = listen;
        config.check()?;
    }
    let roles = args
        .roles
        .unwrap_or_else(|| vec![Role::Api, Role::Dashboard]);
    telemetry::start_logs(&config.log)?;
    let metrics = telemetry::start_metrics()?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let database = config.database_url()?;
    let store = open_store(&config, &database).await?;
    let engine = Arc::new(Engine::start(
        store.clone(),
        clock,
        engine_settings(&config, &database),
    ));
    let listener = bind(config.server.listen)?;
    let listening = listener.local_addr()?;

    let mut app = App::build(&config, &roles, &engine, &metrics, listening)?;
    let (stop, stopped) = watch::channel(false);
    let serving = app.start(listener, &stopped);

    announce(&config, &roles, &engine, &database, listening).await?;
    let outcome = tokio::select! {
        signal = stop_signal() => signal,
        () = engine.submit.broken() => Err(anyhow::anyhow!(
            "the database could not make a write durable; nothing more is accepted. Check the disk, then start again: what was answered is there"
        )),
    };
    app.observe.stopping();
    tracing::info!("stopping: no new connections, answering what is under way");
    stop.send_replace(true);
    for server in serving {
        server.await?;
    }
    engine.stop().await;
    drop((app, engine));
    close(store).await;
    tracing::info!("stopped");
    outcome
}

/// What the listeners serve.
struct App {
    public: Router,
    private: Option<(TcpListener, Router)>,
    tls: Option<Arc<Tls>>,
    limits: server::Limits,
    observe: Arc<Observe>,
    upkeep: JoinHandle<()>,
}

impl App {
    fn build(
        config: &Config,
        roles: &[Role],
        engine: &Arc<Engine>,
        metrics: &PrometheusHandle,
        listening: SocketAddr,
    ) -> anyhow::Result<Self> {
        let render = metrics.clone();
        let observe = Observe::new(engine.clone(), Arc::new(move || render.render()));
        let mut public = observe.health_router();
        if roles.contains(&Role::Api) {
            public = public.merge(Rest::new(engine.clone(), rest_settings(config)?).router());
            public = public.merge(SwaggerUi::new("/docs").url(
                "/openapi.json",
                web::rest::document(&config.server.header_prefix),
            ));
        }
        if roles.contains(&Role::Dashboard) {
            public = public.merge(
                Dashboard::new(engine.clone(), dashboard_settings(config, listening)).router(),
            );
        }
        let private = match config.metrics.listen {
            Some(address) => {
                let router = with_unknown_addresses(observe.metrics_router());
                Some((bind(address)?, router))
            }
            None => None,
        };
        if private.is_none() && config.is_loopback() {
            public = public.merge(observe.metrics_router());
        }
        Ok(Self {
            public: with_unknown_addresses(public),
            private,
            tls: start_tls(config)?,
            limits: server_limits(config),
            observe,
            upkeep: tokio::spawn(keep_metrics_small(metrics.clone())),
        })
    }

    /// Starts the listeners; each task ends once its connections have.
    fn start(
        &mut self,
        listener: TcpListener,
        stopped: &watch::Receiver<bool>,
    ) -> Vec<JoinHandle<()>> {
        let serve = |listener, router, tls| {
            tokio::spawn(server::serve(
                listener,
                router,
                tls,
                self.limits,
                stopped.clone(),
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

fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    server::bind(address).with_context(|| {
        format!("cannot listen on {address}; if something else uses the port, choose another with --listen 127.0.0.1:PORT")
    })
}

/// Opens the database; the data folder is created where there is none.
pub(crate) async fn open_store(
    config: &Config,
    database: &DatabaseUrl,
) -> anyhow::Result<Arc<dyn Store>> {
    if let DatabaseUrl::Sqlite(file) = database
        && let Some(folder) = file
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
    {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot create the folder {}", folder.display()))?;
    }
    let options = store::Options {
        postgres_connections: config.database.connections,
    };
    store::open(database, &options)
        .await
        .context("the service cannot start without its database")
}

/// Dropping the last reference may wait for the disk, so it does not happen on a thread that others wait for.
async fn close(store: Arc<dyn Store>) {
    if let Err(error) = tokio::task::spawn_blocking(move || drop(store)).await {
        tracing::error!(%error, "closing the database failed");
    }
}

fn engine_settings(config: &Config, database: &DatabaseUrl) -> engine::Settings {
    // SQLite has one writer, and a second batch under way would only be a smaller one.
    let accept_writers = match database {
        DatabaseUrl::Sqlite(_) => 1,
        DatabaseUrl::Postgres(_) => 2.min(config.database.connections),
    };
    engine::Settings {
        accept_queue: config.limits.accept_queue,
        accept_batch: ACCEPT_BATCH,
        accept_writers,
    }
}

fn rest_settings(config: &Config) -> anyhow::Result<RestSettings> {
    Ok(RestSettings {
        token_header: config.token_header()?,
        amount_header: config.amount_header()?,
        query_token: config.auth.query_token,
        trusted_proxies: config.auth.trusted_proxies.clone(),
        body_bytes: config.limits.body_bytes,
        body_time: Duration::from_secs(config.limits.body_seconds),
        currency: config.billing.currency.clone(),
    })
}

fn dashboard_settings(config: &Config, listening: SocketAddr) -> DashboardSettings {
    DashboardSettings {
        secure: config.dashboard_url(listening).starts_with("https:"),
        base_url: config.base_url(listening),
        currency: config.billing.currency.clone(),
    }
}

fn server_limits(config: &Config) -> server::Limits {
    let limits = &config.limits;
    server::Limits {
        connections: limits.connections,
        in_flight: limits.in_flight,
        header_time: Duration::from_secs(limits.header_seconds),
        request_time: Duration::from_secs(limits.request_seconds),
        grace: Duration::from_secs(limits.shutdown_seconds),
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

/// Says where the service is, and, at its very first start, how to use it.
async fn announce(
    config: &Config,
    roles: &[Role],
    engine: &Engine,
    database: &DatabaseUrl,
    listening: SocketAddr,
) -> anyhow::Result<()> {
    let welcome = first_start::prepare(engine).await?;
    println!(
        "Switchboard {} listening on {}",
        env!("CARGO_PKG_VERSION"),
        config.local_url(listening)
    );
    tracing::info!(%listening, %database, version = env!("CARGO_PKG_VERSION"), "started");
    if let Some(welcome) = welcome {
        welcome.print(config, roles, listening)?;
    }
    Ok(())
}

async fn stop_signal() -> anyhow::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = terminate.recv() => Ok(()),
        pressed = tokio::signal::ctrl_c() => pressed.context("cannot wait for Ctrl-C"),
    }
}
