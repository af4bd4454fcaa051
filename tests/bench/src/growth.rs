//! Growth: starts of an operator over a growing number of handled objects.

use clap::Args;
use kopf_tests::{PrivateControlPlane, Sandbox, TestResult};
use serde_json::json;

use crate::cold_start::writes_of;
use crate::peer::{BenchPeer, Workload};
use crate::process::usage_when_idle;
use crate::widgets::{self, StatusKind};

/// The options of this benchmark.
#[derive(Clone, Debug, Args)]
pub(crate) struct Options {
    /// How many objects there are at each start
    #[arg(long, value_delimiter = ',', default_values_t = [0, 25_000, 50_000, 100_000])]
    objects: Vec<usize>,
    /// The operators to measure
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [BenchPeer::TunedController, BenchPeer::Ours])]
    peers: Vec<BenchPeer>,
}

/// Measures and prints a table.
pub(crate) async fn run(options: &Options) -> TestResult {
    println!("starts over objects that were handled before");
    println!(
        "{:<18} {:>9} {:>8} {:>9} {:>13} {:>7}",
        "peer", "objects", "CPU s", "peak MB", "bytes/object", "writes"
    );
    let plane = PrivateControlPlane::start().await?;
    let sandbox = Sandbox::open_on(plane.handle(), "growth").await?;
    let objects = widgets::define(&sandbox, StatusKind::Field).await?;
    let mut present = 0;
    let mut smallest: Vec<(BenchPeer, usize, f64)> = Vec::new();
    for &count in &options.objects {
        widgets::create_handled(&objects, present..count, &json!({"size": 1})).await?;
        present = present.max(count);
        for &peer in &options.peers {
            let identity = sandbox.administrator(&format!("{peer}-{count}"));
            let operator = peer
                .start(Workload::ColdStart, StatusKind::Field, &sandbox, &identity)
                .await?;
            kopf_tests::eventually("the operator watches", async || {
                let requests = sandbox.count_requests_of(&identity).await.ok()?;
                (requests.of("widgets", "watch") > 0).then_some(())
            })
            .await?;
            let usage = usage_when_idle(&operator).await?;
            operator.terminate().await?;
            let writes = writes_of(&sandbox, &identity).await?;
            let bytes = usage.peak_megabytes * 1024.0 * 1024.0;
            let base = smallest.iter().find(|it| it.0 == peer).copied();
            let each = base.map(|(_, less, base)| (bytes - base) / (count - less) as f64);
            if base.is_none() {
                smallest.push((peer, count, bytes));
            }
            println!(
                "{:<18} {:>9} {:>8.2} {:>9.1} {:>13} {:>7}",
                peer,
                count,
                usage.cpu,
                usage.peak_megabytes,
                each.map_or_else(|| "-".to_owned(), |it| format!("{it:.0}")),
                writes
            );
        }
    }
    Ok(())
}
