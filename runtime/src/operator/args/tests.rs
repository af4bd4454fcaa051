//! Command lines, and the actions that they ask for.

use super::*;

fn request(line: &[&str]) -> RequestedAction {
    Cli::try_parse_from([&["operator"], line].concat())
        .unwrap()
        .into()
}

#[test]
fn the_command_line_is_well_formed() {
    command("operator", None).debug_assert();
}

#[test]
fn the_version_is_that_of_the_operator_or_else_of_the_runtime() {
    let printed = |version| {
        let parsed = command("operator", version).try_get_matches_from(["operator", "--version"]);
        let shown = parsed.expect_err("the command line ends with the version");
        assert_eq!(shown.kind(), clap::error::ErrorKind::DisplayVersion);
        shown.to_string()
    };
    assert_eq!(printed(Some("1.2.3")), "operator 1.2.3\n");
    let of_runtime = format!("operator (kopf-runtime {})\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(printed(None), of_runtime);
}

#[test]
fn running_is_the_default_and_takes_the_same_options() {
    for line in [
        &["-n", "a", "-n", "b", "-v"][..],
        &["run", "--namespace=a", "-nb", "-v"],
    ] {
        let RequestedAction::Run(args) = request(line) else {
            panic!("{line:?} does not run");
        };
        assert_eq!(args.scope.namespace, ["a", "b"].map(NamespacePattern::new));
        assert_eq!(args.logging.verbosity(), LogVerbosity::Verbose);
    }
}

#[test]
fn the_last_option_decides_whether_log_lines_begin_with_their_object() {
    for (line, prefix) in [
        (&[][..], None),
        (&["--log-format", "json"], None),
        (&["--log-format", "json", "--log-prefix"], Some(true)),
        (&["--no-log-prefix"], Some(false)),
        (&["--no-log-prefix", "--log-prefix"], Some(true)),
        (&["--log-prefix", "--no-log-prefix"], Some(false)),
        (&["--log-prefix=false"], Some(false)),
        (&["--log-prefix=yes", "--log-format", "json"], Some(true)),
    ] {
        let RequestedAction::Run(args) = request(line) else {
            panic!("{line:?} does not run");
        };
        assert_eq!(args.logging.log_prefix(), prefix, "{line:?}");
    }
}

#[test]
fn every_option_of_a_run_has_a_variable_named_after_it() {
    let command = Cli::command();
    let run = command.find_subcommand("run").unwrap();
    for option in run.get_opts().chain(run.get_arguments()) {
        let Some(long) = option.get_long().filter(|long| *long != "help") else {
            continue;
        };
        // The variable of the positive option takes true and false.
        if long.starts_with("no-") {
            continue;
        }
        let variable = format!("KOPF_RUN_{}", long.to_uppercase().replace('-', "_"));
        let actual = option.get_env().and_then(|name| name.to_str());
        assert_eq!(actual, Some(variable.as_str()));
        assert!(option.get_help().is_some(), "--{long} has no help");
    }
}

#[test]
fn the_variables_of_a_run_are_not_those_of_other_commands() {
    let command = command("operator", None);
    for (name, prefix) in [("freeze", "KOPF_FREEZE_"), ("resume", "KOPF_RESUME_")] {
        let subcommand = command.find_subcommand(name).unwrap();
        for variable in subcommand.get_arguments().filter_map(clap::Arg::get_env) {
            assert!(
                variable.to_string_lossy().starts_with(prefix),
                "{variable:?}"
            );
        }
    }
    for (own, _) in KOPF_VARIABLES {
        let commands = command.get_subcommands();
        let mut variables = commands
            .flat_map(clap::Command::get_arguments)
            .filter_map(clap::Arg::get_env);
        assert!(
            variables.any(|it| it == own),
            "{own} is not a variable of an option"
        );
    }
}

#[test]
fn formats_of_the_log_may_be_in_capitals() {
    assert!(matches!(
        request(&["--log-format", "JSON"]),
        RequestedAction::Run(_)
    ));
}

#[test]
fn the_whole_cluster_and_a_namespace_exclude_each_other() {
    assert!(Cli::try_parse_from(["operator", "-A", "-n", "a"]).is_err());
}

#[test]
fn an_invalid_namespace_pattern_is_rejected() {
    let error = |pattern| {
        let parsed = Cli::try_parse_from(["operator", "-n", pattern]);
        parsed.map(drop).unwrap_err().to_string()
    };
    assert!(error("a,b").contains("several namespaces are several patterns"));
    assert!(error("Prod").contains("no namespace has 'P' in its name"));
    assert!(error("").contains("a glob is empty"));
}

#[test]
fn the_crd_command_prints_or_applies_definitions() {
    assert!(matches!(request(&["crd"]), RequestedAction::PrintCrds));
    assert!(matches!(
        request(&["crd", "--apply"]),
        RequestedAction::ApplyCrds { force: false }
    ));
    assert!(Cli::try_parse_from(["operator", "crd", "--force"]).is_err());
}

#[test]
fn dev_overrides_the_priority() {
    for (line, priority) in [
        (&[][..], None),
        (&["-p", "-5"], Some(-5)),
        (&["--priority=7"], Some(7)),
        (&["--dev", "-p", "7"], Some(666)),
    ] {
        let RequestedAction::Run(args) = request(line) else {
            panic!("{line:?} does not run");
        };
        assert_eq!(args.peering.priority(), priority, "{line:?}");
    }
}

#[test]
fn peering_and_standalone_exclude_each_other() {
    assert!(Cli::try_parse_from(["operator", "--standalone", "-P", "a"]).is_err());
}

#[test]
fn freeze_requires_a_lifetime_and_takes_the_options_of_kopf() {
    assert!(Cli::try_parse_from(["operator", "freeze"]).is_err());
    let line = [
        "freeze", "-P", "ours", "-t", "30", "-i", "me", "-m", "lunch",
    ];
    let RequestedAction::Freeze(args) = request(&line) else {
        panic!("{line:?} does not freeze");
    };
    assert_eq!((args.lifetime, args.priority()), (30, 100));
    let RequestedAction::Freeze(args) = request(&["freeze", "-t", "30", "--dev"]) else {
        panic!("no freeze");
    };
    assert_eq!(args.priority(), 666);
    let RequestedAction::Resume(args) = request(&["resume", "-P", "ours", "-v"]) else {
        panic!("no resume");
    };
    assert_eq!(args.logging.verbosity(), LogVerbosity::Verbose);
}
