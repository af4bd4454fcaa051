//! Every style that people write survives an edit.

use super::*;

fn item() -> ListItem {
    ListItem {
        block: vec!["crd: new.yaml".into(), "handlers: []".into()],
        flow: "{crd: new.yaml, handlers: []}".into(),
    }
}

fn handler() -> ListItem {
    ListItem {
        block: vec!["{on: update, fn: b}".into()],
        flow: "{on: update, fn: b}".into(),
    }
}

#[test]
fn an_item_is_appended_after_the_last_comment_of_a_block_list() {
    let text = "# top\nresources:\n  - crd: a.yaml # first\n    handlers:\n      - {on: create, fn: a} # why\n\n# end\nother: 1\n";
    insta::assert_snapshot!(append(text, ManifestList::Resources, &item()).expect("usual"), @r"
    # top
    resources:
      - crd: a.yaml # first
        handlers:
          - {on: create, fn: a} # why
      - crd: new.yaml
        handlers: []

    # end
    other: 1
    ");
    insta::assert_snapshot!(append(text, ManifestList::Handlers(0), &handler()).expect("usual"), @r"
    # top
    resources:
      - crd: a.yaml # first
        handlers:
          - {on: create, fn: a} # why
          - {on: update, fn: b}

    # end
    other: 1
    ");
}

#[test]
fn a_flow_list_stays_a_flow_list() {
    let text = "resources: [{crd: a.yaml, handlers: [{on: create, fn: a}]}] # flat";
    assert_eq!(
        append(text, ManifestList::Handlers(0), &handler()).as_deref(),
        Ok(
            "resources: [{crd: a.yaml, handlers: [{on: create, fn: a}, {on: update, fn: b}]}] # flat"
        )
    );
    assert_eq!(
        append(text, ManifestList::Resources, &item()).as_deref(),
        Ok(
            "resources: [{crd: a.yaml, handlers: [{on: create, fn: a}]}, {crd: new.yaml, handlers: []}] # flat"
        )
    );
}

#[test]
fn missing_and_empty_lists_become_block_lists() {
    for (before, after) in [
        (
            "a: 1",
            "a: 1\nresources:\n  - crd: new.yaml\n    handlers: []",
        ),
        (
            "a: 1\n# end\n",
            "a: 1\nresources:\n  - crd: new.yaml\n    handlers: []\n# end\n",
        ),
        (
            "resources: [] # none\nb: 2\n",
            "resources: # none\n  - crd: new.yaml\n    handlers: []\nb: 2\n",
        ),
        (
            "resources:\nb: 2\n",
            "resources:\n  - crd: new.yaml\n    handlers: []\nb: 2\n",
        ),
        (
            "resources: ~\r\nb: 2\r\n",
            "resources:\r\n  - crd: new.yaml\r\n    handlers: []\r\nb: 2\r\n",
        ),
        (
            "{a: 1}",
            "{a: 1, resources: [{crd: new.yaml, handlers: []}]}",
        ),
    ] {
        assert_eq!(
            append(before, ManifestList::Resources, &item()).as_deref(),
            Ok(after),
            "{before:?}"
        );
    }
    let text = "resources:\n- crd: a.yaml\n- {crd: b.yaml}\n";
    assert_eq!(
        append(text, ManifestList::Handlers(0), &handler()).as_deref(),
        Ok("resources:\n- crd: a.yaml\n  handlers:\n    - {on: update, fn: b}\n- {crd: b.yaml}\n")
    );
    assert_eq!(
        append(text, ManifestList::Handlers(1), &handler()).as_deref(),
        Ok("resources:\n- crd: a.yaml\n- {crd: b.yaml, handlers: [{on: update, fn: b}]}\n")
    );
}

#[test]
fn items_are_removed_with_their_lines() {
    let text = "resources:\n  - crd: a.yaml\n    handlers:\n      - {fn: a}\n      # about b\n      - fn: b\n        on: create # x\n      - {fn: c}\n";
    assert_eq!(
        remove(text, ManifestList::Handlers(0), 1).as_deref(),
        Ok(
            "resources:\n  - crd: a.yaml\n    handlers:\n      - {fn: a}\n      # about b\n      - {fn: c}\n"
        )
    );
    let flow = "resources: [{handlers: [{fn: a}, {fn: b}]}]";
    assert_eq!(
        remove(flow, ManifestList::Handlers(0), 0).as_deref(),
        Ok("resources: [{handlers: [{fn: b}]}]")
    );
    assert_eq!(
        remove(flow, ManifestList::Handlers(0), 1).as_deref(),
        Ok("resources: [{handlers: [{fn: a}]}]")
    );
    let one = "resources:\n  - handlers:\n      - {fn: a} # only\n    crd: a\n";
    assert_eq!(
        remove(one, ManifestList::Handlers(0), 0).as_deref(),
        Ok("resources:\n  - handlers: []\n    crd: a\n")
    );
}

#[test]
fn lists_with_aliases_are_not_edited() {
    let text = "x: &x [{fn: a}]\nresources:\n  - handlers: *x\n";
    assert_eq!(
        append(text, ManifestList::Handlers(0), &handler()),
        Err(CannotEdit)
    );
}
