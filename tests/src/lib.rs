//! The test harness: a real control plane for tests, and the helpers with which tests use it.
//!
//! A cluster test opens a [`Sandbox`] on the control plane that the whole test run shares:
//!
//! ```no_run
//! use kopf_tests::{Sandbox, TestResult};
//!
//! async fn a_widget_is_stored() -> TestResult {
//!     let sandbox = Sandbox::open("widgets").await?;
//!     let widgets = sandbox.define("Widget").await?;
//!     widgets.create("one", serde_json::json!({"spec": {"size": 1}})).await?;
//!     widgets.wait_until("one", "size is 1", |it| it.data["spec"]["size"] == 1).await?;
//!     Ok(())
//! }
//! ```
//!
//! A test that breaks things starts a [`PrivateControlPlane`] instead.

pub mod actionlint;
pub mod fault_proxy;
pub mod gitlab_schema;
mod go_program;
pub mod health_client;
pub mod helm;
pub mod kubectl;
pub mod peering;
pub mod permission;
pub mod prometheus;
pub mod python_kopf;
pub mod rewriting_webhook;
pub mod rulecheck;
pub mod sandbox;
pub mod service_account;
pub mod webdriver;
pub mod webhook;
pub mod workspace;

pub use fault_proxy::{Fault, FaultProxy, ProxiedRequest, RequestMatch};
pub use helm::Helm;
pub use kopf_cluster::{
    ChildProcess, Component, ControlPlane, PrivateControlPlane, RequestCounts, TestFailure,
    TestResult, User, audit, binaries, child_process, control_plane, pki, test_failure, user,
};
pub use kubectl::Kubectl;
pub use peering::PeeringObject;
pub use permission::Permission;
pub use python_kopf::PythonKopf;
pub use sandbox::{Objects, Sandbox, eventually, try_eventually};
pub use webdriver::Browser;
pub use webhook::AdmissionWebhook;
