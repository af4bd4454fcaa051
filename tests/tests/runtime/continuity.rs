//! A killed operator continues from the progress on the objects.

use std::time::Duration;

use kopf_runtime::{ChangeHandler, Old, On, Reason};
use kopf_tests::child_process::{ChildProcess, Ending};
use kopf_tests::{Objects, Sandbox, TestFailure, TestResult};
use kube::ResourceExt as _;
use serde_json::json;

use crate::fixture::{HandlerFixture, LAST_HANDLED, records};

struct RestartFixture {
    sandbox: Sandbox,
    objects: Objects,
}

impl RestartFixture {
    async fn new(name: &str) -> Result<Self, TestFailure> {
        let sandbox = Sandbox::open(name).await?;
        let objects = sandbox.define("Widget").await?;
        Ok(Self { sandbox, objects })
    }

    fn start(&self) -> Result<ChildProcess, TestFailure> {
        let identity = self.sandbox.administrator("operator");
        let operator = self
            .sandbox
            .operator(env!("CARGO_BIN_EXE_flaky-operator"), &identity)?
            .env("FLAKY_GROUP", self.sandbox.group())
            .arg("--namespace")
            .arg(self.sandbox.namespace());
        Ok(operator.start()?)
    }

    /// Waits until both handlers have handled this size, and no progress is left.
    async fn wait_until_settled(&self, name: &str, size: u32) -> TestResult {
        let state = format!("{{\"spec\":{{\"size\":{size}}}}}\n");
        self.objects
            .wait_until(name, &format!("both handlers have handled {size}"), |it| {
                it.data["status"] == json!({"quick": size, "flaky": size})
                    && it.annotations().get(LAST_HANDLED) == Some(&state)
                    && records(it).is_empty()
            })
            .await?;
        Ok(())
    }

    async fn edit(&self, name: &str, sizes: std::ops::RangeInclusive<u32>) -> TestResult {
        for size in sizes {
            tokio::time::sleep(Duration::from_millis(fastrand::u64(0..1500))).await;
            let edit = json!({"spec": {"size": size}});
            self.objects.merge(name, edit).await?;
        }
        Ok(())
    }
}

#[tokio::test]
async fn no_edit_is_lost_when_the_operator_is_killed_repeatedly() -> TestResult {
    const EDITS: u32 = 5;
    let fixture = RestartFixture::new("kills").await?;
    let names: Vec<String> = (0..40).map(|number| format!("w{number}")).collect();
    let mut operator = fixture.start()?;
    let edits = futures::future::try_join_all(names.iter().map(async |name| {
        fixture
            .objects
            .create(name, json!({"spec": {"size": 0}}))
            .await?;
        fixture.edit(name, 1..=EDITS).await
    }));
    let kills = async {
        for _ in 0..4 {
            tokio::time::sleep(Duration::from_millis(fastrand::u64(500..1500))).await;
            operator.kill().await?;
            operator = fixture.start()?;
        }
        Ok::<_, TestFailure>(operator)
    };
    let (edited, operator) = futures::future::join(edits, kills).await;
    edited?;
    let operator = operator?;
    for name in &names {
        fixture.wait_until_settled(name, EDITS).await?;
    }
    assert_eq!(operator.terminate().await?, Ending::Exit(0));
    Ok(())
}

#[tokio::test]
async fn a_pending_retry_survives_a_kill_of_the_operator() -> TestResult {
    let fixture = RestartFixture::new("kill").await?;
    let operator = fixture.start()?;
    fixture
        .objects
        .create("one", json!({"spec": {"size": 1}}))
        .await?;
    fixture
        .objects
        .wait_until("one", "the retry is recorded", |it| {
            records(it)
                .get("flaky")
                .is_some_and(|it| it["retries"] == 1)
        })
        .await?;
    operator.kill().await?;
    let operator = fixture.start()?;
    fixture.wait_until_settled("one", 1).await?;
    let log = operator.log();
    assert!(!log.contains("Handler 'quick'"), "{log}");
    assert!(log.contains("Handler 'flaky' succeeded."), "{log}");
    assert_eq!(operator.terminate().await?, Ending::Exit(0));
    Ok(())
}

#[tokio::test]
async fn a_handler_is_called_with_an_unknown_old_value_if_the_state_that_it_saw_is_unknown()
-> TestResult {
    let mut fixture = HandlerFixture::new("unknown").await?;
    fixture.script("update", |cx| {
        let is_unknown = cx.old_raw() == Old::Unknown && !cx.diff().is_empty();
        cx.patch().status(json!({"oldIsUnknown": is_unknown}));
        Ok(())
    });
    // The update to another size has succeeded and was reverted. The state that the handler saw is
    // noted as the difference to a state that is not the last handled one.
    let record = json!({"started": "2020-01-01T00:00:00+00:00", "purpose": "update",
        "stopped": "2020-01-01T00:00:05+00:00", "retries": 1, "success": true});
    let notes = json!({"base": "of another operator", "states": [{"merge": {}}],
        "handlers": {"update": ["2020-01-01T00:00:05+00:00", 1, 0, false]}});
    let object = json!({"spec": {"size": 1}, "metadata": {"annotations": {
        LAST_HANDLED: json!({"spec": {"size": 1}}).to_string(),
        "kopf.zalando.org/update": record.to_string(),
        "kopf.zalando.org/last-seen-states": notes.to_string(),
    }}});
    fixture.objects.create("one", object).await?;
    let handlers = fixture.handlers([ChangeHandler::new("update", On::update())]);
    let operator = fixture.start(handlers).await?;
    let call = fixture.next_call().await;
    assert_eq!((call.reason, call.retry), (Reason::Update, 0));
    let one = fixture.wait_until_handled("one", 1).await?;
    assert_eq!(one.data["status"], json!({"oldIsUnknown": true}));
    assert_eq!(fixture.calls_so_far(), [], "it is called once");
    let (writes, _) = fixture.writes(&operator).await?;
    assert!(writes <= 3, "{writes} writes");
    operator.stop().await
}
