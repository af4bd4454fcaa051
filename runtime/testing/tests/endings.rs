//! Operators that end by themselves in a test. This program is both the test and the operator.

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kopf_runtime::prelude::*;
use kopf_runtime::{
    ChangeHandler, HookHandler, Hooks, On, Operator, PeeringSettings, Resource, ResourceSpec,
    Scope, StatusSubresource,
};
use kopf_testing::{Cluster, OperatorProgram, TestFailure, TestResult, on_cluster};

/// The variable that makes this program the operator.
const OPERATOR: &str = "ENDINGS_OPERATOR";

/// The variable that makes the startup of the operator fail.
const FAIL: &str = "ENDINGS_FAIL";

const CONFIG_MAPS: ResourceSpec = ResourceSpec {
    group: "",
    version: "v1",
    kind: "ConfigMap",
    plural: "configmaps",
    scope: Scope::Namespaced,
    status: StatusSubresource::Absent,
};

/// Much shorter than the timeout of a condition.
const SOON: Duration = Duration::from_secs(20);

fn main() -> ExitCode {
    if std::env::var_os(OPERATOR).is_some() {
        return operator(std::env::var_os(FAIL).is_some()).main();
    }
    let tests: [fn() -> TestResult; 4] = [
        a_program_that_ends_while_a_test_waits_is_reported,
        a_program_that_does_not_start_is_reported,
        an_operator_in_the_test_program_that_does_not_start_is_reported,
        an_expected_end_is_not_a_failure,
    ];
    for test in tests {
        if let Err(failure) = test() {
            // A failure to write to stderr cannot be reported.
            let _ = writeln!(std::io::stderr(), "{failure:?}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// An operator whose startup fails, or whose handler ends the process.
fn operator(fails: bool) -> Operator {
    let state = Arc::new(fails);
    let resource = Resource::<Value, bool>::new(CONFIG_MAPS, &state);
    let resource = resource.change(ChangeHandler::new("crash", On::create()), |_, cx| {
        Box::pin(async move {
            if cx.name().starts_with("bad") {
                error!("the handler ends the process");
                std::process::exit(42);
            }
            Ok(())
        })
    });
    let hooks = Hooks::new(&state).startup(HookHandler::new("prepare"), |fails, _| {
        Box::pin(async move {
            if *fails {
                return Err(HandlerError::permanent("as the test asks"));
            }
            Ok(())
        })
    });
    Operator::new("ending-operator")
        .peering(PeeringSettings::standalone())
        .handlers(hooks.build())
        .resource(resource.build())
}

fn program(cluster: &Cluster) -> Result<OperatorProgram, TestFailure> {
    let path = std::env::current_exe()?;
    Ok(cluster.program(path).env(OPERATOR, "yes"))
}

fn a_program_that_ends_while_a_test_waits_is_reported() -> TestResult {
    on_cluster(async |cluster| {
        let cluster = &cluster.within(3 * SOON);
        let _operator = program(cluster)?.start().await?;
        let maps = cluster.objects("v1", "ConfigMap", "configmaps");
        let begun = Instant::now();
        maps.create("bad", json!({"data": {"a": "b"}})).await?;
        let waited = maps.until("bad", "it is labelled", |it| it.metadata.labels.is_some());
        let failure = waited.await.expect_err("no operator labels it");
        let message = failure.message();
        assert!(
            message.contains("the operator has ended with exit code 42: "),
            "{message}"
        );
        assert!(
            message.contains("the handler ends the process"),
            "{message}"
        );
        assert!(begun.elapsed() < SOON, "the test does not wait any longer");
        Ok(())
    })
}

fn a_program_that_does_not_start_is_reported() -> TestResult {
    on_cluster(async |cluster| {
        let started = program(cluster)?.env(FAIL, "yes").start().await;
        let failure = started.err().expect("its startup handler fails");
        let message = failure.message();
        assert!(
            message.starts_with(
                "the operator has ended with exit code 4: the operator could not start: `prepare` \
                 has failed: as the test asks"
            ),
            "{message}"
        );
        Ok(())
    })
}

fn an_operator_in_the_test_program_that_does_not_start_is_reported() -> TestResult {
    on_cluster(async |cluster| {
        let started = cluster.start(operator(true)).await;
        let failure = started.err().expect("its startup handler fails");
        let message = failure.message();
        assert!(
            message.starts_with(
                "the operator has ended with exit code 4: the operator could not start: `prepare` \
                 has failed: as the test asks"
            ),
            "{message}"
        );
        Ok(())
    })
}

fn an_expected_end_is_not_a_failure() -> TestResult {
    on_cluster(async |cluster| {
        let operator = program(cluster)?.start().await?;
        let maps = cluster.objects("v1", "ConfigMap", "configmaps");
        maps.create("bad", json!({"data": {"a": "b"}})).await?;
        let end = operator.ended().await?;
        assert_eq!(end.exit_code, Some(42));
        let name = format!("[{}/bad]", cluster.namespace());
        assert_eq!(end.reason, format!("{name} the handler ends the process"));
        maps.until("bad", "it still exists", |_| true).await?;
        Ok(())
    })
}
