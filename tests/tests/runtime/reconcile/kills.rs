//! Operators that are killed in the middle of a call never delete what a complete call would keep.

use std::collections::BTreeSet;

use kopf_runtime::OPERATOR_LABEL;
use kopf_tests::{Objects, TestResult, eventually};
use kube::ResourceExt as _;
use kube::api::ListParams;
use serde_json::{Value, json};

use super::{config_maps, kept_maps, reconcile};
use crate::fixture::HandlerFixture;

/// The number of kills.
const KILLS: u64 = 10;

/// A sequence of numbers that follows from the seed.
fn drawn(seed: u64, below: u64) -> u64 {
    let mixed = (seed + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 33) % below
}

async fn children(maps: &Objects) -> BTreeSet<(String, String)> {
    let params = ListParams::default().labels(&format!("{OPERATOR_LABEL}=fixture"));
    let listed = maps.api().list(&params).await;
    let items = listed.map(|list| list.items).unwrap_or_default();
    let children = items.iter().map(|it| {
        let size = it.data["data"]["size"].as_str().unwrap_or_default();
        (it.name_any(), size.to_owned())
    });
    children.collect()
}

/// The wanted children in round `round`: `always` stays, others come and go.
fn wanted(round: u64) -> Value {
    let mut maps = json!({"always": {"size": "1"}});
    for at in 0..6 {
        maps[format!("map-{at}")] = match (round + at) % 3 {
            0 => Value::Null,
            _ => json!({"size": (round / 2).to_string()}),
        };
    }
    json!({"spec": {"maps": maps}})
}

#[tokio::test]
async fn a_kill_in_the_middle_of_a_call_never_deletes_what_is_wanted() -> TestResult {
    let mut fixture = HandlerFixture::new("kills").await?;
    let maps = config_maps(&fixture).await?;
    fixture.objects.create("one", wanted(0)).await?;
    let mut always = None;
    for round in 0..KILLS {
        let handlers = kept_maps(&fixture, reconcile());
        let (proxy, operator) = fixture.start_through_proxy(handlers).await?;
        fixture.objects.merge("one", wanted(round)).await?;
        let limit = usize::try_from(drawn(round, 12))?;
        let is_child = |uri: &str| uri.contains("/configmaps/");
        eventually("it is killed or done", async || {
            let sent = proxy.requests();
            let sent = sent.iter().filter(|it| is_child(&it.uri)).count();
            let done = expected(round) == children(&maps).await;
            (sent >= limit || done).then_some(())
        })
        .await?;
        drop(operator);
        let Ok(kept) = maps.get("always").await else {
            assert_eq!(always, None, "round {round}: it is always wanted");
            continue;
        };
        let uid = always.get_or_insert_with(|| kept.uid()).clone();
        assert_eq!(kept.uid(), uid, "round {round}: it was never deleted");
    }
    let handlers = kept_maps(&fixture, reconcile());
    let operator = fixture.start(handlers).await?;
    eventually(
        "all children are as the last state wants them",
        async || (children(&maps).await == expected(KILLS - 1)).then_some(()),
    )
    .await?;
    operator.stop().await
}

fn expected(round: u64) -> BTreeSet<(String, String)> {
    let wanted = wanted(round);
    let maps = wanted["spec"]["maps"].as_object();
    let maps = maps.into_iter().flatten();
    let wanted = maps.filter_map(|(name, data)| {
        let size = data["size"].as_str()?;
        Some((name.clone(), size.to_owned()))
    });
    wanted.collect()
}
