//! Our operator for the comparisons with Python Kopf: runs the scenario `SCENARIO` on the API group
//! `GROUP`. Each scenario has a script of the same name in the parity tests.

mod journal;
mod scenarios;

use std::env;
use std::process::ExitCode;

use kopf_runtime::admission::{Certificates, Server, Webhooks};
use kopf_runtime::{Operator, ResourceSpec, Scope, StatusSubresource};

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
    let handlers = scenarios::named(&variable("SCENARIO"), widgets);
    let operator = Operator::new("parity-operator");
    let operator = handlers.into_iter().fold(operator, Operator::resource);
    match env::var("MANAGED") {
        Ok(name) => operator
            .webhooks(webhooks(&name, &variable("CERTS")))
            .main(),
        Err(_) => operator.main(),
    }
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
