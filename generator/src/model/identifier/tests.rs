//! Names as they come, and as Rust wants them.

use super::*;
use crate::dependencies::{DEPENDENCIES, RUNTIME};
use proptest::prelude::*;

fn variants_of(values: &[&str]) -> Vec<String> {
    variants(values).iter().map(ToString::to_string).collect()
}

#[test]
fn words_follow_capitals_and_symbols() {
    let words = |text| words(text).join(" ");
    assert_eq!(words("fooBar"), "foo bar");
    assert_eq!(words("HTTPRoute"), "http route");
    assert_eq!(words("podIPs"), "pod ips");
    assert_eq!(words("clusterIPsPolicy"), "cluster ips policy");
    assert_eq!(words("URLStatus"), "url status");
    assert_eq!(words("ca.crt"), "ca crt");
    assert_eq!(words("kebab-and_snake"), "kebab and snake");
    assert_eq!(words("ipv4Address2x"), "ipv4 address2x");
    assert_eq!(words("größe"), "größe");
    assert_eq!(words("→x"), "u2192 x");
}

#[test]
fn identifiers_are_legal() {
    let ident = |text| RustIdent::new(text).to_string();
    assert_eq!(ident("type"), "r#type");
    assert_eq!(ident("self"), "self_");
    assert_eq!(ident("3scale"), "_3scale");
    assert_eq!(ident("$schema"), "schema");
    assert_eq!(ident("-"), "field");
    assert_eq!(ident("hostIP"), "host_ip");
}

#[test]
fn collisions_are_numbered() {
    let mut taken = BTreeSet::new();
    let mut ident = |text| RustIdent::unique(text, &mut taken).to_string();
    assert_eq!(ident("fooBar"), "foo_bar");
    assert_eq!(ident("foo_bar"), "foo_bar_2");
    assert_eq!(ident("FooBar"), "foo_bar_3");
    assert_eq!(ident("type"), "r#type");
    assert_eq!(ident("Type"), "type_2");
}

#[test]
fn variants_are_legal_and_different() {
    assert_eq!(variants_of(&["", "a", "-"]), ["Empty", "A", "Minus"]);
    assert_eq!(
        variants_of(&["Replace", "replace"]),
        ["Replace", "ReplaceLower"]
    );
    assert_eq!(
        variants_of(&["true", "True", "TRUE"]),
        ["TrueLower", "True", "TrueUpper"]
    );
    assert_eq!(
        variants_of(&["=", "!=", "=~", "!~"]),
        ["Equal", "NotEqual", "Match", "NotMatch"]
    );
    assert_eq!(variants_of(&["1", "2.5", "-1"]), ["V1", "V2_5", "Minus1"]);
    assert_eq!(
        variants_of(&["a-b", "a/b", "a b"]),
        ["AB", "ASlashB", "ASymbolB"]
    );
    assert_eq!(variants_of(&["TLSv1.2", "TLSv1.3"]), ["TlSv1_2", "TlSv1_3"]);
    assert_eq!(variants_of(&["Self", "*"]), ["Self_", "Star"]);
}

#[test]
fn kinds_keep_their_capitals() {
    assert_eq!(TypeName::of_kind("HTTPRoute").as_str(), "HTTPRoute");
    assert_eq!(TypeName::of_kind("CDI").as_str(), "Cdi");
    assert_eq!(TypeName::of_kind("postgresql").as_str(), "Postgresql");
}

#[test]
fn singulars() {
    for (many, one) in [
        ("containers", "container"),
        ("policies", "policy"),
        ("addresses", "address"),
        ("ingress", "ingress"),
        ("status", "status"),
        ("statuses", "status"),
        ("podIPs", "podIP"),
        ("matchExpressions", "matchExpression"),
        ("caches", "cache"),
        ("dns", "dns"),
        ("args", "arg"),
        ("tokens", "token"),
        ("views", "view"),
        ("domains", "domain"),
        ("metrics", "metrics"),
        ("prefixes", "prefix"),
        ("volumes", "volume"),
        ("rules", "rule"),
    ] {
        assert_eq!(singular(many), one, "{many}");
    }
}

#[test]
fn kinds_that_the_api_server_accepts_have_modules_with_plain_names() {
    // The compiler finds no file for a module with another name.
    for kind in ["\u{130}tem", "\u{212a}ind"] {
        let module = RustIdent::new(kind);
        assert!(module.as_str().is_ascii(), "{module}");
    }
}

proptest! {
    #[test]
    fn any_text_gives_a_legal_name(text in "\\PC{0,12}") {
        let ident = RustIdent::new(&text);
        prop_assert!(syn::parse_str::<syn::Ident>(ident.as_str()).is_ok(), "{ident}");
        let name = TypeName::new(&text);
        prop_assert!(syn::parse_str::<syn::Ident>(name.as_str()).is_ok(), "{name}");
        let _ = singular(&text);
    }

    #[test]
    fn variants_never_collide(values in prop::collection::btree_set("[aA.1=-]{0,3}", 1..12)) {
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        let names = variants(&values);
        prop_assert_eq!(names.len(), values.len());
        let different: BTreeSet<_> = names.iter().collect();
        prop_assert_eq!(different.len(), names.len());
        for name in names {
            prop_assert!(syn::parse_str::<syn::Ident>(name.as_str()).is_ok(), "{name}");
        }
    }
}

#[test]
fn no_module_hides_a_crate_on_which_the_code_depends() {
    let packages = DEPENDENCIES.iter().map(|it| it.package);
    for package in packages.chain([RUNTIME, "std", "core", "alloc"]) {
        let name = package.replace('-', "_");
        assert_eq!(RustIdent::of_module(&name).as_str(), format!("{name}_"));
    }
    assert_eq!(RustIdent::of_module("Widget").as_str(), "widget");
}
