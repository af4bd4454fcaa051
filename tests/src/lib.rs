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

pub mod audit;
pub mod binaries;
pub mod child_process;
pub mod control_plane;
pub mod fault_proxy;
pub mod health_client;
pub mod peering;
pub mod pki;
pub mod prometheus;
pub mod python_kopf;
pub mod rewriting_webhook;
pub mod sandbox;
pub mod supervisor;
pub mod test_failure;
pub mod user;
pub mod webhook;
pub mod workspace;

pub use audit::RequestCounts;
pub use child_process::ChildProcess;
pub use control_plane::{ControlPlane, PrivateControlPlane};
pub use fault_proxy::{Fault, FaultProxy, RequestMatch};
pub use peering::PeeringObject;
pub use python_kopf::PythonKopf;
pub use sandbox::{Objects, Sandbox, eventually, try_eventually};
pub use supervisor::Component;
pub use test_failure::{TestFailure, TestResult};
pub use user::User;
pub use webhook::AdmissionWebhook;
