//! Properties of every manifest: it causes errors, or becomes valid Rust, the same every time; and
//! the code of the user stays.

use std::collections::BTreeMap;
use std::io;

use kopf_gen::diagnostic::{Diagnostics, Sources};
use kopf_gen::format::{FileContent, FormattedFile};
use kopf_gen::pipeline;
use kopf_gen::plan::{self, UserFiles};
use proptest::prelude::*;

const CRD: &str = include_str!("../../tests/golden/everything/crds/ephemeralvolumeclaim.yaml");

/// One entry of `handlers`, often valid and sometimes not.
fn handler() -> impl Strategy<Value = String> {
    let on = prop::sample::subsequence(
        vec!["create", "update", "delete", "resume", "field", "event"],
        1..3,
    );
    let function = prop::sample::select(vec![
        "a",
        "b",
        "create_fn",
        "type",
        "Bad-Name",
        "async",
        "x9",
    ]);
    let field = prop::option::of(prop::sample::select(vec![
        "spec.size",
        "spec.ttlSeconds",
        "spec.mounts",
        "spec.class",
        "spec.extra.deep",
        "metadata.labels",
        "spec.none",
        "status.phase",
        "spec.parameters.key",
    ]));
    let option = prop::sample::select(vec![
        "retries: 3",
        "retries: 0",
        "backoff: 1m30s",
        "timeout: 0.5",
        "errors: ignored",
        "optional: true",
        "deleted: true",
        "when: is_due",
        "value: present",
        "old: absent",
        "new: {predicate: is_new}",
        "value: 7",
        "labels: {a: present, b: {predicate: is_b}}",
        "annotations: {x/y: absent}",
        "param: {k: [1, 'ü\\n\"']}",
        "id: Other.id",
        "value: {predicate: is_due}",
    ]);
    (
        on,
        function,
        field,
        prop::collection::btree_set(option, 0..4),
    )
        .prop_map(|(on, function, field, options)| {
            let mut keys = vec![
                format!("on: [{}]", on.join(", ")),
                format!("fn: {function}"),
            ];
            keys.extend(field.map(|field| format!("field: {field}")));
            // One value per key, because duplicate keys hide all other errors.
            let mut seen = std::collections::BTreeSet::new();
            let fresh = options
                .into_iter()
                .filter(|option| seen.insert(option.split(':').next()));
            keys.extend(fresh.map(str::to_owned));
            format!("      - {{{}}}\n", keys.join(", "))
        })
}

fn manifest(handlers: &[String]) -> String {
    let head = "apiVersion: kopf-gen.dev/v1\noperator: {name: any}\nresources:\n  - crd: evc.yaml\n    handlers:";
    if handlers.is_empty() {
        format!("{head} []\n")
    } else {
        format!("{head}\n{}", handlers.concat())
    }
}

/// Plans a crate; `None` if the manifest has errors, of which there must be one.
fn plan_of(manifest: &str, user: &BTreeMap<String, String>) -> Option<Vec<FormattedFile>> {
    let mut sources = Sources::new();
    let mut diagnostics = Diagnostics::new();
    let source = sources.add("kopf.yaml", manifest);
    let read = |path: &str| {
        if path == "evc.yaml" {
            Ok(CRD.as_bytes().to_vec())
        } else {
            Err(io::ErrorKind::NotFound.into())
        }
    };
    let operator = pipeline::read_operator(&mut sources, source, &read, &mut diagnostics);
    let Some(operator) = operator else {
        assert!(
            diagnostics.has_errors(),
            "a manifest is not refused without a reason:\n{manifest}"
        );
        return None;
    };
    let mut files = UserFiles::default();
    for (path, text) in user {
        files.add(
            &mut sources,
            path.clone().try_into().expect("a path"),
            text.clone(),
        );
    }
    let plan = plan::operator(&operator, &sources, &files, &mut diagnostics);
    assert!(!diagnostics.has_errors(), "the user's files are in order");
    Some(pipeline::formatted(plan))
}

/// The user's Rust files once the plan is applied.
fn user_files(
    plan: &[FormattedFile],
    before: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let mut files = before.clone();
    for file in plan {
        let text = match &file.content {
            FileContent::Scaffold(text) => text,
            FileContent::Splice { after, .. } => after,
            FileContent::Generated(_) | FileContent::Vendored(_) => continue,
        };
        if file.path.as_str().starts_with("src/") {
            files.insert(file.path.to_string(), text.clone());
        }
    }
    files
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn accepted_manifests_make_valid_rust_and_a_second_run_changes_nothing(
        handlers in prop::collection::vec(handler(), 0..5),
    ) {
        let manifest = manifest(&handlers);
        let Some(plan) = plan_of(&manifest, &BTreeMap::new()) else { return Ok(()) };
        for file in &plan {
            let (FileContent::Generated(text) | FileContent::Scaffold(text)) = &file.content else { continue };
            if file.path.as_str().ends_with(".rs") {
                prop_assert!(syn::parse_file(text).is_ok(), "{}:\n{text}", file.path);
            }
        }
        let user = user_files(&plan, &BTreeMap::new());
        let again = plan_of(&manifest, &user).expect("it was accepted before");
        prop_assert_eq!(user_files(&again, &user), user);
        let generated = |plan: &[FormattedFile]| {
            plan.iter().filter(|it| matches!(it.content, FileContent::Generated(_))).cloned().collect::<Vec<_>>()
        };
        prop_assert_eq!(generated(&again), generated(&plan));
    }

    #[test]
    fn adding_and_removing_handlers_keeps_every_byte_of_the_user(
        first in prop::collection::vec(handler(), 1..4),
        second in prop::collection::vec(handler(), 1..4),
        comments in prop::collection::vec("// [ -~ä]{0,40}\n", 1..6),
        windows in any::<bool>(),
        cut in any::<bool>(),
    ) {
        let Some(plan) = plan_of(&manifest(&first), &BTreeMap::new()) else { return Ok(()) };
        let mut user = user_files(&plan, &BTreeMap::new());
        for text in user.values_mut() {
            // A comment before the first lines without indentation.
            for (number, comment) in comments.iter().enumerate() {
                if let Some((at, _)) = text.match_indices("\n    ").nth(number * 2) {
                    text.insert_str(at + 1, comment);
                }
            }
            if windows {
                *text = text.replace('\n', "\r\n");
            }
            if cut {
                text.truncate(text.trim_end().len());
            }
        }
        let Some(plan) = plan_of(&manifest(&second), &user) else { return Ok(()) };
        for (path, after) in user_files(&plan, &user) {
            let Some(before) = user.get(&path) else { continue };
            let prefix = before.bytes().zip(after.bytes()).take_while(|(a, b)| a == b).count();
            let suffix = before.bytes().rev().zip(after.bytes().rev()).take_while(|(a, b)| a == b).count();
            prop_assert!(prefix + suffix >= before.len(), "{path} lost bytes:\n{before}\n---\n{after}");
            prop_assert!(syn::parse_file(&after).is_ok(), "{path}:\n{after}");
        }
    }
}
