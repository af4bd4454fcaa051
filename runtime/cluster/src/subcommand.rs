//! The subcommands of the program that runs supervisors and wraps child processes.

use std::ffi::OsString;

use crate::child_process::wrapper;
use crate::named::keeper;
use crate::supervisor;
use crate::test_failure::TestFailure;

/// Runs the subcommand that another process of ours has asked for; none for any other arguments.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> Option<Result<(), TestFailure>> {
    let mut arguments = arguments.into_iter();
    match arguments.next()?.to_str()? {
        keeper::SUBCOMMAND => Some(keeper::run(arguments).map_err(TestFailure::from)),
        supervisor::SUBCOMMAND => Some(supervisor::run(arguments).map_err(TestFailure::from)),
        wrapper::COMPONENT_SUBCOMMAND => {
            let code = wrapper::run_component(arguments);
            Some(
                code.map(|code| std::process::exit(code))
                    .map_err(TestFailure::from),
            )
        }
        wrapper::SUBCOMMAND => Some(wrapper::run(arguments).map_err(TestFailure::from)),
        _ => None,
    }
}
