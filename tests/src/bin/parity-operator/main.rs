//! Our side of the comparisons with Python Kopf: the scenario named by `SCENARIO`, on the API group
//! named by `GROUP`. Each scenario has a namesake among the scripts of the parity tests.

mod journal;
mod scenarios;

use std::env;
use std::process::ExitCode;

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
    Operator::new("parity-operator").resource(handlers).main()
}
