//! Tests of downloads, from a stand-in server on this machine.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use ring::digest::{SHA256, digest};

use super::*;

mod stand_in;

pub(crate) use stand_in::{MirrorFiles, StandIn};
use stand_in::{StandInAnswer, StandInRequest};

const VERSION: &str = "v1.36.3";
const BINARY: &str = "/v1.36.3/bin/linux/amd64/kubectl";

/// Bytes in which every position differs from its neighbours.
fn content(length: usize) -> Vec<u8> {
    (0..length)
        .map(|at| u8::try_from((at * 7 + at / 251) % 256).unwrap_or_default())
        .collect()
}

pub(crate) fn sum_of(bytes: &[u8]) -> String {
    let sum = digest(&SHA256, bytes);
    sum.as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// The binary and its checksum, as a mirror has them.
fn release(bytes: &[u8]) -> MirrorFiles {
    BTreeMap::from([
        (BINARY.to_owned(), bytes.to_vec()),
        (format!("{BINARY}.sha256"), sum_of(bytes).into_bytes()),
    ])
}

fn downloader<'a>(server: &StandIn, report: impl Fn(&DownloadProgress<'_>) + 'a) -> Downloader<'a> {
    let mirrors = Mirrors {
        kubernetes: server.url(),
        etcd: server.url(),
    };
    let mut downloader = Downloader::new(mirrors, report).for_platform(Platform {
        system: "linux".to_owned(),
        processor: "amd64".to_owned(),
    });
    downloader.limits.first_pause = Duration::from_millis(1);
    downloader
}

fn fetch(server: &StandIn, folder: &Path) -> Result<PathBuf, Error> {
    downloader(server, |_| {}).fetch(ReleaseBinary::Kubectl, VERSION, folder)
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

#[track_caller]
fn assert_complete(path: &Path, bytes: &[u8]) {
    assert!(
        fs::read(path).expect("the file is there") == bytes,
        "other bytes"
    );
    let folder = path.parent().expect("a folder");
    let names: Vec<String> = fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .filter(|name| name.contains("partial"))
        .collect();
    assert!(names.is_empty(), "{names:?}");
}

#[test]
fn a_file_is_downloaded_with_progress_and_then_used_without_requests() {
    let bytes = content(3_500_000);
    let (server, folder) = (StandIn::serve(release(&bytes)), folder());
    let steps = Mutex::new(Vec::new());
    let report = |step: &DownloadProgress<'_>| {
        steps.lock().expect("no panic").push(step.to_string());
    };

    let path = downloader(&server, report)
        .fetch(ReleaseBinary::Kubectl, VERSION, folder.path())
        .expect("the download");

    assert_complete(&path, &bytes);
    assert!(is_executable(&path));
    let steps = steps.lock().expect("no panic").join("\n");
    for part in [
        &format!("kubectl: downloading {}{BINARY}, 3.5 MB", server.url()),
        " MB of 3.5 MB",
        "kubectl: 3.5 MB, the checksum is right",
    ] {
        assert!(steps.contains(part), "{part} is not in:\n{steps}");
    }
    let requests = server.requests().len();
    fetch(&server, folder.path()).expect("it is there");
    assert_eq!(server.requests().len(), requests);
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    let metadata = fs::metadata(path).expect("the file is there");
    metadata.permissions().mode() & 0o111 == 0o111
}

#[cfg(not(unix))]
fn is_executable(_: &Path) -> bool {
    true
}

#[test]
fn an_interrupted_download_goes_on_where_it_stopped() {
    let bytes = content(3_000_000);
    let files = release(&bytes);
    let server = StandIn::start(move |request| {
        let answer = StandInAnswer::file(&files, request);
        match (&*request.path, request.number) {
            (BINARY, 0 | 1) => answer.cut_after(1_000_000),
            _ => answer,
        }
    });
    let folder = folder();

    let path = fetch(&server, folder.path()).expect("the download");

    assert_complete(&path, &bytes);
    assert_eq!(server.offsets(BINARY), [0, 1_000_000, 2_000_000]);
}

#[test]
fn a_server_without_ranges_sends_the_file_anew() {
    let bytes = content(3_000_000);
    let files = release(&bytes);
    let server = StandIn::start(move |request| {
        let whole = StandInRequest {
            offset: 0,
            ..request.clone()
        };
        let answer = StandInAnswer::file(&files, &whole);
        match (&*request.path, request.number) {
            (BINARY, 0) => answer.cut_after(1_000_000),
            _ => answer,
        }
    });
    let folder = folder();

    let path = fetch(&server, folder.path()).expect("the download");

    assert_complete(&path, &bytes);
    assert_eq!(server.offsets(BINARY), [0, 1_000_000]);
}

#[test]
fn the_partial_file_of_an_earlier_process_is_continued() {
    let bytes = content(200_000);
    let (server, folder) = (StandIn::serve(release(&bytes)), folder());
    let partial = folder.path().join("kubectl.partial");
    fs::write(&partial, &bytes[..150_000]).expect("written");

    let path = fetch(&server, folder.path()).expect("the download");

    assert_complete(&path, &bytes);
    assert_eq!(server.offsets(BINARY), [150_000]);
}

#[test]
fn a_partial_file_that_is_complete_or_of_another_file_or_too_long_ends_well() {
    let bytes = content(200_000);
    let (server, folder) = (StandIn::serve(release(&bytes)), folder());
    for (earlier, requests) in [
        (bytes.clone(), vec![200_000]),
        (vec![1; 150_000], vec![150_000, 0]),
        (vec![1; 300_000], vec![300_000, 0]),
    ] {
        let before = server.offsets(BINARY).len();
        fs::write(folder.path().join("kubectl.partial"), earlier).expect("written");

        let path = fetch(&server, folder.path()).expect("the download");

        assert_complete(&path, &bytes);
        assert_eq!(server.offsets(BINARY)[before..], requests);
        fs::remove_file(path).expect("removed");
    }
}

#[test]
fn a_wrong_checksum_is_refused_and_the_file_removed() {
    let bytes = content(200_000);
    let mut files = release(&bytes);
    let published = "0".repeat(64);
    files.insert(format!("{BINARY}.sha256"), published.clone().into_bytes());
    let (server, folder) = (StandIn::serve(files), folder());

    let message = fetch(&server, folder.path())
        .expect_err("refused")
        .to_string();

    for part in [
        &published,
        &sum_of(&bytes),
        &format!("{}{BINARY}", server.url()),
    ] {
        assert!(message.contains(part), "{part} is not in:\n{message}");
    }
    assert_eq!(
        server.offsets(BINARY),
        [0],
        "another attempt would not help"
    );
    for name in ["kubectl", "kubectl.partial"] {
        assert!(!folder.path().join(name).exists(), "{name}");
    }
}

#[test]
fn a_checksum_that_is_no_checksum_is_refused_before_the_download() {
    let mut files = release(b"bytes");
    files.insert(format!("{BINARY}.sha256"), b"<html></html>".to_vec());
    let (server, folder) = (StandIn::serve(files), folder());

    let error = fetch(&server, folder.path()).expect_err("refused");

    assert!(matches!(error, Error::NoChecksum { .. }), "{error}");
    assert!(server.offsets(BINARY).is_empty());
}

#[test]
fn a_body_that_always_ends_early_is_not_used_and_attempts_are_bounded() {
    let files = release(&content(200_000));
    let server = StandIn::start(move |request| {
        let answer = StandInAnswer::file(&files, request);
        if request.path == BINARY {
            answer.cut_after(10)
        } else {
            answer
        }
    });
    let folder = folder();

    let error = fetch(&server, folder.path()).expect_err("interrupted");

    assert!(
        matches!(error, Error::Interrupted { received: 50, .. }),
        "{error:?}"
    );
    assert_eq!(server.offsets(BINARY), [0, 10, 20, 30, 40]);
    assert!(!folder.path().join("kubectl").exists());
}

#[test]
fn a_missing_file_is_asked_for_once_and_server_errors_are_retried() {
    let bytes = content(1_000);
    let folder = folder();
    let missing = StandIn::serve(MirrorFiles::new());
    let error = fetch(&missing, folder.path()).expect_err("missing");
    assert!(
        matches!(error, Error::Status { status: 404, .. }),
        "{error}"
    );
    assert_eq!(missing.requests().len(), 1);

    let files = release(&bytes);
    let flaky = StandIn::start(move |request| match request.number {
        0 | 1 => StandInAnswer::status(500),
        2 => StandInAnswer::status(429),
        _ => StandInAnswer::file(&files, request),
    });
    let path = fetch(&flaky, folder.path()).expect("the download");
    assert_complete(&path, &bytes);
    assert_eq!(flaky.offsets(BINARY).len(), 4);

    fs::remove_file(path).expect("removed");
    let broken = StandIn::start(|_| StandInAnswer::status(503));
    let error = fetch(&broken, folder.path()).expect_err("broken");
    assert!(
        matches!(error, Error::Status { status: 503, .. }),
        "{error}"
    );
    assert_eq!(broken.requests().len(), 5);
}

#[test]
fn redirects_are_followed_but_not_for_ever_and_not_to_plain_text_elsewhere() {
    let bytes = content(300_000);
    let files = release(&bytes);
    let (cdn, folder) = (StandIn::serve(files), folder());
    let base = cdn.url();
    let entrance = StandIn::start(move |request| match request.path.strip_prefix("/moved") {
        Some(path) => StandInAnswer::redirect(&format!("{base}{path}")),
        None => StandInAnswer::redirect(&format!("/moved{}", request.path)),
    });
    let path = fetch(&entrance, folder.path()).expect("the download");
    assert_complete(&path, &bytes);
    fs::remove_file(path).expect("removed");

    let circle = StandIn::start(|request| StandInAnswer::redirect(&request.path));
    let error = fetch(&circle, folder.path()).expect_err("a circle");
    assert!(matches!(error, Error::Redirects { .. }), "{error}");
    assert_eq!(circle.requests().len(), 6);

    let elsewhere = StandIn::start(|_| StandInAnswer::redirect("http://192.0.2.1/kubectl"));
    let error = fetch(&elsewhere, folder.path()).expect_err("plain text");
    assert!(error.to_string().contains("only https"), "{error}");
}

#[test]
fn a_file_that_is_too_large_is_refused_with_and_without_a_declared_size() {
    let folder = folder();
    for is_declared in [true, false] {
        let files = release(&content(200_000));
        let server = StandIn::start(move |request| {
            let answer = StandInAnswer::file(&files, request);
            if is_declared {
                answer
            } else {
                answer.without_length()
            }
        });
        let mut downloader = downloader(&server, |_| {});
        downloader.limits.largest_file = 100_000;

        let error = downloader
            .fetch(ReleaseBinary::Kubectl, VERSION, folder.path())
            .expect_err("too large");

        assert!(matches!(error, Error::TooLarge { .. }), "{error}");
        assert!(!folder.path().join("kubectl").exists());
    }
}

#[test]
fn a_silent_server_is_left_and_asked_again() {
    let bytes = content(200_000);
    let files = release(&bytes);
    let server = StandIn::start(move |request| {
        let answer = StandInAnswer::file(&files, request);
        match (&*request.path, request.number) {
            (BINARY, 0) => answer.silent_after(100_000),
            _ => answer,
        }
    });
    let folder = folder();
    let mut downloader = downloader(&server, |_| {});
    downloader.limits.silence = Duration::from_millis(300);
    let start = Instant::now();

    let path = downloader
        .fetch(ReleaseBinary::Kubectl, VERSION, folder.path())
        .expect("the download");

    assert_complete(&path, &bytes);
    assert!(
        start.elapsed() < stand_in::SILENCE / 2,
        "{:?}",
        start.elapsed()
    );
}

/// The variables that turn the test below into a process of its own.
const SERVER_VARIABLE: &str = "KOPF_CLUSTER_TEST_SERVER";
const FOLDER_VARIABLE: &str = "KOPF_CLUSTER_TEST_FOLDER";

/// The process that other tests start; without their variables it does nothing.
#[test]
fn fetches_in_a_process_of_its_own() {
    let (Ok(url), Ok(folder)) = (
        std::env::var(SERVER_VARIABLE),
        std::env::var(FOLDER_VARIABLE),
    ) else {
        return;
    };
    let server = StandIn::at(url);
    fetch(&server, Path::new(&folder)).expect("the download");
}

fn start_process(server: &StandIn, folder: &Path) -> Child {
    Command::new(std::env::current_exe().expect("this test"))
        .arg("--exact")
        .arg("download::tests::fetches_in_a_process_of_its_own")
        .env(SERVER_VARIABLE, server.url())
        .env(FOLDER_VARIABLE, folder)
        .stdout(Stdio::null())
        .spawn()
        .expect("a process")
}

#[test]
fn of_several_processes_one_downloads_and_the_others_wait() {
    let bytes = content(2_000_000);
    let (server, folder) = (StandIn::serve(release(&bytes)), folder());

    let processes: Vec<Child> = (0..3)
        .map(|_| start_process(&server, folder.path()))
        .collect();
    for mut process in processes {
        assert!(process.wait().expect("it ends").success());
    }

    assert_complete(&folder.path().join("kubectl"), &bytes);
    assert_eq!(server.offsets(BINARY), [0]);
}

#[test]
fn the_next_process_continues_what_a_killed_one_left() {
    let bytes = content(2_000_000);
    let files = release(&bytes);
    let server = StandIn::start(move |request| {
        let answer = StandInAnswer::file(&files, request);
        match (&*request.path, request.number) {
            (BINARY, 0) => answer.silent_after(1_000_000),
            _ => answer,
        }
    });
    let folder = folder();
    let partial = folder.path().join("kubectl.partial");
    let mut process = start_process(&server, folder.path());
    while fs::metadata(&partial).map_or(0, |it| it.len()) < 1_000_000 {
        assert!(process.try_wait().expect("a status").is_none(), "it ended");
        std::thread::yield_now();
    }
    process.kill().expect("killed");
    process.wait().expect("it ended");
    assert!(!folder.path().join("kubectl").exists());

    let path = fetch(&server, folder.path()).expect("the download");

    assert_complete(&path, &bytes);
    assert_eq!(server.offsets(BINARY), [0, 1_000_000]);
}

/// The archive of etcd and its checksums, as a mirror has them.
pub(crate) fn etcd_release(version: &str, platform: &str, binary: &[u8]) -> MirrorFiles {
    let stem = format!("etcd-{version}-{platform}");
    let archive = archive::tests::tar_gz(&[
        (&format!("{stem}/README.md"), b"text"),
        (&format!("{stem}/etcd"), binary),
    ]);
    let sums = format!("{}  {stem}.tar.gz\n", sum_of(&archive));
    BTreeMap::from([
        (format!("/{version}/{stem}.tar.gz"), archive),
        (format!("/{version}/SHA256SUMS"), sums.into_bytes()),
    ])
}

#[test]
fn etcd_comes_out_of_its_archive() {
    let binary = content(500_000);
    let server = StandIn::serve(etcd_release("v3.6.16", "linux-amd64", &binary));
    let folder = folder();

    let path = downloader(&server, |_| {})
        .fetch(ReleaseBinary::Etcd, "v3.6.16", folder.path())
        .expect("the download");

    assert_eq!(path, folder.path().join("etcd"));
    assert_complete(&path, &binary);
    assert!(is_executable(&path));
}

#[test]
fn one_downloader_serves_several_threads_through_their_own_values() {
    let bytes = content(500_000);
    let (server, folder) = (Arc::new(StandIn::serve(release(&bytes))), folder());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| fetch(&server, folder.path()).expect("the download"));
        }
    });
    assert_complete(&folder.path().join("kubectl"), &bytes);
    assert_eq!(server.offsets(BINARY), [0]);
}
