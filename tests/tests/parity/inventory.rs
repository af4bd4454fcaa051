//! Every name of Kopf has a row in the documentation.

use std::path::Path;

use kopf_tests::{PythonKopf, TestFailure, TestResult};

/// Prints the names of Kopf, one per line.
const NAMES: &str = "
import dataclasses, inspect, types
import kopf, kopf.cli, kopf.testing
from kopf._cogs.configs import configuration
decorators = ['startup', 'cleanup', 'login', 'probe', 'create', 'update', 'delete', 'resume',
              'field', 'event', 'validate', 'mutate']
functions = [getattr(kopf.on, name) for name in decorators]
functions += [kopf.daemon, kopf.timer, kopf.index, kopf.subhandler, kopf.register]
# `__all__` leaves out some public functions.
public = {name: it for name, it in vars(kopf).items()
          if not name.startswith('_') and not isinstance(it, types.ModuleType)}
public |= {name: getattr(kopf, name) for name in kopf.__all__ if name != 'on'}
testing = {name: getattr(kopf.testing, name) for name in kopf.testing.__all__}
names = {f'on.{name}' for name in decorators} | set(public) | set(testing)
for function in functions:
    names |= set(inspect.signature(function).parameters)
for function in [*public.values(), *testing.values()]:
    function = function.__init__ if inspect.isclass(function) else function
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        continue
    names |= {it.name for it in parameters
              if it.kind not in (it.VAR_POSITIONAL, it.VAR_KEYWORD)
              and not it.name.startswith('_') and it.name not in ('self', 'args')}
names |= {name for name, it in vars(kopf.lifecycles).items()
          if inspect.isfunction(it) and not name.startswith('_')}
for section in dataclasses.fields(configuration.OperatorSettings):
    for field in dataclasses.fields(section.default_factory):
        if not field.name.startswith('_'):
            names.add(f'settings {section.name}.{field.name}')
for command in kopf.cli.main.commands.values():
    for option in command.params:
        names |= {name for name in [*option.opts, *option.secondary_opts] if name.startswith('--')}
print('\\n'.join(sorted(names)))
";

/// The arguments of handlers, by Kopf's documentation.
pub(crate) const ARGUMENTS: &[&str] = &[
    "retry",
    "started",
    "runtime",
    "param",
    "memo",
    "patch",
    "logger",
    "resource",
    "body",
    "spec",
    "meta",
    "status",
    "uid",
    "name",
    "namespace",
    "labels",
    "annotations",
    "event",
    "type",
    "reason",
    "diff",
    "old",
    "new",
    "stopped",
    "settings",
    "dryrun",
    "operation",
    "subresource",
    "warnings",
    "userinfo",
    "sslpeer",
    "headers",
];

pub(crate) fn page(name: &str) -> Result<String, TestFailure> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    Ok(std::fs::read_to_string(docs.join(name))?)
}

#[tokio::test]
async fn every_name_of_kopf_has_a_row() -> TestResult {
    let (parity, settings) = (page("parity.md")?, page("settings.md")?);
    let kopf = PythonKopf::obtain().await?.evaluate(NAMES, "")?;
    let names: Vec<&str> = kopf.lines().collect();
    assert!(names.len() > 150, "{names:?}");
    let is_missing = |name: &&str| match name.strip_prefix("settings ") {
        // A whole section may be elsewhere, as that of the peering is.
        Some(setting) => {
            let section = setting.split('.').next().unwrap_or_default();
            let is_row = |name: &str| settings.contains(&format!("\n| `{name}` |"));
            !is_row(setting) && !is_row(section)
        }
        None => !parity.contains(&format!("`{name}`")),
    };
    let missing: Vec<&str> = names.into_iter().chain(ARGUMENTS.iter().copied()).collect();
    let missing: Vec<&str> = missing.into_iter().filter(|it| is_missing(it)).collect();
    assert_eq!(missing, [""; 0], "these have no row");
    Ok(())
}
