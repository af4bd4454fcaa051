//! Tests of the operator's command line, without a cluster.

use std::process::Command;

{{ program }}

/// The names of the CRDs.
#[rustfmt::skip]
const DEFINITIONS: &[&str] = &[
{%- for name in definitions %}
    {{ name }},
{%- endfor %}
];

fn printed_crds() -> String {
    let mut program = Command::new(PROGRAM);
    let output = program.arg("crd").output().expect("the operator runs");
    String::from_utf8(output.stdout).expect("the operator prints text")
}

#[test]
fn it_prints_the_crds_of_its_kinds() {
    let printed = printed_crds();
    for name in DEFINITIONS {
        assert!(printed.contains(name), "{name}");
    }
}
