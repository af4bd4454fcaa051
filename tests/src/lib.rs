//! A real control plane under the tests, and what every suite needs to talk to it.
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

pub mod assets;
pub mod audit;
pub mod censor;
pub mod control_plane;
pub mod failure;
pub mod fault_proxy;
pub mod guard;
pub mod http_get;
pub mod identity;
pub mod operator;
pub mod peering;
pub mod pki;
pub mod program;
pub mod prometheus;
pub mod python_kopf;
pub mod sandbox;
pub mod webhook;

pub use audit::RequestCounts;
pub use control_plane::{ControlPlane, PrivateControlPlane};
pub use failure::{Failure, TestResult};
pub use fault_proxy::{Fault, FaultProxy, RequestMatch};
pub use guard::Component;
pub use identity::Identity;
pub use operator::Operator;
pub use peering::Peering;
pub use python_kopf::PythonKopf;
pub use sandbox::{Objects, Sandbox, eventually, try_eventually};
pub use webhook::AdmissionWebhook;
