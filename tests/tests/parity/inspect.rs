//! `kopf-gen inspect` reads objects of Python Kopf as it reads ours.

use kopf_tests::child_process::Ending;
use kopf_tests::{TestFailure, TestResult, workspace};
use serde_json::{Value, json};

use crate::scenario::{Implementation, ScenarioRun, waits_after};

/// What is shown of an object whose operator was killed between two attempts.
async fn inspected(implementation: Implementation) -> Result<Value, TestFailure> {
    let program = workspace::build_program("kopf-gen")?;
    let mut run = ScenarioRun::open("takeover", implementation).await?;
    run.start().await?;
    run.create("one", json!({"spec": {"size": 1}})).await?;
    run.note("one", "waiting", waits_after("second", 1)).await?;
    run.kill().await?;
    let identity = run.sandbox.administrator("reader");
    let kind = format!("widgets.{}", run.sandbox.group());
    let inspect = run
        .sandbox
        .operator(&program, &identity)?
        .args([
            "inspect",
            &kind,
            "-o",
            "json",
            "-n",
            run.sandbox.namespace(),
        ])
        .start()?;
    assert_eq!(inspect.wait().await?, Ending::Exit(0), "{}", inspect.log());
    let shown: Value = serde_json::from_str(&inspect.log()).expect("the output is JSON");
    let object = &shown["objects"][0];
    let handlers = object["handlers"].as_array().cloned().unwrap_or_default();
    let handlers = handlers.iter().map(|handler| {
        json!([
            handler["id"],
            handler["attempts"],
            handler["message"],
            handler["reason"]
        ])
    });
    Ok(json!({
        "name": object["name"],
        // The time of the next attempt may have come.
        "is open": matches!(object["state"].as_str(), Some("waiting" | "handling")),
        "next": object["nextAttempt"].is_string() || object["state"] == "handling",
        "handlers": handlers.collect::<Vec<_>>(),
        "finalizers": object["finalizers"],
    }))
}

#[tokio::test]
async fn inspect_shows_objects_of_kopf_as_it_shows_ours() -> TestResult {
    let (kopf, ours) = tokio::try_join!(
        inspected(Implementation::Kopf),
        inspected(Implementation::Ours)
    )?;
    assert_eq!(kopf, ours);
    assert_eq!(kopf["is open"], true, "{kopf}");
    let handlers = json!([
        ["first", 1, null, "create"],
        ["second", 1, "wait for it", "create"]
    ]);
    assert_eq!(kopf["handlers"], handlers);
    Ok(())
}
