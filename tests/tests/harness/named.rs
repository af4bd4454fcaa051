//! `kopf-gen cluster`: named control planes that survive the command, crashes and damage.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use k8s_openapi::api::core::v1::ConfigMap;
use kopf_tests::{TestFailure, TestResult, eventually, try_eventually, user, workspace};
use kube::api::PostParams;
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::leak::{descendants_of, is_running};

/// The clusters of one test, which end with it.
struct Clusters {
    program: PathBuf,
    data: TempDir,
}

// === impl Clusters ===

impl Clusters {
    async fn new() -> Result<Self, TestFailure> {
        let program = tokio::task::spawn_blocking(|| workspace::build_program("kopf-gen"));
        Ok(Self {
            program: program.await??,
            data: tempfile::tempdir()?,
        })
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .arg("cluster")
            .args(arguments)
            .env("XDG_DATA_HOME", self.data.path());
        command
    }

    fn run(&self, arguments: &[&str]) -> Result<Output, TestFailure> {
        Ok(self.command(arguments).output()?)
    }

    /// Runs a command that must succeed; returns what it says.
    #[track_caller]
    fn say(&self, arguments: &[&str]) -> Result<String, TestFailure> {
        let output = self.run(arguments)?;
        let text = said(&output);
        if output.status.success() {
            Ok(text)
        } else {
            Err(TestFailure::new(format!("{arguments:?} failed: {text}")))
        }
    }

    fn status(&self) -> Result<Value, TestFailure> {
        let output = self.run(&["status", "default", "--format", "json"])?;
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// The keeper and all processes below it.
    fn processes(&self) -> Result<Vec<i32>, TestFailure> {
        let keeper = self.status()?["keeper"].as_i64().unwrap_or_default();
        let keeper = i32::try_from(keeper)?;
        let mut processes = vec![keeper];
        processes.extend(descendants_of(keeper)?);
        Ok(processes)
    }

    fn folder(&self) -> PathBuf {
        self.data.path().join("kopf-gen/clusters/default")
    }

    async fn config_maps(&self) -> Result<Api<ConfigMap>, TestFailure> {
        let kubeconfig = self.say(&["kubeconfig"])?;
        let client = user::client_from(Path::new(kubeconfig.trim())).await?;
        Ok(Api::namespaced(client, "default"))
    }

    async fn store(&self, name: &str) -> TestResult {
        let maps = self.config_maps().await?;
        let map: ConfigMap = serde_json::from_value(json!({"metadata": {"name": name}}))?;
        // The namespace appears a moment after the API server is ready.
        eventually("an object is stored", async || {
            maps.create(&PostParams::default(), &map).await.ok()
        })
        .await?;
        Ok(())
    }

    async fn assert_stored(&self, name: &str) -> TestResult {
        self.config_maps().await?.get(name).await?;
        Ok(())
    }
}

impl Drop for Clusters {
    fn drop(&mut self) {
        // A cluster that is gone already is what this is about.
        let _ = self.run(&["reset"]);
    }
}

fn said(output: &Output) -> String {
    let text = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it).into_owned());
    text.concat()
}

fn kill_all(processes: &[i32]) {
    for pid in processes {
        if let Some(pid) = Pid::from_raw(*pid) {
            // The others end when the first ones do.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

async fn ended(processes: &[i32]) -> TestResult {
    eventually("all processes have ended", async || {
        processes.iter().all(|pid| !is_running(*pid)).then_some(())
    })
    .await
}

#[tokio::test]
async fn a_cluster_survives_its_command_and_keeps_its_data() -> TestResult {
    let clusters = Clusters::new().await?;
    let absent = clusters.run(&["status", "default"])?;
    assert_eq!(absent.status.code(), Some(1));
    for command in ["kubeconfig", "logs"] {
        let refused = clusters.run(&[command])?;
        assert_eq!(refused.status.code(), Some(1));
        assert!(said(&refused).contains("kopf-gen cluster up default"));
    }

    let up = clusters.say(&["up"])?;
    assert!(up.contains("starting Kubernetes v"), "{up}");
    assert!(up.contains("export KUBECONFIG="), "{up}");
    let first = clusters.status()?;
    clusters.store("kept").await?;

    let again = clusters.say(&["up"])?;
    assert!(again.contains("was up already"), "{again}");
    assert_eq!(clusters.status()?["keeper"], first["keeper"]);

    let processes = clusters.processes()?;
    clusters.say(&["down"])?;
    assert!(processes.iter().all(|pid| !is_running(*pid)));
    assert_eq!(clusters.status()?["status"], "down");
    assert!(clusters.say(&["down"])?.contains("was not up"));

    clusters.say(&["up"])?;
    clusters.assert_stored("kept").await?;
    assert_eq!(
        clusters.status()?["server"],
        first["server"],
        "kubeconfigs of users stay valid"
    );
    assert!(clusters.say(&["logs"])?.contains("kube-apiserver.log"));
    clusters.say(&["reset"])?;
    assert!(!clusters.folder().exists());
    Ok(())
}

#[tokio::test]
async fn commands_that_start_a_cluster_together_start_one() -> TestResult {
    let clusters = Clusters::new().await?;
    let mut started = Vec::new();
    for _ in 0..3 {
        started.push(clusters.command(&["up", "--format", "json"]).spawn()?);
    }
    for process in started {
        let output = process.wait_with_output()?;
        assert!(output.status.success(), "{}", said(&output));
    }
    let keeper = clusters.status()?["keeper"].clone();
    assert_eq!(clusters.say(&["up"])?.matches("was up already").count(), 1);
    assert_eq!(clusters.status()?["keeper"], keeper);
    Ok(())
}

#[tokio::test]
async fn after_kill_9_of_everything_the_cluster_comes_up_with_its_data() -> TestResult {
    let clusters = Clusters::new().await?;
    clusters.say(&["up"])?;
    clusters.store("kept").await?;

    let processes = clusters.processes()?;
    kill_all(&processes);
    ended(&processes).await?;
    assert_eq!(clusters.status()?["status"], "crashed");
    let up = clusters.say(&["up"])?;
    assert!(up.contains("is up again after a crash"), "{up}");
    clusters.assert_stored("kept").await?;

    // The same at once, before the kernel has ended the processes.
    kill_all(&clusters.processes()?);
    let up = clusters.say(&["up"])?;
    assert!(up.contains("is up again after a crash"), "{up}");
    clusters.assert_stored("kept").await
}

#[tokio::test]
async fn a_killed_keeper_leaves_no_process() -> TestResult {
    let clusters = Clusters::new().await?;
    clusters.say(&["up"])?;
    let processes = clusters.processes()?;
    assert!(processes.len() >= 7, "{processes:?}");
    let keeper = Pid::from_raw(processes[0]).ok_or_else(|| TestFailure::new("no keeper"))?;

    kill_process(keeper, Signal::KILL)?;

    ended(&processes).await?;
    clusters.say(&["up"])?;
    Ok(())
}

#[tokio::test]
async fn a_component_that_crashes_is_started_again() -> TestResult {
    let clusters = Clusters::new().await?;
    clusters.say(&["up"])?;
    clusters.store("kept").await?;
    let is_api_server = |pid: &i32| {
        fs::read_to_string(format!("/proc/{pid}/comm"))
            .is_ok_and(|it| it.trim() == "kube-apiserver")
    };
    let server = clusters.processes()?.into_iter().find(is_api_server);
    let server = server.and_then(Pid::from_raw);
    let server = server.ok_or_else(|| TestFailure::new("there is no API server"))?;
    let followed = clusters.data.path().join("followed");
    let mut follower = clusters
        .command(&["logs", "--follow", "--component", "keeper"])
        .stdout(fs::File::create(&followed)?)
        .spawn()?;

    kill_process(server, Signal::KILL)?;

    try_eventually("the API server has been started again", async || {
        Ok((clusters.status()?["restarts"] == 1).then_some(()))
    })
    .await?;
    clusters.assert_stored("kept").await?;
    try_eventually("the log that is followed says so", async || {
        let text = fs::read_to_string(&followed)?;
        Ok(text.contains("kube-apiserver ended").then_some(()))
    })
    .await?;
    follower.kill()?;
    follower.wait()?;
    Ok(())
}

#[tokio::test]
async fn damaged_data_are_reported_with_the_way_out() -> TestResult {
    let clusters = Clusters::new().await?;
    clusters.say(&["up"])?;
    clusters.say(&["down"])?;
    let wal = clusters.folder().join("etcd/member/wal");
    for entry in fs::read_dir(&wal)? {
        fs::write(entry?.path(), "no log of etcd")?;
    }

    let failed = clusters.run(&["up"])?;
    assert_eq!(failed.status.code(), Some(1));
    let text = said(&failed);
    assert!(text.contains("etcd ended"), "{text}");
    assert!(text.contains("kopf-gen cluster reset default"), "{text}");
    assert_eq!(clusters.status()?["status"], "failed");

    clusters.say(&["reset"])?;
    clusters.say(&["up"])?;
    Ok(())
}

#[tokio::test]
async fn a_cluster_listens_on_loopback_only() -> TestResult {
    const LOOPBACK: &str = "0100007F";
    const LISTENING: &str = "0A";
    let clusters = Clusters::new().await?;
    clusters.say(&["up"])?;
    let sockets: BTreeSet<String> = clusters
        .processes()?
        .iter()
        .filter_map(|pid| fs::read_dir(format!("/proc/{pid}/fd")).ok())
        .flatten()
        .flatten()
        .filter_map(|entry| fs::read_link(entry.path()).ok())
        .filter_map(|link| {
            let text = link.to_string_lossy().into_owned();
            Some(text.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())
        })
        .collect();
    let mut listening = 0;
    for (table, is_fine) in [("/proc/net/tcp", true), ("/proc/net/tcp6", false)] {
        for line in fs::read_to_string(table)?.lines().skip(1) {
            let fields: Vec<&str> = line.split_whitespace().collect();
            if fields[3] == LISTENING && sockets.contains(fields[9]) {
                assert!(is_fine && fields[1].starts_with(LOOPBACK), "{line}");
                listening += 1;
            }
        }
    }
    assert!(listening >= 3, "etcd has two ports and the API server one");
    Ok(())
}

#[tokio::test]
async fn the_database_answers_the_api_server_only() -> TestResult {
    let clusters = Clusters::new().await?;
    clusters.say(&["up"])?;
    let folder = clusters.folder();
    let ports: Value = serde_json::from_slice(&fs::read(folder.join("ports.json"))?)?;
    let url: http::Uri = format!("https://127.0.0.1:{}", ports["etcd"]).parse()?;
    let options = KubeConfigOptions::default();
    let kubeconfig = Kubeconfig::read_from(folder.join("kubeconfig"))?;
    let mut administrator = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
    administrator.cluster_url = url;
    // The certificate of etcd is not what is tested.
    administrator.accept_invalid_certs = true;
    let mut server = administrator.clone();
    let file = |name: &str| Some(folder.join(name).display().to_string());
    server.auth_info = AuthInfo {
        client_certificate: file("etcd.pem"),
        client_key: file("etcd.key"),
        ..AuthInfo::default()
    };

    let version = async |config: Config| -> Result<String, TestFailure> {
        let request = http::Request::get("/version").body(Vec::new())?;
        Ok(Client::try_from(config)?.request_text(request).await?)
    };
    assert!(version(server).await?.contains("etcdserver"));
    assert!(version(administrator).await.is_err());
    Ok(())
}

#[tokio::test]
async fn a_name_that_could_be_a_path_is_refused() -> TestResult {
    let clusters = Clusters::new().await?;
    let refused = clusters.run(&["up", "../elsewhere"])?;
    assert_eq!(refused.status.code(), Some(2));
    assert!(said(&refused).contains("cannot be the name of a cluster"));
    Ok(())
}
