//! Command lines, and what they ask for.

use super::*;

fn request(line: &[&str]) -> Request {
    Cli::try_parse_from([&["operator"], line].concat())
        .unwrap()
        .into()
}

#[test]
fn the_command_line_is_well_formed() {
    command("operator").debug_assert();
}

#[test]
fn running_is_the_default_and_takes_the_same_options() {
    for line in [
        &["-n", "a", "-n", "b", "-v"][..],
        &["run", "--namespace=a", "-nb", "-v"],
    ] {
        let Request::Run(args) = request(line) else {
            panic!("{line:?} does not run");
        };
        assert_eq!(args.scope.namespace, ["a", "b"].map(NamespacePattern::new));
        assert_eq!(args.logging.verbosity(), Verbosity::Verbose);
    }
}

#[test]
fn lines_begin_with_their_object_unless_they_are_json_or_told_otherwise() {
    for (line, prefix) in [
        (&[][..], true),
        (&["--log-format", "json"], false),
        (&["--log-format", "json", "--log-prefix"], true),
        (&["--no-log-prefix"], false),
        (&["--no-log-prefix", "--log-prefix"], true),
        (&["--log-prefix", "--no-log-prefix"], false),
        (&["--log-prefix=false"], false),
        (&["--log-prefix=yes", "--log-format", "json"], true),
    ] {
        let Request::Run(args) = request(line) else {
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
        // The variable of an option says yes or no.
        if long.starts_with("no-") {
            continue;
        }
        let variable = format!("KOPF_RUN_{}", long.to_uppercase().replace('-', "_"));
        let actual = option.get_env().and_then(|name| name.to_str());
        assert_eq!(actual, Some(variable.as_str()));
        assert!(option.get_help().is_some(), "--{long} says nothing");
    }
}

#[test]
fn the_whole_cluster_and_a_namespace_exclude_each_other() {
    assert!(Cli::try_parse_from(["operator", "-A", "-n", "a"]).is_err());
}

#[test]
fn a_pattern_that_cannot_be_meant_is_refused() {
    let refused = |pattern| {
        let parsed = Cli::try_parse_from(["operator", "-n", pattern]);
        parsed.map(drop).unwrap_err().to_string()
    };
    assert!(refused("a,b").contains("several namespaces are several patterns"));
    assert!(refused("Prod").contains("no namespace has 'P' in its name"));
    assert!(refused("").contains("a glob is empty"));
}

#[test]
fn the_definitions_are_printed_on_request() {
    assert!(matches!(request(&["crd"]), Request::PrintCrds));
    assert!(matches!(
        request(&["crd", "--apply"]),
        Request::ApplyCrds { force: false }
    ));
    assert!(Cli::try_parse_from(["operator", "crd", "--force"]).is_err());
}

#[test]
fn development_goes_ahead_of_any_other_priority() {
    for (line, priority) in [
        (&[][..], None),
        (&["-p", "-5"], Some(-5)),
        (&["--priority=7"], Some(7)),
        (&["--dev", "-p", "7"], Some(666)),
    ] {
        let Request::Run(args) = request(line) else {
            panic!("{line:?} does not run");
        };
        assert_eq!(args.peering.priority(), priority, "{line:?}");
    }
}

#[test]
fn a_peering_and_none_exclude_each_other() {
    assert!(Cli::try_parse_from(["operator", "--standalone", "-P", "a"]).is_err());
}

#[test]
fn freezing_takes_a_time_and_the_options_of_kopf() {
    assert!(Cli::try_parse_from(["operator", "freeze"]).is_err());
    let line = [
        "freeze", "-P", "ours", "-t", "30", "-i", "me", "-m", "lunch",
    ];
    let Request::Freeze(args) = request(&line) else {
        panic!("{line:?} does not freeze");
    };
    assert_eq!((args.lifetime, args.priority()), (30, 100));
    let Request::Freeze(args) = request(&["freeze", "-t", "30", "--dev"]) else {
        panic!("no freeze");
    };
    assert_eq!(args.priority(), 666);
    assert!(matches!(
        request(&["resume", "-P", "ours"]),
        Request::Resume(_)
    ));
}
