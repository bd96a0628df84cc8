//! Window size, colours, and screenshots.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::{env, fs};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use super::Page;

const WIDE: (u32, u32) = (1280, 800);
/// The size of a phone.
const NARROW: (u32, u32) = (390, 844);
/// Below this width, a page is laid out as on a phone.
const PHONE_BELOW: u32 = 600;
/// Limits the size of a screenshot of a very long page.
const MAX_HEIGHT: f64 = 6_000.0;

impl Page {
    /// Sets the size of the window in CSS pixels. Below a width of 600 it is that of a phone.
    pub async fn set_viewport(&self, width: u32, height: u32) {
        let size = json!({
            "width": width,
            "height": height,
            "deviceScaleFactor": 1,
            "mobile": width < PHONE_BELOW,
        });
        self.command("Emulation.setDeviceMetricsOverride", size)
            .await;
        self.width.store(width, Ordering::Relaxed);
    }

    /// Sets whether the person prefers dark pages. Reduced motion is always preferred.
    pub async fn set_dark(&self, is_dark: bool) {
        let scheme = if is_dark { "dark" } else { "light" };
        let features = json!({ "features": [
            { "name": "prefers-color-scheme", "value": scheme },
            { "name": "prefers-reduced-motion", "value": "reduce" },
        ] });
        self.command("Emulation.setEmulatedMedia", features).await;
    }

    /// Sets the time zone, such as `Asia/Tokyo`; UTC by default.
    pub async fn set_zone(&self, name: &str) {
        let zone = json!({ "timezoneId": name });
        self.command("Emulation.setTimezoneOverride", zone).await;
    }

    /// Disables scripts for pages that are loaded from now on.
    pub async fn disable_scripts(&self) {
        self.command(
            "Emulation.setScriptExecutionDisabled",
            json!({ "value": true }),
        )
        .await;
    }

    /// Enables scripts for pages that are loaded from now on.
    pub async fn enable_scripts(&self) {
        self.command(
            "Emulation.setScriptExecutionDisabled",
            json!({ "value": false }),
        )
        .await;
    }

    /// Whether the page is wider than its window, so that it scrolls sideways.
    pub async fn is_too_wide(&self) -> bool {
        let metrics = self.command("Page.getLayoutMetrics", json!({})).await;
        let width = metrics["cssContentSize"]["width"].as_f64();
        // Not the width that the page reports: on a phone the viewport grows with content that is too wide.
        width > Some(f64::from(self.width.load(Ordering::Relaxed)))
    }

    /// Saves a screenshot of the whole page as PNG.
    pub async fn screenshot(&self, path: &Path) {
        let metrics = self.command("Page.getLayoutMetrics", json!({})).await;
        let size = &metrics["cssContentSize"];
        let height = size["height"].as_f64().unwrap_or(MAX_HEIGHT);
        let parameters = json!({
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
        let taken = self.command("Page.captureScreenshot", parameters).await;
        let png = taken["data"]
            .as_str()
            .map(|data| BASE64_STANDARD.decode(data));
        let png = png.and_then(Result::ok).expect("a screenshot in base64");
        let folder = path.parent().expect("a file is in a folder");
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(path, png))
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }

    /// Saves `screenshots/NAME-light.png`, `-dark` and `-narrow` in cargo's target folder, for people to look at, if
    /// `SWITCHBOARD_TEST_SCREENSHOTS` is set. Afterwards the page is 1280 by 800 and light.
    pub async fn save_screenshots(&self, name: &str) {
        if env::var_os("SWITCHBOARD_TEST_SCREENSHOTS").is_none() {
            return;
        }
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

    /// Creates an isolated world, in which our scripts see the page but the page does not see them.
    pub(crate) async fn isolated_world(&self, name: &str) -> Result<u64, String> {
        let parameters = json!({ "frameId": self.frame, "worldName": name });
        let world = self.call("Page.createIsolatedWorld", parameters).await?;
        let id: &Value = &world["executionContextId"];
        id.as_u64()
            .ok_or_else(|| "the isolated world has no ID".to_owned())
    }
}

/// The target folder of cargo: `CARGO_TARGET_DIR`, or `target` in the workspace.
fn target() -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let named = env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    workspace.join(named)
}
