//! Additions land in the right place and leave every other byte alone.

use proptest::prelude::*;

use super::*;

const STUB: &str = "/// Called.\nasync fn added(&self) {\n    work();\n}";

fn add(text: &str) -> String {
    let source = UserSource::parse(text).expect("valid Rust");
    let blocks = source.impls_of("Handlers");
    source.with_methods(&blocks[0], &[STUB.to_owned()])
}

fn is_subsequence_with_one_gap(before: &str, after: &str) -> bool {
    let prefix = before
        .bytes()
        .zip(after.bytes())
        .take_while(|(a, b)| a == b)
        .count();
    let suffix = before
        .bytes()
        .rev()
        .zip(after.bytes().rev())
        .take_while(|(a, b)| a == b)
        .count();
    prefix + suffix >= before.len()
}

#[test]
fn a_function_is_added_after_the_last_one() {
    let before = "impl Handlers for Op {\n    fn a(&self) {} // stays\n\n    // and this\n}\n";
    insta::assert_snapshot!(add(before), @r"
    impl Handlers for Op {
        fn a(&self) {} // stays

        // and this

        /// Called.
        async fn added(&self) {
            work();
        }
    }
    ");
}

#[test]
fn a_function_is_added_to_an_empty_block() {
    assert_eq!(
        add("impl Handlers for Op {}"),
        "impl Handlers for Op {\n    /// Called.\n    async fn added(&self) {\n        work();\n    }\n}"
    );
    assert_eq!(
        add("impl Handlers for Op {\n}\n"),
        "impl Handlers for Op {\n    /// Called.\n    async fn added(&self) {\n        work();\n    }\n}\n"
    );
}

#[test]
fn a_block_in_a_module_keeps_its_indentation() {
    let before = "mod inner {\n\timpl super::Handlers for Op {\n\t\tfn a(&self) {}\n\t}\n}\n";
    let after = "mod inner {\n\timpl super::Handlers for Op {\n\t\tfn a(&self) {}\n\n\t\t/// Called.\n\t\tasync fn added(&self) {\n\t\t\twork();\n\t\t}\n\t}\n}\n";
    assert_eq!(add(before), after);
}

#[test]
fn byte_order_marks_and_windows_line_endings_stay() {
    let before = "\u{feff}#!/usr/bin/env rust\r\n// ünïcödé\r\nimpl Handlers for Op {\r\n    fn a(&self) {}\r\n}";
    let after = add(before);
    assert!(after.starts_with('\u{feff}'), "{after:?}");
    assert!(
        after.ends_with(
            "    /// Called.\r\n    async fn added(&self) {\r\n        work();\r\n    }\r\n}"
        ),
        "{after:?}"
    );
    assert!(is_subsequence_with_one_gap(before, &after));
}

#[test]
fn methods_are_listed_with_their_place() {
    let text = "\u{feff}impl<T> a::Handlers for Op<T> { fn r#type(&self) {} const X: u8 = 1; }";
    let blocks = UserSource::parse(text).expect("valid").impls_of("Handlers");
    assert_eq!(blocks[0].methods.len(), 1);
    assert_eq!(blocks[0].methods[0].name, "type");
    assert!(text[blocks[0].methods[0].offset..].starts_with("r#type"));
}

#[test]
fn a_module_is_inserted_in_order() {
    let with = |text: &str| UserSource::parse(text).expect("valid").with_module("pod");
    assert_eq!(
        with("//! Doc.\n\nmod job; // why\nmod widget;\n"),
        "//! Doc.\n\nmod job; // why\nmod pod;\nmod widget;\n"
    );
    assert_eq!(
        with("//! Doc.\n\nmod widget;\n"),
        "//! Doc.\n\nmod pod;\nmod widget;\n"
    );
    assert_eq!(
        with("//! Doc.\nuse a::b;\n"),
        "//! Doc.\n\nmod pod;\nuse a::b;\n"
    );
    assert_eq!(with("struct Op;\n"), "mod pod;\n\nstruct Op;\n");
    assert_eq!(with("mod a; mod z;"), "mod a;\nmod pod; mod z;");
    assert_eq!(with(""), "mod pod;\n\n");
}

#[test]
fn imports_are_flattened() {
    let text = "use kopf_runtime::prelude::*;\nuse a::{b::C, d as E, f::*};";
    let imports = UserSource::parse(text).expect("valid").imports();
    assert!(imports.bring("C", "x") && imports.bring("E", "x"));
    assert!(!imports.bring("d", "x"));
    assert!(imports.bring("X", "a::f"));
}

#[test]
fn a_syntax_error_has_its_offset() {
    let error = UserSource::parse("\u{feff}fn a( {}").err().expect("broken");
    assert!(error.offset >= 3, "{error:?}");
}

proptest! {
    #[test]
    fn every_byte_of_the_user_stays(
        bom in any::<bool>(),
        crlf in any::<bool>(),
        comments in proptest::collection::vec("[ -~äß\t]{0,30}", 4),
        methods in 0usize..4,
        spacing in proptest::collection::vec("[ \t\n]{0,4}", 6),
        final_newline in any::<bool>(),
    ) {
        let mut text = format!("//! {}\n{}impl{}Handlers for Op {{{}", comments[0], spacing[0], " ", spacing[1]);
        for number in 0..methods {
            text += &format!("// {}\n{}fn m{number}(&self) {{ }}{}", comments[1], spacing[2], spacing[3]);
        }
        text += &format!("// {}\n{}}}{}// {}", comments[2], spacing[4], spacing[5], comments[3]);
        if final_newline { text.push('\n'); }
        if crlf { text = text.replace('\n', "\r\n"); }
        if bom { text.insert(0, '\u{feff}'); }
        let after = add(&text);
        prop_assert!(is_subsequence_with_one_gap(&text, &after), "{text:?}\n{after:?}");
        let source = UserSource::parse(&after).expect("still valid");
        let blocks = source.impls_of("Handlers");
        prop_assert_eq!(blocks[0].methods.len(), methods + 1);
        prop_assert_eq!(&blocks[0].methods[methods].name, "added");
    }
}
