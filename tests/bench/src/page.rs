//! The live page: the first view of very many objects in a browser, and the CPU time of an idle
//! operator without the page, with it, and while it is open.

use std::time::{Duration, Instant};

use clap::Args;
use kopf_tests::health_client::{HealthClient, HttpResponse};
use kopf_tests::{
    Browser, ChildProcess, Objects, PrivateControlPlane, Sandbox, TestFailure, TestResult,
};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::peer::{BenchPeer, Workload};
use crate::process::{usage, usage_when_idle};
use crate::widgets::{self, StatusKind};

/// The pause between two looks.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// The objects in one view.
const ROWS: usize = 50;

/// The options of this benchmark.
#[derive(Clone, Debug, Args)]
pub(crate) struct Options {
    /// How many objects there are
    #[arg(long, default_value_t = 10_000)]
    objects: usize,
    /// How often the page is opened; the median is shown
    #[arg(long, default_value_t = 10)]
    views: usize,
    /// How long idle operators are measured
    #[arg(long, default_value_t = 300)]
    seconds: u64,
}

/// An operator, and how to reach its page.
struct PagedOperator {
    process: ChildProcess,
    page: HealthClient,
}

/// Which operators run idle beside each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PageUse {
    Off,
    Closed,
    Open,
}

/// Measures and prints all figures.
pub(crate) async fn run(options: &Options) -> TestResult {
    let plane = PrivateControlPlane::start().await?;
    let sandbox = Sandbox::open_on(plane.handle(), "page").await?;
    let objects = widgets::define(&sandbox, StatusKind::Field).await?;
    widgets::create(&objects, options.objects, &json!({"size": 1})).await?;
    let operator = PagedOperator::start(&sandbox, PageUse::Closed).await?;
    operator.wait_for("handled", options.objects).await?;
    requests(options, &operator).await?;
    views(options, &operator).await?;
    operator.process.terminate().await?;
    idle(options, &sandbox, &objects).await
}

/// Prints the size of the answers that the first view needs, and the time that they take.
async fn requests(options: &Options, operator: &PagedOperator) -> TestResult {
    println!("| request | bytes of JSON | median ms | longest ms |\n|---|---|---|---|");
    let found = format!("/api/objects?search=w{}", options.objects / 2);
    for path in ["/api/overview", "/api/objects", &found] {
        let mut times = Vec::new();
        let mut bytes = 0;
        for _ in 0..options.views {
            let begun = Instant::now();
            bytes = operator.get(path).await?.body.len();
            times.push(begun.elapsed().as_secs_f64() * 1000.0);
        }
        let (median, longest) = median_and_longest(times);
        println!("| `{path}` | {bytes} | {median:.1} | {longest:.1} |");
    }
    Ok(())
}

/// Prints what a browser without a cache loads for the first view, and when it shows the objects.
async fn views(options: &Options, operator: &PagedOperator) -> TestResult {
    let mut times = Vec::new();
    let mut loaded = Value::Null;
    for _ in 0..options.views {
        let browser = Browser::start().await?;
        let rows = ROWS.min(options.objects);
        let watch = format!(
            "new MutationObserver((_, observer) => {{ \
               if (document.querySelectorAll('#objects tr').length < {rows}) return; \
               window.shown = performance.now(); observer.disconnect(); \
             }}).observe(document, {{childList: true, subtree: true}})"
        );
        browser.run_first(&watch).await?;
        browser.open(&operator.url()).await?;
        browser
            .until_text("#found", &options.objects.to_string())
            .await?;
        let shown = browser.run("return window.shown").await?;
        times.push(shown.as_f64().unwrap_or(f64::NAN));
        let sum = "const all = [...performance.getEntriesByType('navigation'), \
                   ...performance.getEntriesByType('resource')]; \
                   return {requests: all.map(it => new URL(it.name).pathname + ' ' + it.transferSize), \
                   bytes: all.reduce((sum, it) => sum + it.transferSize, 0)}";
        loaded = browser.run(sum).await?;
        browser.close().await?;
    }
    let (median, longest) = median_and_longest(times);
    println!(
        "\nfirst view of {} objects in a browser without a cache, {} times: {} bytes with headers, \
         {rows} rows after {median:.0} ms (median), {longest:.0} ms (longest)\n{}\n",
        options.objects,
        options.views,
        loaded["bytes"],
        loaded["requests"],
        rows = ROWS.min(options.objects),
    );
    Ok(())
}

/// Prints the CPU time of operators that run beside each other over handled objects.
async fn idle(options: &Options, sandbox: &Sandbox, objects: &Objects) -> TestResult {
    let mut operators = Vec::new();
    let mut browser = None;
    for page in [PageUse::Off, PageUse::Closed, PageUse::Open] {
        let operator = PagedOperator::start(sandbox, page).await?;
        if page != PageUse::Off {
            operator.wait_for("handled", options.objects).await?;
        }
        if page == PageUse::Open {
            let opened = Browser::start().await?;
            opened.open(&operator.url()).await?;
            opened.until_text("#status", "running").await?;
            browser = Some(opened);
        }
        operators.push((page, operator));
    }
    let mut before = Vec::new();
    for (_, operator) in &operators {
        before.push(usage_when_idle(&operator.process).await?.cpu);
    }
    // All begin in the same moment.
    for (before, (_, operator)) in before.iter_mut().zip(&operators) {
        *before = usage(&operator.process)?.cpu;
    }
    sleep(Duration::from_secs(options.seconds)).await;
    println!(
        "idle over {} handled objects for {} s:\n\n| page | CPU ms | % of a core | resident MB |\n|---|---|---|---|",
        widgets::list(objects).await?.len(),
        options.seconds
    );
    for (before, (page, operator)) in before.iter().zip(&operators) {
        let now = usage(&operator.process)?;
        let used = now.cpu - before;
        println!(
            "| {} | {:.0} | {:.4} | {:.1} |",
            page.title(),
            used * 1000.0,
            used * 100.0 / options.seconds as f64,
            now.resident_megabytes
        );
    }
    if let Some(browser) = browser {
        browser.close().await?;
    }
    for (_, operator) in operators {
        operator.process.terminate().await?;
    }
    Ok(())
}

fn median_and_longest(mut times: Vec<f64>) -> (f64, f64) {
    times.sort_by(f64::total_cmp);
    let at = |place: usize| times.get(place).copied().unwrap_or(f64::NAN);
    (at(times.len() / 2), at(times.len().saturating_sub(1)))
}

// === impl PagedOperator ===

impl PagedOperator {
    async fn start(sandbox: &Sandbox, page: PageUse) -> Result<Self, TestFailure> {
        let client = HealthClient::on_free_port().await?;
        let user = sandbox.administrator(page.title());
        let builder = BenchPeer::Ours
            .prepare(Workload::ColdStart, StatusKind::Field, sandbox, &user)
            .await?;
        let address = format!("http://{}", client.address());
        let builder = match page {
            PageUse::Off => builder,
            PageUse::Closed | PageUse::Open => builder.args(["--page", &address]),
        };
        Ok(Self {
            process: builder.start()?,
            page: client,
        })
    }

    fn url(&self) -> String {
        format!("http://{}/", self.page.address())
    }

    async fn get(&self, path: &str) -> Result<HttpResponse, TestFailure> {
        self.page
            .send(&format!(
                "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            ))
            .await
    }

    /// Waits until the page shows so many objects in this state.
    async fn wait_for(&self, state: &str, count: usize) -> TestResult {
        let path = format!("/api/objects?state={state}");
        loop {
            let shown = self.get(&path).await.map(|it| it.json());
            if shown.is_ok_and(|it| it["total"] == count) {
                return Ok(());
            }
            if let Some(ending) = self.process.ending() {
                let log = self.process.log();
                return Err(TestFailure::new(format!("{ending:?}: {log}")));
            }
            sleep(POLL_INTERVAL).await;
        }
    }
}

// === impl PageUse ===

impl PageUse {
    fn title(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Closed => "closed",
            Self::Open => "open",
        }
    }
}
