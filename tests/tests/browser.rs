//! The page of an operator in a real browser: `cargo test -p kopf-tests --test browser`.
//!
//! It needs Debian's packages `chromium` and `chromium-driver`.

#[path = "runtime/page_fixture.rs"]
mod page_fixture;

use kopf_tests::{Browser, TestResult};
use serde_json::json;

use crate::page_fixture::{PageFixture, PageOperator};

/// The key `Escape` of WebDriver.
const ESCAPE: &str = "\u{e00c}";

/// The key `Enter` of WebDriver.
const ENTER: &str = "\u{e007}";

#[tokio::test]
async fn a_browser_shows_objects_live_and_by_keyboard() -> TestResult {
    let fixture = PageFixture::open("page-browser").await?;
    let edits = ["--page", "http://127.0.0.1:0", "--page-edits"];
    let operator = PageOperator::start(fixture.prepare()?.args(edits)).await?;
    let browser = Browser::start().await?;
    let PageOperator { address, token, .. } = &operator;
    browser
        .open(&format!("http://{address}/#/?token={token}"))
        .await?;
    browser
        .until_text("#operator", "page-operator 1.2.3")
        .await?;
    browser.until_text("#status", "running").await?;

    // New objects appear without a reload.
    fixture.create("retried", "retry").await?;
    fixture.create("done", "").await?;
    browser.until_text("#objects", "not yet").await?;
    browser.until_text("#counts", "1 handled").await?;
    browser.until_text("#found", "2 objects").await?;

    // The slash leads to the search, which the server does.
    browser.press("body", "/").await?;
    browser.press("#search", "done").await?;
    browser.until_text("#found", "1 object").await?;
    assert!(!browser.text("#objects").await?.contains("retried"));

    // An object opens by its link, with its handlers and its log; Escape leads back.
    browser.press("#search", ESCAPE).await?;
    browser.press("#objects a", ENTER).await?;
    browser.until_text("#object-title", "done").await?;
    browser.until_text("#object-handlers", "succeeded").await?;
    browser.until_text("#object-lines", "worked hard").await?;
    fixture
        .widgets
        .merge("done", json!({"spec": {"size": 2}}))
        .await?;
    let changes = browser.until_text("#object-changes", "spec.size").await?;
    assert!(changes.contains('1') && changes.contains('2'), "{changes}");
    browser.press("#retry", ENTER).await?;
    browser.until_text("#edited", "no handler").await?;
    browser.press("body", ESCAPE).await?;
    // Escape had cleared the search, as browsers do.
    browser.until_text("#found", "2 objects").await?;

    // The slash leads to the search from every view.
    browser.press("#nav-calls", ENTER).await?;
    browser.until_text("#view-calls", "done").await?;
    browser.press("body", "/").await?;
    browser.until_text("#found", "2 objects").await?;
    let focused = "return document.activeElement.id";
    assert_eq!(browser.run(focused).await?, json!("search"));
    browser.press("#search", ESCAPE).await?;

    // Names and roles for screen readers.
    let unnamed = "return [...document.querySelectorAll('input, select, button, a')]\
                   .filter(it => !(it.labels?.length || it.textContent.trim())).length";
    assert_eq!(browser.run(unnamed).await?, json!(0));
    for selector in [
        "#status[role=status]",
        "#found[aria-live=polite]",
        "nav[aria-label]",
    ] {
        browser.text(selector).await?;
    }
    // The policy lets nothing of other origins run or load.
    let inline = "try { const it = document.createElement('script'); it.textContent = 'window.ran = 1'; \
                  document.body.append(it) } catch {} return window.ran === undefined";
    assert_eq!(browser.run(inline).await?, json!(true));
    let problems = browser.severe_log_lines().await?;
    // The browser also logs the answer that no handler waits.
    let expected = ["Content Security Policy", "TrustedScript", "/retry - "];
    assert!(
        problems
            .iter()
            .all(|it| expected.iter().any(|part| it.contains(part))),
        "{problems:?}"
    );

    operator.process.terminate().await?;
    browser.until_text("#status", "onnect").await?;
    browser.close().await
}

#[tokio::test]
#[expect(clippy::print_stdout, reason = "figures for the documentation")]
async fn both_colour_schemes_have_readable_text() -> TestResult {
    let fixture = PageFixture::open("page-colours").await?;
    let operator = fixture.start().await?;
    fixture.create("one", "").await?;
    operator.until_object("one", "handled").await?;
    let browser = Browser::start().await?;
    for scheme in ["light", "dark"] {
        browser.set_colour_scheme(scheme).await?;
        browser
            .open(&format!("http://{}/", operator.address))
            .await?;
        browser.until_text("#objects", "handled").await?;
        // The ratio that WCAG 2.2 asks for, for text of any size.
        let contrast = browser.run(include_str!("browser/contrast.js")).await?;
        let least = contrast.as_f64().unwrap_or_default();
        println!("{scheme}: the least contrast is {least:.1}");
        assert!(least >= 4.5, "{scheme}: {least}");
    }
    browser.close().await
}
