//! Unusual YAML and JSON texts.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::diagnostic::{Code, Style, human};

fn read(text: &str, dialect: Dialect) -> (Vec<Node>, Diagnostics, Sources) {
    let mut sources = Sources::new();
    let id = sources.add("a.yaml", text);
    let mut diagnostics = Diagnostics::new();
    let documents = parse(&sources, id, dialect, &mut diagnostics);
    (documents, diagnostics, sources)
}

fn value(text: &str) -> serde_json::Value {
    let (documents, diagnostics, _) = read(text, Dialect::Kubernetes);
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    assert_eq!(documents.len(), 1);
    documents[0].to_json()
}

fn report(text: &str, dialect: Dialect) -> String {
    let (_, diagnostics, sources) = read(text, dialect);
    let reports: Vec<String> = diagnostics
        .iter()
        .map(|d| human(d, &sources, Style::Plain))
        .collect();
    reports.join("\n\n")
}

#[test]
fn scalars_are_read_as_kubectl_reads_them() {
    assert_eq!(
        value("[1, -2, 0x1f, 0644, 0.5, 1e3, yes, off, ~, '1', 1.2.3, 12ab, 0o17, '', !!str 5]"),
        json!([
            1, -2, 31, 420, 0.5, 1000.0, true, false, null, "1", "1.2.3", "12ab", 15, "", "5"
        ])
    );
    assert_eq!(
        value("a: 9223372036854775807\nb: 18446744073709551615\n1: x\n"),
        json!({"a": 9_223_372_036_854_775_807_i64, "b": 18_446_744_073_709_551_615_u64, "1": "x"})
    );
}

#[test]
fn the_core_dialect_has_only_true_and_false_as_booleans() {
    let (documents, diagnostics, _) = read("{on: create, y: no, z: true}", Dialect::Core);
    assert!(diagnostics.is_empty());
    assert_eq!(
        documents[0].to_json(),
        json!({"on": "create", "y": "no", "z": true})
    );
}

#[test]
fn aliases_and_merge_keys_are_resolved() {
    assert_eq!(
        value(
            "base: &b {x: 1, y2: 2}\nmore: {!!merge <<: *b, x: 3}\nlist: {<<: [*b, {z: 4}]}\nsame: *b"
        ),
        json!({
            "base": {"x": 1, "y2": 2},
            "more": {"x": 3, "y2": 2},
            "list": {"x": 1, "y2": 2, "z": 4},
            "same": {"x": 1, "y2": 2},
        })
    );
}

#[test]
fn several_documents_and_a_byte_order_mark() {
    let (documents, diagnostics, sources) =
        read("\u{feff}ä: 1\r\n---\r\nbü: [zwei]\r\n", Dialect::Core);
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    assert_eq!(documents.len(), 2);
    let id = sources.ids().next().expect("one source");
    let item = &documents[1]
        .get("bü")
        .and_then(Node::as_seq)
        .expect("a list")[0];
    assert_eq!(&sources.text(id)[item.span.start..item.span.end], "zwei");
}

#[test]
fn spans_cover_exactly_the_value() {
    let text = "a:\n  b: one two\n  c:\n    - x\n    - 'y z'\n\nd: |\n  text\n  more\n\n";
    let (documents, _, _) = read(text, Dialect::Kubernetes);
    let slice = |node: &Node| &text[node.span.start..node.span.end];
    let a = documents[0].get("a").expect("a");
    assert_eq!(slice(a), "b: one two\n  c:\n    - x\n    - 'y z'");
    assert_eq!(slice(a.get("b").expect("b")), "one two");
    assert_eq!(
        slice(&a.get("c").and_then(Node::as_seq).expect("c")[1]),
        "'y z'"
    );
    assert_eq!(slice(documents[0].get("d").expect("d")), "text\n  more");
}

#[test]
fn outdented_quoted_scalars_are_read_like_kubectl_does() {
    let text = "é:\n  b: 'one\n\n  two\n  three'\n  c: x\n  d: \"four\n five\"\n  e: z\n";
    let (documents, diagnostics, _) = read(text, Dialect::Kubernetes);
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    let inner = documents[0].get("é").expect("é");
    assert_eq!(
        inner.to_json(),
        json!({"b": "one\ntwo three", "c": "x", "d": "four five", "e": "z"})
    );
    let e = inner.get("e").expect("e");
    assert_eq!(&text[e.span.start..e.span.end], "z");
}

#[test]
fn json_is_read_as_json() {
    let text = "\u{feff}{\n\t\"a\": [1, -2.5e1, \"\\ud83d\\ude00\", true, null, {}, []],\r\n\t\"on\": \"y\"\n}\n";
    let (documents, diagnostics, _) = read(text, Dialect::Kubernetes);
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    assert_eq!(
        documents[0].to_json(),
        json!({"a": [1, -25.0, "\u{1f600}", true, null, {}, []], "on": "y"})
    );
    let on = documents[0].entry("on").expect("on");
    assert_eq!(&text[on.value.span.start..on.value.span.end], "\"y\"");
    let (_, diagnostics, _) = read("{\"a\": 1, \"a\": 2}", Dialect::Kubernetes);
    assert_eq!(
        diagnostics.iter().map(|d| d.code).collect::<Vec<_>>(),
        [Code::DuplicateKey]
    );
}

#[test]
fn syntax_errors_have_a_caret() {
    insta::assert_snapshot!("duplicate_key", report("a: 1\nb: 2\na: 3\n", Dialect::Core));
    insta::assert_snapshot!(
        "boolean_key",
        report("p:\n  y: {type: string}\n", Dialect::Kubernetes)
    );
    insta::assert_snapshot!("syntax", report("a:\n  - b\n c: [1\n", Dialect::Core));
    insta::assert_snapshot!(
        "helm_value",
        report(
            "metadata:\n  name: {{ .Values.name }}\n",
            Dialect::Kubernetes
        )
    );
    insta::assert_snapshot!(
        "helm_block",
        report(
            "{{- if .Values.crds }}\nkind: X\n{{- end }}\n",
            Dialect::Kubernetes
        )
    );
    insta::assert_snapshot!("bad_merge", report("a: {<<: 5}\n", Dialect::Core));
    insta::assert_snapshot!("self_alias", report("a: &a [*a]\n", Dialect::Core));
}

#[test]
fn exponential_aliases_are_errors() {
    let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for n in 1..12 {
        let p = n - 1;
        text.push_str(&format!(
            "a{n}: &a{n} [*a{p}, *a{p}, *a{p}, *a{p}, *a{p}, *a{p}, *a{p}]\n"
        ));
    }
    let (_, diagnostics, _) = read(&text, Dialect::Core);
    assert_eq!(
        diagnostics.iter().map(|d| d.code).collect::<Vec<_>>(),
        [Code::BadAlias]
    );
}

#[test]
fn deep_nesting_is_an_error() {
    let (_, diagnostics, _) = read(&"- ".repeat(10_000), Dialect::Core);
    assert_eq!(
        diagnostics.iter().map(|d| d.code).collect::<Vec<_>>(),
        [Code::TooDeep]
    );
}

proptest! {
    #[test]
    fn any_text_is_read_without_panic(text in ".{0,200}") {
        let _ = report(&text, Dialect::Kubernetes);
    }

    #[test]
    fn any_json_is_read_as_it_was_written(text in "[a-z\\PC]{0,12}", number in any::<i64>()) {
        let json = json!({"k": [text, number, {"n": null}]});
        for written in [json.to_string(), serde_json::to_string_pretty(&json).expect("JSON")] {
            let (documents, _, _) = read(&written, Dialect::Kubernetes);
            prop_assert_eq!(documents[0].to_json(), json.clone());
        }
    }

    #[test]
    fn any_yaml_like_text_is_read_without_panic(
        parts in prop::collection::vec(
            prop::sample::select(vec![
                "a", "ä", ": ", ":\n", "  ", "- ", "\n", "[", "]", "{", "}", "&x ", "*x", "<<: ", "'",
                "\"", "|\n", ">-\n", "#", "---\n", "!!str ", "\t", "?", "{{ ", "\r\n", "%YAML 1.2\n", ",",
            ]),
            0..40,
        )
    ) {
        let _ = report(&parts.concat(), Dialect::Kubernetes);
    }
}
