//! The baseline: axum parses the same JSON and answers with an ID, without tokens, rules or a database.

use anyhow::Result;
use axum::body::Bytes;
use axum::http::header::CONTENT_TYPE;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::net::TcpListener;

/// The fields of `POST /sms`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "the fields are only parsed, as in the service")]
struct SmsBody {
    to: String,
    from: String,
    message: String,
    dlr_url: Option<String>,
    priority: Option<String>,
    scheduled: Option<String>,
    udh: Option<String>,
    coding: Option<i64>,
    test_mode: Option<String>,
    expire_in: Option<i64>,
    correct_by: Option<String>,
}

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

async fn accept(Json(_sms): Json<SmsBody>) -> Json<[String; 1]> {
    Json([NEXT_ID.fetch_add(1, Ordering::Relaxed).to_string()])
}

/// Serves until it is killed.
#[tokio::main]
pub(crate) async fn serve(file: Option<&str>) -> Result<()> {
    let mut router = Router::new().route("/sms", post(accept));
    if let Some(file) = file {
        let body = Bytes::from(std::fs::read(file)?);
        let json = [(CONTENT_TYPE, "application/json")];
        router = router.fallback(get(async move || (json, body.clone())));
    }
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("listening on http://{}", listener.local_addr()?);
    axum::serve(listener, router).await?;
    Ok(())
}
