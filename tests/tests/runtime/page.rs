//! The live page of operators in processes of their own.

use std::collections::HashSet;
use std::fs;

use kopf_tests::child_process::Ending;
use kopf_tests::{TestFailure, TestResult, eventually};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use crate::page_fixture::{PageFixture, PageOperator};

#[tokio::test]
async fn the_page_shows_which_handlers_are_done_running_waiting_and_failed() -> TestResult {
    let fixture = PageFixture::open("page-states").await?;
    let operator = fixture.start().await?;
    for (name, action) in [("a", "retry"), ("b", "break"), ("c", "wait"), ("d", "")] {
        fixture.create(name, action).await?;
    }
    let waiting = operator.until_object("a", "waiting").await?;
    let handler = &waiting["handlers"][0];
    assert_eq!(handler["id"], "work");
    assert_eq!(handler["progress"], "waiting");
    assert_eq!(handler["attempts"], 1);
    assert_eq!(handler["message"], "not yet");
    assert!(
        handler["until"].as_i64() > waiting["now"].as_i64(),
        "{waiting}"
    );
    assert_eq!(waiting["calls"][0]["outcome"], "temporary");

    let failed = operator.until_object("b", "failed").await?;
    assert_eq!(failed["handlers"][0]["progress"], "failed");
    assert_eq!(failed["message"], "it never works");
    let events = failed["events"].to_string();
    assert!(events.contains("failed permanently"), "{events}");
    let running = operator.until_object("c", "running").await?;
    assert_eq!(running["handlers"][0]["progress"], "running");
    let handled = operator.until_object("d", "handled").await?;
    assert_eq!(handled["handlers"][0]["progress"], "succeeded");
    assert_eq!(handled["reason"], "create");
    let lines = handled["lines"].to_string();
    assert!(lines.contains("worked hard"), "{lines}");

    let overview = operator.get("/api/overview").await?.json();
    assert_eq!(overview["operator"], "page-operator");
    assert_eq!(overview["version"], "1.2.3");
    let kind = format!("Widget.{}", fixture.sandbox.group());
    let states = json!({"failed": 1, "handled": 1, "running": 1, "waiting": 1});
    assert_eq!(overview["states"][&kind], states, "{overview}");
    let calls = operator.get("/api/calls").await?.json();
    assert!(calls[0]["duration"].is_u64(), "{calls}");
    fixture.widgets.delete("d").await?;
    let gone = format!(
        "/api/objects/{}",
        handled["uid"].as_str().unwrap_or_default()
    );
    eventually("a deleted object is not shown", async || {
        let status = operator.get(&gone).await.ok()?.status;
        (status == 404).then_some(())
    })
    .await
}

#[tokio::test]
async fn the_page_shows_the_change_that_an_update_saw() -> TestResult {
    let fixture = PageFixture::open("page-diff").await?;
    let operator = fixture.start().await?;
    fixture.create("one", "").await?;
    operator.until_object("one", "handled").await?;
    let change = json!({"spec": {"size": 2, "db": {"user": "me", "password": "hunter2"}}});
    fixture.widgets.merge("one", change).await?;
    let path = "/api/objects?search=one";
    let found = operator
        .until("the update is handled", path, |it| {
            it["objects"][0]["reason"] == "update" && it["objects"][0]["state"] == "handled"
        })
        .await?;
    let uid = found["objects"][0]["uid"].as_str().unwrap_or_default();
    let shown = operator.get(&format!("/api/objects/{uid}")).await?;
    let changes = &shown.json()["changes"][0]["changes"];
    let size = json!({"path": "spec.size", "op": "change", "old": "1", "new": "2"});
    let changes = changes.as_array().cloned().unwrap_or_default();
    assert!(changes.contains(&size), "{changes:?}");
    let text = Value::from(changes).to_string();
    assert!(text.contains("me") && !text.contains("hunter2"), "{text}");
    Ok(())
}

#[tokio::test]
async fn the_page_shows_daemons_and_the_next_ticks_of_timers() -> TestResult {
    let fixture = PageFixture::open("page-background").await?;
    let operator = fixture.start().await?;
    let body = json!({"metadata": {"labels": {"background": "yes"}}, "spec": {}});
    fixture.widgets.create("one", body).await?;
    let found = operator
        .until("the object is known", "/api/objects", |it| it["total"] == 1)
        .await?;
    let uid = found["objects"][0]["uid"].as_str().unwrap_or_default();
    let shown = operator
        .until(
            "the timer has ticked",
            &format!("/api/objects/{uid}"),
            |it| {
                it["background"][1]["next_tick"].as_i64() > it["now"].as_i64()
                    && it["calls"].to_string().contains("tick")
            },
        )
        .await?;
    let background = &shown["background"];
    assert_eq!(background[0]["id"], "guard");
    assert_eq!(background[0]["type"], "daemon");
    assert_eq!(background[0]["state"], "running");
    assert_eq!(background[1]["id"], "tick");
    assert_eq!(background[1]["type"], "timer");
    Ok(())
}

#[tokio::test]
async fn an_open_page_gets_an_event_when_something_happens() -> TestResult {
    let fixture = PageFixture::open("page-stream").await?;
    let operator = fixture.start().await?;
    let mut stream = TcpStream::connect(&operator.address).await?;
    let request = "GET /api/stream HTTP/1.1\r\nHost: localhost\r\n\r\n";
    stream.write_all(request.as_bytes()).await?;
    let mut lines = BufReader::new(stream).lines();
    let mut next_revision = async || {
        while let Some(line) = lines.next_line().await? {
            if let Some(revision) = line.strip_prefix("data: ") {
                return Ok::<u64, TestFailure>(revision.parse()?);
            }
        }
        Err(TestFailure::new("the stream has ended"))
    };
    let first = next_revision().await?;
    fixture.create("one", "").await?;
    let next = next_revision().await?;
    assert!(next > first, "{first} {next}");
    Ok(())
}

#[tokio::test]
async fn requests_under_other_names_and_from_other_sites_are_refused() -> TestResult {
    let fixture = PageFixture::open("page-origin").await?;
    let operator = fixture.start().await?;
    let host = format!("Host: {}", operator.address);
    for path in [
        "/",
        "/page.js",
        "/page.css",
        "/api/overview",
        "/api/objects",
        "/api/calls",
    ] {
        let get = format!("GET {path}");
        let allowed = operator.send(&get, &[&host]).await?;
        assert_eq!(allowed.status, 200, "{path}");
        let head = allowed.head.to_lowercase();
        for header in [
            "content-security-policy: default-src 'none'",
            "x-content-type-options: nosniff",
            "cache-control: no-store",
        ] {
            assert!(head.contains(header), "{path}: {head}");
        }
        assert!(!head.contains("access-control-allow-origin"), "{head}");
        for headers in [
            &["Host: evil.example"][..],
            &[&host, "Origin: http://evil.example"],
            &[&host, "Origin: null"],
            &[&host, "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: cors"],
        ] {
            let refused = operator.send(&get, headers).await?;
            assert_eq!(refused.status, 403, "{path} {headers:?}");
            assert!(!refused.body.contains("page-operator"), "{}", refused.body);
        }
    }
    for method in ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"] {
        let refused = operator
            .send(&format!("{method} /api/objects"), &[&host])
            .await?;
        assert_eq!(refused.status, 405, "{method}");
    }
    assert_eq!(operator.get("/api/other").await?.status, 404);
    Ok(())
}

#[tokio::test]
async fn contents_of_secrets_are_never_shown() -> TestResult {
    let fixture = PageFixture::open("page-secrets").await?;
    let operator = fixture.start().await?;
    let secrets = fixture.sandbox.objects("v1", "Secret").await?;
    secrets
        .create("login", json!({"stringData": {"key": "opensesame-1"}}))
        .await?;
    operator.until_object("login", "handled").await?;
    secrets
        .merge("login", json!({"stringData": {"key": "opensesame-2"}}))
        .await?;
    let path = "/api/objects?search=login&state=handled";
    let found = operator
        .until("the update is handled", path, |it| {
            it["objects"][0]["reason"] == "update"
        })
        .await?;
    let uid = found["objects"][0]["uid"].as_str().unwrap_or_default();
    let detail = format!("/api/objects/{uid}");
    let shown = operator.get(&detail).await?;
    assert!(shown.body.contains("data.key"), "{}", shown.body);
    for path in [path, &detail, "/api/overview", "/api/calls"] {
        let body = operator.get(path).await?.body;
        // In plain text, and the common begin of both in base64.
        for secret in ["opensesame", "b3BlbnNlc2FtZS"] {
            assert!(!body.contains(secret), "{path}: {body}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn the_page_is_off_unless_asked_for_and_stays_on_this_machine() -> TestResult {
    let fixture = PageFixture::open("page-off").await?;
    let off = fixture.prepare()?.start()?;
    fixture.create("one", "").await?;
    off.wait_for_log("Creation is processed").await?;
    assert_eq!(listening(off.pid())?, 0);
    assert_eq!(off.terminate().await?, Ending::Exit(0));

    let on = fixture.start().await?;
    assert_eq!(listening(on.process.pid())?, 1);
    assert_eq!(on.process.terminate().await?, Ending::Exit(0));

    let open = ["--page", "http://0.0.0.0:0"];
    let refused = fixture.prepare()?.args(open).start()?;
    assert_eq!(refused.wait().await?, Ending::Exit(6));
    assert!(
        refused.log().contains("can be reached from other machines"),
        "{}",
        refused.log()
    );

    let named = fixture.prepare()?.args(open);
    let named = PageOperator::start(named.args(["--page-host", "ops.example.com"])).await?;
    let port = named.address.rsplit_once(':').map_or("", |(_, port)| port);
    let named = PageOperator {
        address: format!("127.0.0.1:{port}"),
        ..named
    };
    let status = async |host: &str| {
        let answer = named.send("GET /api/overview", &[host]).await;
        answer.map(|it| it.status)
    };
    assert_eq!(status("Host: ops.example.com").await?, 200);
    assert_eq!(status("Host: evil.example").await?, 403);
    Ok(())
}

#[tokio::test]
async fn edits_need_the_option_and_the_token_and_the_own_origin() -> TestResult {
    let fixture = PageFixture::open("page-edits").await?;
    let read_only = fixture.start().await?;
    fixture.create("one", "retry").await?;
    let waiting = read_only.until_object("one", "waiting").await?;
    let path = format!(
        "/api/objects/{}",
        waiting["uid"].as_str().unwrap_or_default()
    );
    for (first, status) in [
        (format!("POST {path}/retry"), 404),
        (format!("POST {path}/delete"), 404),
        (format!("GET {path}/source"), 404),
        (format!("POST {path}"), 405),
    ] {
        let host = format!("Host: {}", read_only.address);
        let origin = format!("Origin: http://{}", read_only.address);
        let refused = read_only.send(&first, &[&host, &origin]).await?;
        assert_eq!(refused.status, status, "{first}");
    }
    read_only.process.terminate().await?;

    let edits = ["--page", "http://127.0.0.1:0", "--page-edits"];
    let operator = PageOperator::start(fixture.prepare()?.args(edits)).await?;
    operator.until_object("one", "waiting").await?;
    let host = format!("Host: {}", operator.address);
    let origin = format!("Origin: http://{}", operator.address);
    let token = format!("Kopf-Page-Token: {}", operator.token);
    let delete = format!("POST {path}/delete");
    for headers in [
        &[&*host, &*origin][..],
        &[&*host, &*token],
        &[&*host, &*origin, "Kopf-Page-Token: 00"],
        &[&*host, "Origin: http://evil.example", &*token],
        &["Host: evil.example", "Origin: http://evil.example", &*token],
    ] {
        assert_eq!(
            operator.send(&delete, headers).await?.status,
            403,
            "{headers:?}"
        );
    }
    // A read does not show the token.
    for path in ["/", "/page.js", "/api/overview"] {
        let shown = operator.get(path).await?;
        assert!(!shown.body.contains(&operator.token), "{path}");
    }

    let own = [&*host, &*origin, &*token];
    let retried = operator.send(&format!("POST {path}/retry"), &own).await?;
    assert_eq!(retried.status, 200, "{}", retried.body);
    operator
        .until("the second attempt", &path, |it| {
            it["handlers"][0]["attempts"] == 2
        })
        .await?;
    let source = operator
        .send(&format!("GET {path}/source"), &own)
        .await?
        .json();
    let seen = source["spec"].as_str().unwrap_or_default();
    let spec: Value = serde_json::from_str(seen)?;
    assert_eq!(spec, json!({"do": "retry", "size": 1}));
    // A write that leaves the spec as it is, such as those of the operator, is no conflict.
    let note = json!({"metadata": {"annotations": {"other": "note"}}});
    fixture.widgets.merge("one", note).await?;
    let spec = json!({"do": "", "size": 3}).to_string();
    let edited = json!({"seen": seen, "spec": spec}).to_string();
    let length = format!("Content-Length: {}", edited.len());
    let apply = [&*host, &*origin, &*token, &*length];
    let applied = operator
        .send_with(&format!("POST {path}/apply"), &apply, &edited)
        .await?;
    assert_eq!(applied.status, 200, "{}", applied.body);
    let size = fixture.widgets.get("one").await?.data["spec"]["size"].clone();
    assert_eq!(size, 3);
    let outdated = operator
        .send_with(&format!("POST {path}/apply"), &apply, &edited)
        .await?;
    assert_eq!(outdated.status, 409, "{}", outdated.body);
    assert!(
        outdated.body.contains("has changed meanwhile"),
        "{}",
        outdated.body
    );
    assert_eq!(operator.send(&delete, &own).await?.status, 200);
    fixture.widgets.wait_gone("one").await
}

/// The number of TCP sockets on which a process listens.
fn listening(pid: i32) -> Result<usize, TestFailure> {
    let mut sockets = HashSet::new();
    for entry in fs::read_dir(format!("/proc/{pid}/fd"))? {
        if let Ok(target) = fs::read_link(entry?.path()) {
            let target = target.to_string_lossy().into_owned();
            let inode = target
                .strip_prefix("socket:[")
                .map(|it| it.trim_end_matches(']').to_owned());
            sockets.extend(inode);
        }
    }
    let mut count = 0;
    for table in ["tcp", "tcp6"] {
        let table = fs::read_to_string(format!("/proc/{pid}/net/{table}"))?;
        for line in table.lines().skip(1) {
            let fields: Vec<&str> = line.split_whitespace().collect();
            // The state 0A is LISTEN.
            let is_listening = fields.get(3) == Some(&"0A");
            let is_own = fields.get(9).is_some_and(|inode| sockets.contains(*inode));
            count += usize::from(is_listening && is_own);
        }
    }
    Ok(count)
}
