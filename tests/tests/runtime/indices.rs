//! Indices: complete before anything is handled, right afterwards, and found from everywhere.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kopf_runtime::{
    ChangeHandler, Index, IndexHandler, On, QueueingSettings, Resource, ResourceHandlers,
    ResourceSpec, Scope, Settings, StatusSubresource,
};
use kopf_tests::TestResult;
use serde_json::json;

use crate::bench::Bench;

/// The names of ConfigMaps by what their `widget` says.
#[derive(Clone, Copy)]
struct ByWidget;

impl Index for ByWidget {
    type Key = String;
    type Value = String;
    const NAME: &'static str = "by_widget";
}

const CONFIG_MAP: ResourceSpec = ResourceSpec {
    group: "",
    version: "v1",
    kind: "ConfigMap",
    plural: "configmaps",
    scope: Scope::Namespaced,
    status: StatusSubresource::Absent,
};

/// How long the function of the index takes.
struct Pace(Duration);

/// ConfigMaps that have nothing but an index.
fn indexed(pace: Pace) -> ResourceHandlers {
    Resource::<ConfigMap, Pace>::new(CONFIG_MAP, &Arc::new(pace))
        .index(ByWidget, IndexHandler::new(), |pace, cx| {
            Box::pin(async move {
                tokio::time::sleep(pace.0).await;
                let data = cx.object().data.as_ref();
                let widget = data.and_then(|data| data.get("widget"));
                let name = cx.name().to_owned();
                Ok(widget
                    .map(|widget| (widget.clone(), name))
                    .into_iter()
                    .collect())
            })
        })
        .build()
}

#[tokio::test]
async fn indices_are_complete_before_any_handler_runs_even_with_one_worker() -> TestResult {
    let mut bench = Bench::new("index-first").await?;
    let maps = bench.sandbox.objects("v1", "ConfigMap").await?;
    for number in 0..40 {
        let body = json!({"data": {"widget": "one"}});
        maps.create(&format!("map-{number}"), body).await?;
    }
    for name in ["one", "two", "three"] {
        bench.create(name, 1).await?;
    }
    bench.script("create_fn", |cx| {
        cx.patch()
            .set("status.found", cx.index(ByWidget).get("one").len());
        Ok(())
    });
    let widgets = bench.handlers([ChangeHandler::new("create_fn", On::create())]);
    let maps = indexed(Pace(Duration::from_millis(20)));
    let settings = Settings {
        queueing: QueueingSettings {
            worker_limit: 1,
            ..QueueingSettings::default()
        },
        ..Settings::default()
    };
    let operator = bench.start_all([widgets, maps], settings).await?;
    for name in ["one", "two", "three"] {
        bench
            .objects
            .wait_until(name, "it has found all", |it| {
                it.data["status"]["found"] == json!(40)
            })
            .await?;
    }
    operator.stop().await
}
