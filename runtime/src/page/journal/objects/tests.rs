//! States of objects, filters, search and paging.

use super::*;

fn subject<'a>(kind: &'a str, name: &'a str) -> JournalSubject<'a> {
    JournalSubject {
        api_version: "example.com/v1",
        kind,
        namespace: Some("default"),
        name,
        uid: name,
    }
}

fn now() -> Timestamp {
    Timestamp::from_second(1_000).unwrap()
}

/// Ten widgets, of which the fourth waits and the seventh has a problem, and one gadget.
fn table() -> ObjectTable {
    let mut table = ObjectTable::default();
    for number in 0..10 {
        let name = format!("widget-{number}");
        let entry = table.entry(&subject("Widget", &name), now()).unwrap();
        entry.reason = Some("create");
        match number {
            4 => entry.until = Some(Millis(2_000)),
            7 => entry.problem = Some("no".into()),
            _ => {}
        }
    }
    table.entry(&subject("Gadget", "gadget"), now()).unwrap();
    table
}

fn names(page: &ObjectPage) -> Vec<&str> {
    page.objects.iter().map(|it| &*it.name).collect()
}

#[test]
fn pages_are_in_the_order_of_kind_and_name() {
    let table = table();
    let page = |page| {
        table.page(&ObjectQuery {
            page,
            size: 4,
            ..ObjectQuery::default()
        })
    };
    assert_eq!(page(0).total, 11);
    assert_eq!(
        names(&page(0)),
        ["gadget", "widget-0", "widget-1", "widget-2"]
    );
    assert_eq!(names(&page(2)), ["widget-7", "widget-8", "widget-9"]);
    let beyond = page(99);
    assert_eq!((beyond.page, names(&beyond).len()), (2, 3));
}

#[test]
fn objects_are_found_by_kind_state_and_a_part_of_their_name() {
    let table = table();
    let find = |kind: Option<&str>, state, search: &str| {
        let page = table.page(&ObjectQuery {
            kind: kind.map(str::to_owned),
            state,
            search: search.to_owned(),
            page: 0,
            size: 100,
        });
        names(&page)
            .into_iter()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(find(Some("Gadget.example.com"), None, ""), ["gadget"]);
    assert_eq!(find(None, Some(ShownState::Waiting), ""), ["widget-4"]);
    assert_eq!(find(None, Some(ShownState::Problem), ""), ["widget-7"]);
    assert_eq!(find(None, Some(ShownState::Idle), ""), ["gadget"]);
    assert_eq!(find(None, None, "default/widget-9"), ["widget-9"]);
    assert!(find(None, Some(ShownState::Waiting), "gadget").is_empty());
}

#[test]
fn the_counts_are_by_kind_and_state() {
    let counts = serde_json::to_value(table().counts()).unwrap();
    let expected = serde_json::json!({
        "Gadget.example.com": {"idle": 1},
        "Widget.example.com": {"handled": 8, "problem": 1, "waiting": 1},
    });
    assert_eq!(counts, expected);
}

#[test]
fn a_daemon_that_runs_does_not_make_the_object_run() {
    let mut table = ObjectTable::default();
    let widget = subject("Widget", "one");
    let entry = table.entry(&widget, now()).unwrap();
    let daemon = entry.handler("watch", JournalHandlerType::Daemon, now());
    daemon.unwrap().progress = HandlerProgress::Running;
    assert_eq!(entry.state(), ShownState::Idle);
    let change = entry.handler("work", JournalHandlerType::Change, now());
    change.unwrap().progress = HandlerProgress::Running;
    assert_eq!(entry.state(), ShownState::Running);
}

#[test]
fn an_object_that_is_gone_leaves_nothing() {
    let mut table = table();
    table.remove("gadget");
    table.remove("gadget");
    assert!(table.detail("gadget").is_none());
    assert_eq!(
        table
            .page(&ObjectQuery {
                size: 1,
                ..ObjectQuery::default()
            })
            .total,
        10
    );
}
