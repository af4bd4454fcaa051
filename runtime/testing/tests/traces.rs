//! The traces of an operator in a separate process, as a collector receives them. This program is
//! both the test and the operator.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use kopf_runtime::prelude::*;
use kopf_runtime::{ChangeHandler, On, Operator, Resource, ResourceSpec, Scope, StatusSubresource};
use kopf_testing::{TestFailure, TestResult, on_cluster};

/// The variable that makes this program the operator.
const OPERATOR: &str = "TRACES_OPERATOR";

const CONFIG_MAPS: ResourceSpec = ResourceSpec {
    group: "",
    version: "v1",
    kind: "ConfigMap",
    plural: "configmaps",
    scope: Scope::Namespaced,
    status: StatusSubresource::Absent,
};

/// The requests that the collector has received so far, with their bodies.
type ReceivedRequests = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

fn main() -> ExitCode {
    if std::env::var_os(OPERATOR).is_some() {
        return operator().main();
    }
    match spans_of_a_whole_process_arrive_at_a_collector() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // A failure to write to stderr cannot be reported.
            let _ = writeln!(std::io::stderr(), "{failure:?}");
            ExitCode::FAILURE
        }
    }
}

fn operator() -> Operator {
    let handler = ChangeHandler::new("attend", On::create());
    let resource = Resource::<Value, ()>::new(CONFIG_MAPS, &Arc::new(()));
    let resource = resource.change(handler, |(), cx| {
        Box::pin(async move {
            match cx.retry() {
                0 => Err(HandlerError::temporary_after(
                    Duration::from_millis(100),
                    "not yet",
                )),
                _ => Ok(()),
            }
        })
    });
    Operator::new("traced-operator").resource(resource.build())
}

fn spans_of_a_whole_process_arrive_at_a_collector() -> TestResult {
    let (endpoint, arrived) = collector()?;
    on_cluster(async |cluster| {
        let maps = cluster.objects("v1", "ConfigMap", "configmaps");
        let operator = cluster
            .program(std::env::current_exe()?)
            .arg("--standalone")
            .env(OPERATOR, "yes")
            .env("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint)
            .start()
            .await?;
        maps.create("traced-object", json!({"data": {"a": "b"}}))
            .await?;
        operator.wait_for_log("Handler 'attend' succeeded.").await?;
        // The operator sends its last spans before it ends.
        operator.stop().await
    })?;
    let arrived = arrived
        .lock()
        .map_err(|_| TestFailure::new("the collector has panicked"))?;
    let heads: Vec<&str> = arrived.iter().map(|(head, _)| head.as_str()).collect();
    assert!(
        heads.iter().all(|it| it.starts_with("POST /v1/traces ")),
        "{heads:?}"
    );
    let bodies: Vec<u8> = arrived.iter().flat_map(|(_, body)| body.clone()).collect();
    // Protobuf has texts as plain bytes.
    let count = |text: &str| {
        let windows = bodies.windows(text.len());
        windows.filter(|window| *window == text.as_bytes()).count()
    };
    for text in [
        "service.name",
        "traced-operator",
        "traced-object",
        "ConfigMap",
    ] {
        assert!(count(text) > 0, "no span has {text:?}");
    }
    assert!(count("attend") >= 2, "there is no span for each attempt");
    Ok(())
}

/// Starts a collector that accepts all requests until this process ends.
fn collector() -> Result<(String, ReceivedRequests), TestFailure> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let endpoint = format!("http://{}", listener.local_addr()?);
    let arrived = ReceivedRequests::default();
    let received = Arc::clone(&arrived);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let received = Arc::clone(&received);
            std::thread::spawn(move || while receive(&stream, &received).is_some() {});
        }
    });
    Ok((endpoint, arrived))
}

/// Receives one request; none if the client has closed the connection.
fn receive(stream: &TcpStream, received: &ReceivedRequests) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let length = head.lines().find_map(|line| {
        let line = line.to_lowercase();
        line.strip_prefix("content-length: ")?.parse::<usize>().ok()
    });
    let mut body = vec![0; length?];
    reader.read_exact(&mut body).ok()?;
    received.lock().ok()?.push((head, body));
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let mut stream = stream;
    stream.write_all(answer).ok()
}
