//! Writing loses no edits of the user, and a killed run never leaves a mixture of old and new files.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use tempfile::TempDir;

use super::*;
use crate::crate_path::CratePath;
use crate::format::{FileContent, FormattedFile};

fn compare(root: &Path, files: &[FormattedFile], edited: EditPolicy) -> Result<Comparison, Error> {
    super::compare(root, &WantedFiles::from(files.to_vec()), edited)
}

fn path(text: &str) -> CratePath {
    CratePath::new(text).expect("a path inside the crate")
}

fn file(at: &str, content: FileContent) -> FormattedFile {
    FormattedFile {
        path: path(at),
        content,
    }
}

fn generated(at: &str, text: &str) -> FormattedFile {
    file(at, FileContent::Generated(text.to_owned()))
}

fn scaffold(at: &str, text: &str) -> FormattedFile {
    file(at, FileContent::Scaffold(text.to_owned()))
}

fn run(root: &Path, plan: &[FormattedFile]) -> Comparison {
    let comparison = compare(root, plan, EditPolicy::Keep).expect("readable");
    apply(root, &comparison).expect("writable");
    comparison
}

fn tree(root: &Path) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let entry = entry.expect("an entry").path();
            if entry.is_dir() {
                folders.push(entry);
            } else {
                let name = entry
                    .strip_prefix(root)
                    .expect("below root")
                    .to_string_lossy()
                    .into_owned();
                files.insert(name, fs::read_to_string(&entry).expect("text"));
            }
        }
    }
    files
}

fn crate_with(plan: &[FormattedFile]) -> TempDir {
    let root = tempfile::tempdir().expect("a folder");
    run(root.path(), plan);
    root
}

#[test]
fn a_second_run_writes_nothing() {
    let plan = [
        generated("src/generated.rs", "a\n"),
        scaffold("src/main.rs", "fn main() {}\n"),
    ];
    let root = crate_with(&plan);
    assert_eq!(run(root.path(), &plan).changes, []);
    assert_eq!(
        tree(root.path()).into_keys().collect::<Vec<_>>(),
        [".kopf-gen/lock.json", "src/generated.rs", "src/main.rs"]
    );
}

#[test]
fn user_files_are_written_once() {
    let root = crate_with(&[scaffold("src/main.rs", "one\n")]);
    fs::write(root.path().join("src/main.rs"), "mine").expect("writable");
    run(root.path(), &[scaffold("src/main.rs", "two\n")]);
    assert_eq!(tree(root.path())["src/main.rs"], "mine");
}

#[test]
fn edited_generated_file_is_a_conflict_until_forced() {
    let root = crate_with(&[generated("src/generated.rs", "a\n")]);
    fs::write(root.path().join("src/generated.rs"), "a, and mine\n").expect("writable");
    let plan = [generated("src/generated.rs", "b\n")];
    let refused = compare(root.path(), &plan, EditPolicy::Keep).expect("readable");
    assert_eq!(refused.conflicts.len(), 1);
    assert_eq!(refused.conflicts[0].on_disk, b"a, and mine\n");
    let forced = compare(root.path(), &plan, EditPolicy::Overwrite).expect("readable");
    apply(root.path(), &forced).expect("writable");
    assert_eq!(tree(root.path())["src/generated.rs"], "b\n");
}

#[test]
fn generated_file_with_windows_line_endings_is_not_an_edit() {
    let plan = [generated("src/generated.rs", "a\nb\n")];
    let root = crate_with(&plan);
    fs::write(root.path().join("src/generated.rs"), "a\r\nb\r\n").expect("writable");
    let comparison = run(root.path(), &plan);
    assert_eq!(
        (comparison.changes.len(), comparison.conflicts.len()),
        (0, 0)
    );
}

#[test]
fn an_obsolete_file_is_deleted_only_without_edits() {
    let root = crate_with(&[
        generated("src/generated/a.rs", "a\n"),
        generated("src/generated/b.rs", "b\n"),
    ]);
    fs::write(root.path().join("src/generated/b.rs"), "mine\n").expect("writable");
    let comparison = run(root.path(), &[]);
    assert_eq!(comparison.released, [path("src/generated/b.rs")]);
    let left = tree(root.path());
    assert!(!left.contains_key("src/generated/a.rs"));
    assert_eq!(left["src/generated/b.rs"], "mine\n");
    assert!(
        run(root.path(), &[]).released.is_empty(),
        "it is the user's now"
    );
}

#[test]
fn the_folder_of_the_last_obsolete_file_is_deleted() {
    let root = crate_with(&[
        generated("src/generated/pod/v1.rs", "a\n"),
        scaffold("src/main.rs", "m\n"),
    ]);
    run(root.path(), &[scaffold("src/main.rs", "m\n")]);
    assert!(!root.path().join("src/generated").exists());
    assert!(root.path().join("src").exists());
}

#[test]
fn a_file_changed_between_reading_and_writing_stops_the_run() {
    let root = crate_with(&[scaffold("src/handlers.rs", "one\n")]);
    let plan = [file(
        "src/handlers.rs",
        FileContent::Splice {
            before: "one\n".into(),
            after: "one\ntwo\n".into(),
        },
    )];
    let comparison = compare(root.path(), &plan, EditPolicy::Keep).expect("readable");
    fs::write(root.path().join("src/handlers.rs"), "saved by an editor\n").expect("writable");
    let error = apply(root.path(), &comparison).expect_err("the file is not what was read");
    assert!(matches!(error, Error::ChangedMeanwhile(_)), "{error}");
    assert_eq!(tree(root.path())["src/handlers.rs"], "saved by an editor\n");
}

#[test]
fn a_run_killed_at_any_step_leaves_the_old_state_or_is_completed() {
    let old = [
        generated("src/a.rs", "a1\n"),
        generated("src/b.rs", "b1\n"),
        generated("src/gone.rs", "g\n"),
    ];
    let new = [
        generated("src/a.rs", "a2\n"),
        generated("src/b.rs", "b2\n"),
        scaffold("src/c.rs", "c\n"),
    ];
    let before = tree(crate_with(&old).path());
    let after = {
        let root = crate_with(&old);
        run(root.path(), &new);
        tree(root.path())
    };
    let mut outcomes = (0, 0);
    for survived in 0.. {
        let root = crate_with(&old);
        let comparison = compare(root.path(), &new, EditPolicy::Keep).expect("readable");
        let mut left = survived;
        let killed = journal::commit(root.path(), &comparison.changes, &mut || {
            left -= 1;
            if left < 0 {
                Err(io::Error::other("killed"))
            } else {
                Ok(())
            }
        })
        .is_err();
        recover(root.path()).expect("recoverable");
        match tree(root.path()) {
            now if now == before => outcomes.0 += 1,
            now if now == after => outcomes.1 += 1,
            mix => panic!("killed after {survived} steps: {mix:#?}"),
        }
        if !killed {
            break;
        }
    }
    assert!(
        outcomes.0 > 3 && outcomes.1 > 4,
        "both sides were reached: {outcomes:?}"
    );
}

#[test]
fn the_next_run_completes_a_killed_recovery() {
    let root = crate_with(&[generated("a.rs", "1\n"), generated("b.rs", "1\n")]);
    let new = [generated("a.rs", "2\n"), generated("b.rs", "2\n")];
    let comparison = compare(root.path(), &new, EditPolicy::Keep).expect("readable");
    // Three staged texts, the draft and the journal, then the first move.
    let mut left = 6;
    let die = |limit: &mut i32| {
        *limit -= 1;
        if *limit < 0 {
            Err(io::Error::other("killed"))
        } else {
            Ok(())
        }
    };
    journal::commit(root.path(), &comparison.changes, &mut || die(&mut left)).expect_err("killed");
    assert!(is_interrupted(root.path()));
    let mut left = 1;
    journal::recover(root.path(), &mut || die(&mut left)).expect_err("killed again");
    assert!(recover(root.path()).expect("recoverable"));
    assert_eq!(tree(root.path())["b.rs"], "2\n");
    assert!(!is_interrupted(root.path()));
}

#[test]
fn an_edit_made_after_an_interruption_is_not_overwritten() {
    let root = crate_with(&[generated("a.rs", "1\n")]);
    let comparison =
        compare(root.path(), &[generated("a.rs", "2\n")], EditPolicy::Keep).expect("readable");
    let mut left = 4;
    journal::commit(root.path(), &comparison.changes, &mut || {
        left -= 1;
        if left < 0 {
            Err(io::Error::other("killed"))
        } else {
            Ok(())
        }
    })
    .expect_err("killed");
    fs::write(root.path().join("a.rs"), "edited\n").expect("writable");
    let error = recover(root.path()).expect_err("the edit would be lost");
    assert!(
        matches!(error, Error::EditedAfterInterruption { .. }),
        "{error}"
    );
    assert_eq!(tree(root.path())["a.rs"], "edited\n");
}

#[test]
fn a_second_writer_gets_an_error() {
    let root = crate_with(&[generated("a.rs", "1\n")]);
    let comparison =
        compare(root.path(), &[generated("a.rs", "2\n")], EditPolicy::Keep).expect("readable");
    let mut nested = None;
    journal::commit(root.path(), &comparison.changes, &mut || {
        if nested.is_none() {
            nested = Some(apply(root.path(), &comparison));
        }
        Ok(())
    })
    .expect("the first one wins");
    assert!(matches!(nested, Some(Err(Error::Busy(_)))), "{nested:?}");
}

#[cfg(unix)]
#[test]
fn no_link_in_a_crate_makes_a_run_write_outside_of_it() {
    let (crate_folder, outside) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let root = crate_folder.path();
    fs::create_dir(root.join("src")).unwrap();
    let plan = [generated("src/generated/mod.rs", "// new")];
    let is_refused = |compared: Result<Comparison, Error>| {
        assert!(matches!(compared, Err(Error::Outside(_))), "{compared:?}");
        assert_eq!(tree(outside.path()).len(), 1, "nothing is written");
    };
    fs::write(outside.path().join("theirs"), "kept").unwrap();

    std::os::unix::fs::symlink(outside.path(), root.join("src/generated")).unwrap();
    is_refused(compare(root, &plan, EditPolicy::Overwrite));
    fs::remove_file(root.join("src/generated")).unwrap();

    fs::create_dir(root.join("src/generated")).unwrap();
    let link = root.join("src/generated/mod.rs");
    std::os::unix::fs::symlink(outside.path().join("theirs"), &link).unwrap();
    is_refused(compare(root, &plan, EditPolicy::Overwrite));
    fs::remove_file(link).unwrap();

    std::os::unix::fs::symlink(outside.path(), root.join(".kopf-gen")).unwrap();
    let comparison = compare(root, &plan, EditPolicy::Keep);
    is_refused(comparison.and_then(|it| apply(root, &it).map(|()| it)));
}

#[cfg(unix)]
#[test]
fn a_file_of_the_user_may_be_a_link_to_another_place() {
    let (crate_folder, outside) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let shared = outside.path().join("kopf.yaml");
    fs::write(&shared, "before").unwrap();
    std::os::unix::fs::symlink(&shared, crate_folder.path().join("kopf.yaml")).unwrap();
    let (before, after) = ("before".to_owned(), "after".to_owned());
    run(
        crate_folder.path(),
        &[file("kopf.yaml", FileContent::Splice { before, after })],
    );
    assert_eq!(fs::read_to_string(shared).unwrap(), "after");
}

#[test]
fn a_journal_moves_only_files_that_were_staged() {
    let folder = TempDir::new().unwrap();
    let root = folder.path().join("crate");
    fs::create_dir_all(root.join(".kopf-gen")).unwrap();
    fs::write(folder.path().join("secret"), "kept").unwrap();
    let step = r#"{"path": "a.rs", "before": null, "action": {"replace": {"staged": "../../../secret", "after": "00"}}}"#;
    let journal = format!(r#"{{"steps": [{step}]}}"#);
    fs::write(root.join(".kopf-gen/journal.json"), journal).unwrap();
    let recovered = recover(&root);
    assert!(
        matches!(recovered, Err(Error::Journal { .. })),
        "{recovered:?}"
    );
    assert!(folder.path().join("secret").exists());
}
