//! Our operator for the comparisons with Python Kopf: runs the scenario `SCENARIO` on the API group
//! `GROUP`. Each scenario has a script of the same name in the parity tests.

mod journal;
mod scenarios;

use std::env;
use std::process::ExitCode;
use std::sync::Arc;

use kopf_runtime::admission::{Certificates, Server, Webhooks};
use kopf_runtime::storage::AnnotationsProgress;
use kopf_runtime::{Operator, ResourceSpec, Scope, Settings, StatusSubresource};

fn main() -> ExitCode {
    let variable = |name| env::var(name).expect("the parity tests set SCENARIO and GROUP");
    let widgets = ResourceSpec {
        group: variable("GROUP").leak(),
        version: "v1",
        kind: "Widget",
        plural: "widgets",
        scope: Scope::Namespaced,
        status: StatusSubresource::Present,
    };
    let scenario = variable("SCENARIO");
    let handlers = scenarios::named(&scenario, widgets);
    let mut operator = Operator::new("parity-operator");
    if scenario == "record_options" {
        operator = operator.settings(record_options());
    }
    let operator = handlers.into_iter().fold(operator, Operator::resource);
    match env::var("MANAGED") {
        Ok(name) => operator
            .webhooks(webhooks(&name, &variable("CERTS")))
            .main(),
        Err(_) => operator.main(),
    }
}

/// Records in annotations of the second form only, with all of their entries.
fn record_options() -> Settings {
    let mut progress = AnnotationsProgress::default();
    progress.form.v1 = false;
    progress.verbose = true;
    let mut settings = Settings::default();
    settings.persistence.progress = Arc::new(progress);
    settings
}

/// Webhooks with the same certificates as Kopf's.
fn webhooks(name: &str, certificates: &str) -> Webhooks {
    let file = |name: &str| std::path::Path::new(certificates).join(name);
    let server = Server::local("localhost").certificates(Certificates::Files {
        certificate: file("tls.crt"),
        key: file("tls.key"),
        authority: Some(file("ca.crt").into()),
    });
    Webhooks::default().managed(name).server(server)
}
