//! Our definitions and their objects on a real API server.

#[path = "apiserver/check.rs"]
mod check;
#[path = "apiserver/server.rs"]
mod server;
#[path = "apiserver/summary.rs"]
mod summary;

use std::io::{self, Write as _};

use kopf_corpus::corpus::{Corpus, Subset};
use kopf_tests::{TestResult, User};

#[tokio::test(flavor = "multi_thread")]
async fn the_api_server_accepts_objects_before_and_after_the_types() -> TestResult {
    let summary = check::check(&Corpus::own()?, Subset::All).await?;
    assert_eq!(summary.problems(), Vec::<String>::new(), "{summary}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_server_rejects_schemas_that_are_not_structural() -> TestResult {
    let plane = check::start_control_plane().await?;
    let client = plane.client(&User::administrator("corpus")).await?;
    for file in Corpus::not_structural()?.files(Subset::All) {
        let definition = server::prepared(&file.definition()?);
        let reason = server::install(&client, &definition, &[]).await;
        writeln!(io::stderr(), "{}: {reason:?}", file.stem)?;
        assert!(reason.is_err(), "{} is accepted", file.stem);
    }
    Ok(())
}
