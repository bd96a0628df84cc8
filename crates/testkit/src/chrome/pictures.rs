//! How a page is shown, and pictures of it.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::{env, fs};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use super::Page;

const WIDE: (u32, u32) = (1280, 800);
/// A phone.
const NARROW: (u32, u32) = (390, 844);
/// Below this width, a page is shown as phones show it.
const PHONE_BELOW: u32 = 600;
/// A list without an end gives no picture without an end.
const MAX_HEIGHT: f64 = 6_000.0;

impl Page {
    /// The size of the window, in CSS pixels. One that is narrower than 600 is a phone's.
    pub async fn set_viewport(&self, width: u32, height: u32) {
        let size = json!({
            "width": width,
            "height": height,
            "deviceScaleFactor": 1,
            "mobile": width < PHONE_BELOW,
        });
        self.order("Emulation.setDeviceMetricsOverride", size).await;
        self.width.store(width, Ordering::Relaxed);
    }

    /// Whether the person prefers dark pages. Moving things are always asked to be still.
    pub async fn set_dark(&self, is_dark: bool) {
        let scheme = if is_dark { "dark" } else { "light" };
        let features = json!({ "features": [
            { "name": "prefers-color-scheme", "value": scheme },
            { "name": "prefers-reduced-motion", "value": "reduce" },
        ] });
        self.order("Emulation.setEmulatedMedia", features).await;
    }

    /// The zone that the person lives in, such as `Asia/Tokyo`; UTC by default.
    pub async fn set_zone(&self, name: &str) {
        let zone = json!({ "timezoneId": name });
        self.order("Emulation.setTimezoneOverride", zone).await;
    }

    /// Switches scripts off. It holds for pages that are loaded from now on.
    pub async fn without_scripts(&self) {
        self.order(
            "Emulation.setScriptExecutionDisabled",
            json!({ "value": true }),
        )
        .await;
    }

    /// Switches scripts on again. It holds for pages that are loaded from now on.
    pub async fn with_scripts(&self) {
        self.order(
            "Emulation.setScriptExecutionDisabled",
            json!({ "value": false }),
        )
        .await;
    }

    /// Whether the page is wider than its window, so that it must be pushed sideways to be read.
    pub async fn is_too_wide(&self) -> bool {
        let metrics = self.order("Page.getLayoutMetrics", json!({})).await;
        let width = metrics["cssContentSize"]["width"].as_f64();
        // Not the width that the page says: a phone's window grows with what is too wide for it.
        width > Some(f64::from(self.width.load(Ordering::Relaxed)))
    }

    /// Writes a picture of the whole page, as PNG.
    pub async fn screenshot(&self, path: &Path) {
        let metrics = self.order("Page.getLayoutMetrics", json!({})).await;
        let size = &metrics["cssContentSize"];
        let height = size["height"].as_f64().unwrap_or(MAX_HEIGHT);
        let order = json!({
            "format": "png",
            "captureBeyondViewport": true,
            "clip": {
                "x": 0,
                "y": 0,
                "width": size["width"],
                "height": height.clamp(1.0, MAX_HEIGHT),
                "scale": 1,
            },
        });
        let taken = self.order("Page.captureScreenshot", order).await;
        let png = taken["data"]
            .as_str()
            .map(|data| BASE64_STANDARD.decode(data));
        let png = png.and_then(Result::ok).expect("a picture in base64");
        let folder = path.parent().expect("a file is in a folder");
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(path, png))
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }

    /// Writes `screenshots/NAME-light.png`, `-dark` and `-narrow` into cargo's target folder, for people to look at.
    /// Afterwards the page is 1280 by 800 and light.
    pub async fn picture(&self, name: &str) {
        let folder = target().join("screenshots");
        for (kind, (width, height), is_dark) in [
            ("narrow", NARROW, false),
            ("dark", WIDE, true),
            ("light", WIDE, false),
        ] {
            self.set_viewport(width, height).await;
            self.set_dark(is_dark).await;
            self.screenshot(&folder.join(format!("{name}-{kind}.png")))
                .await;
        }
    }

    /// A world of this page's document in which scripts of the kit run: they see the page, and it does not see them.
    pub(crate) async fn own_world(&self, name: &str) -> Result<u64, String> {
        let order = json!({ "frameId": self.frame, "worldName": name });
        let world = self.call("Page.createIsolatedWorld", order).await?;
        let id: &Value = &world["executionContextId"];
        id.as_u64()
            .ok_or_else(|| "a world without an ID".to_owned())
    }
}

/// Where cargo builds: the folder that `CARGO_TARGET_DIR` names, or `target` in the workspace.
fn target() -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let named = env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    workspace.join(named)
}
