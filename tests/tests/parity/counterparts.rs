//! The tables of `docs/kopf.md` have every name of Kopf's own signatures, under its heading.

use std::collections::BTreeSet;

use kopf_tests::{PythonKopf, TestResult};

use crate::inventory::{ARGUMENTS, page};

/// Prints a heading of the page and a name on each line.
const NAMES: &str = "
import dataclasses, inspect
import kopf, kopf.cli, kopf.testing
from kopf._cogs.configs import configuration
of_on = {name: it for name, it in vars(kopf.on).items()
         if inspect.isfunction(it) and it.__module__ == kopf.on.__name__
         and inspect.signature(it).return_annotation is not inspect.Signature.empty}
free = ['daemon', 'timer', 'index', 'subhandler', 'register']
for name, function in of_on.items():
    if name.startswith('_'):
        continue
    print('Decorators', name if name in free else f'on.{name}', sep='\\t')
    for option in inspect.signature(function).parameters:
        print('Options of decorators', option, sep='\\t')
for section in dataclasses.fields(configuration.OperatorSettings):
    for field in dataclasses.fields(section.default_factory):
        if not field.name.startswith('_'):
            print('Settings', f'{section.name}.{field.name}', sep='\\t')
for name in [*vars(kopf), *kopf.testing.__all__]:
    if not name.startswith('_'):
        print('Functions and classes', name, sep='\\t')
for name, command in kopf.cli.main.commands.items():
    print('Command line', name, sep='\\t')
    for option in command.params:
        for spelling in [*option.opts, *option.secondary_opts]:
            if spelling.startswith('--'):
                print('Command line', spelling, sep='\\t')
";

/// The names in the first cells of the tables under a heading.
fn rows<'a>(page: &'a str, heading: &str) -> BTreeSet<&'a str> {
    let section = page
        .split("\n## ")
        .find(|it| it.lines().next() == Some(heading));
    let lines = section.unwrap_or_default().lines();
    let cells = lines.filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    cells
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        // The arguments of a call are an example.
        .map(|name| name.split('(').next().unwrap_or(name))
        .collect()
}

#[tokio::test]
async fn every_name_of_kopf_has_a_counterpart_under_its_heading() -> TestResult {
    let page = page("kopf.md")?;
    let names = PythonKopf::obtain().await?.evaluate(NAMES, "")?;
    let named = names.lines().filter_map(|line| line.split_once('\t'));
    let arguments = ARGUMENTS
        .iter()
        .map(|name| ("Arguments of handlers", *name));
    let all: BTreeSet<(&str, &str)> = named.chain(arguments).collect();
    for (heading, fewest) in [
        ("Decorators", 17),
        ("Options of decorators", 38),
        ("Arguments of handlers", 30),
        ("Settings", 40),
        ("Command line", 18),
        ("Functions and classes", 100),
    ] {
        let wanted = all
            .iter()
            .filter(|(it, _)| *it == heading)
            .map(|(_, name)| *name);
        let wanted: BTreeSet<&str> = wanted.collect();
        assert!(wanted.len() >= fewest, "{heading}: only {wanted:?}");
        let found = rows(&page, heading);
        let is_selected = heading == "Functions and classes";
        let missing: Vec<&&str> = wanted.difference(&found).collect();
        // The page about parity has all of these; this one has those that most operators use.
        assert!(
            is_selected || missing.is_empty(),
            "{heading} in docs/kopf.md: {missing:?}"
        );
        let left_over: Vec<&&str> = found
            .difference(&wanted)
            .filter(|it| **it != "**kwargs")
            .collect();
        assert!(left_over.is_empty(), "{heading}: Kopf has no {left_over:?}");
    }
    Ok(())
}

#[test]
fn names_are_read_from_first_cells_under_their_heading() {
    let page = "# a\n\n## One\n\n| `b`, `c` | `d` |\n\n## Two\n\n| `e` | f |\n";
    assert_eq!(rows(page, "One"), BTreeSet::from(["b", "c"]));
}
