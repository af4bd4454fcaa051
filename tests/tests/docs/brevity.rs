//! How much of an operator a user writes, beside the Python original: counted, not claimed.
//!
//! A line counts if it is neither blank nor a comment; Rust is as rustfmt leaves it. What a user
//! writes is what kopf-gen does not: the lines of the manifest beyond those of `kopf-gen new`, and
//! the lines of the handlers, of the operator's state and of `main.rs` beyond those of the stubs.
//! To read are all lines of the manifest, and of all files in which anything is written.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use kopf_tests::{TestFailure, TestResult, workspace};
use tempfile::TempDir;

/// A user may have to write this many times the lines of the original, and not more.
const LIMIT: f64 = 1.5;

/// The page that compares each example with its original.
const PAGE: &str = "docs/parity.md";

/// The examples without an original among those of Kopf.
const WITHOUT_ORIGINAL: [&str; 9] = [
    "18-selection",
    "19-children-reconcile",
    "21-migration",
    "22-load-tests",
    "23-tenants",
    "24-nats",
    "25-ephemeral-volumes",
    "26-all-at-once",
    "27-tenants-reconcile",
];

/// What the entry of a handler in the manifest begins with.
const HANDLERS: [&str; 9] = [
    "on", "timer", "daemon", "index", "state", "startup", "cleanup", "validate", "mutate",
];

/// One row of the table.
#[derive(Debug, PartialEq)]
struct Row {
    example: String,
    original: Measure,
    written: Measure,
    to_read: usize,
}

/// Lines, and how many handlers they are about.
#[derive(Debug, PartialEq, Clone, Copy)]
struct Measure {
    lines: usize,
    handlers: usize,
}

impl Row {
    /// How much more a user writes here, per handler where this example has more of them.
    fn ratio(&self) -> f64 {
        let scale = |measure: Measure, handlers: usize| {
            f64::from(u32::try_from(measure.lines).expect("a file is small"))
                / f64::from(u32::try_from(handlers).expect("a file is small"))
        };
        if self.written.handlers > self.original.handlers {
            scale(self.written, self.written.handlers)
                / scale(self.original, self.original.handlers)
        } else {
            scale(self.written, 1) / scale(self.original, 1)
        }
    }

    /// A row of the table, or none if the line is not one.
    fn parse(line: &str) -> Option<Self> {
        let (example, numbers) = line.strip_prefix("| [`")?.split_once('`')?;
        let numbers: Vec<usize> = numbers
            .split('|')
            .filter_map(|cell| cell.trim().parse().ok())
            .collect();
        let [original, its_handlers, written, handlers, to_read, ..] = *numbers else {
            return None;
        };
        let measure = |lines, handlers| Measure { lines, handlers };
        Some(Self {
            example: example.to_owned(),
            original: measure(original, its_handlers),
            written: measure(written, handlers),
            to_read,
        })
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "| [`{0}`](../examples/{0}) | {1} | {2} | {3} | {4} | {5} | {6:.2} |",
            self.example,
            self.original.lines,
            self.original.handlers,
            self.written.lines,
            self.written.handlers,
            self.to_read,
            self.ratio(),
        )
    }
}

/// The last row: all examples together, as they are.
struct Total {
    original: usize,
    written: usize,
    to_read: usize,
}

impl Total {
    fn of(rows: &[Row]) -> Self {
        let sum = |lines: fn(&Row) -> usize| rows.iter().map(lines).sum();
        Self {
            original: sum(|row| row.original.lines),
            written: sum(|row| row.written.lines),
            to_read: sum(|row| row.to_read),
        }
    }
}

impl fmt::Display for Total {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "| all | {} | | {} | | {} | |",
            self.original, self.written, self.to_read
        )
    }
}

/// The lines that count.
fn code(path: &Path) -> Vec<String> {
    let comment = match path.extension() {
        Some(extension) if extension == "yaml" => "#",
        _ => "//",
    };
    let text = fs::read_to_string(path).unwrap_or_default();
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with(comment));
    lines.map(str::to_owned).collect()
}

/// How many of `lines` are not among the lines of `given`, in their order.
fn beyond(lines: &[String], given: &[String]) -> usize {
    let mut common = vec![0; given.len() + 1];
    for line in lines {
        let before = common.clone();
        for (place, other) in given.iter().enumerate() {
            common[place + 1] = if line == other {
                before[place] + 1
            } else {
                common[place].max(before[place + 1])
            };
        }
    }
    lines.len() - common[given.len()]
}

fn run(generator: &Path, arguments: &[&str], paths: &[&Path]) -> TestResult {
    let output = Command::new(generator)
        .args(arguments)
        .args(paths)
        .output()?;
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

/// The files in a folder, none if there is no such folder.
fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<_> = entries.map(|entry| entry.path()).collect();
    files.sort();
    files
}

/// Counts an example; the original's side is as the page has it.
fn count(generator: &Path, stated: &Row) -> Result<Row, TestFailure> {
    let example = workspace::root().join("examples").join(&stated.example);
    let manifest = example.join("kopf.yaml");
    let folder = TempDir::new()?;
    let (given, stubs) = (folder.path().join("given"), folder.path().join("stubs"));
    let mut definitions = files_in(&example.join("crds"));
    definitions.retain(|file| !file.ends_with("kustomization.yaml"));
    if let [definition] = &definitions[..] {
        run(generator, &["new", "--crd"], &[definition, &given])?;
    } else {
        run(generator, &["new"], &[&given])?;
    }
    fs::create_dir_all(stubs.join("crds"))?;
    fs::copy(&manifest, stubs.join("kopf.yaml"))?;
    for definition in &definitions {
        let name = definition.file_name().expect("a file has a name");
        fs::copy(definition, stubs.join("crds").join(name))?;
    }
    run(
        generator,
        &["generate", "--manifest"],
        &[&stubs.join("kopf.yaml")],
    )?;

    let declared = code(&manifest);
    let mut written = beyond(&declared, &code(&given.join("kopf.yaml")));
    let mut to_read = declared.len();
    let others = ["src/handlers.rs", "src/main.rs"].map(|file| example.join(file));
    for file in files_in(&example.join("src/handlers"))
        .iter()
        .chain(&others)
    {
        let inside = file.strip_prefix(&example).expect("it is in the example");
        let lines = code(file);
        let own = beyond(&lines, &code(&stubs.join(inside)));
        written += own;
        // A user need not read a file that is as it was generated.
        if own > 0 || inside.starts_with("src/handlers") {
            to_read += lines.len();
        }
    }
    let is_handler = |line: &&String| {
        HANDLERS
            .iter()
            .any(|key| line.starts_with(&format!("- {{{key}:")))
    };
    Ok(Row {
        example: stated.example.clone(),
        original: stated.original,
        written: Measure {
            lines: written,
            handlers: declared.iter().filter(is_handler).count(),
        },
        to_read,
    })
}

#[test]
fn an_operator_takes_hardly_more_lines_than_its_python_original() -> TestResult {
    let generator = workspace::build_program("kopf-gen")?;
    let page = fs::read_to_string(workspace::root().join(PAGE))?;
    let stated: Vec<&str> = page
        .lines()
        .filter(|line| Row::parse(line).is_some())
        .collect();
    let rows: Vec<Row> = stated
        .iter()
        .filter_map(|line| Row::parse(line))
        .map(|row| count(&generator, &row))
        .collect::<Result<_, TestFailure>>()?;
    let counted: Vec<String> = rows.iter().map(Row::to_string).collect();
    let total = Total::of(&rows).to_string();
    assert!(
        stated == counted && page.lines().any(|line| line == total),
        "{PAGE} should say:\n{}\n{total}",
        counted.join("\n")
    );
    for entry in fs::read_dir(workspace::root().join("examples"))? {
        let name = entry?.file_name();
        let has_original = !WITHOUT_ORIGINAL.iter().any(|it| name == **it);
        let has_row = rows.iter().any(|row| name == *row.example);
        assert_eq!(has_row, has_original, "{}", name.display());
    }
    let long: Vec<&Row> = rows.iter().filter(|row| row.ratio() > LIMIT).collect();
    assert!(long.is_empty(), "these are too long: {long:#?}");
    Ok(())
}

#[test]
fn only_what_the_generator_did_not_write_counts_as_written() {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let stub = lines("fn f() {\nOk(())\n}");
    assert_eq!(beyond(&stub, &stub), 0);
    assert_eq!(beyond(&lines("fn f() {\nwork();\nOk(())\n}"), &stub), 1);
    assert_eq!(beyond(&lines("Ok(())\nfn f() {\n}"), &stub), 1, "moved");
    assert_eq!(beyond(&lines("fn g() {\nOk(())\n}"), &stub), 1, "changed");
}
