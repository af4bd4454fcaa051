//! `kopf-gen add`: adds an entry to the manifest, then generates.

use clap::{Args, Subcommand};

use super::add_args::{AddWebhookArgs, ChildArgs, DaemonArgs, HandlerArgs, IndexArgs, TimerArgs};
use super::console::Console;
use super::exit_status::CommandStatus;
use super::hook::{self, HookArgs, ProbeArgs};
use super::manifest_edit::append_to_kind;

/// Add something to kopf.yaml, keeping its comments, then generate
#[derive(Debug, Args)]
pub(super) struct AddArgs {
    #[command(subcommand)]
    what: Addition,
}

#[derive(Debug, Subcommand)]
enum Addition {
    /// A function that is called for objects of a kind
    Handler(Box<HandlerArgs>),
    /// A kind that objects of another kind own
    Child(Box<ChildArgs>),
    /// A function that is called at intervals
    Timer(Box<TimerArgs>),
    /// A function that runs as long as an object exists
    Daemon(Box<DaemonArgs>),
    /// Objects found by a key, in memory
    Index(Box<IndexArgs>),
    /// A function that validates or mutates objects
    Webhook(Box<AddWebhookArgs>),
    /// A function that builds the state of the handlers before all others
    State(HookArgs),
    /// A function that must succeed before the operator sends its first request
    Startup(HookArgs),
    /// A function that is called when the operator stops
    Cleanup(HookArgs),
    /// A function that finds credentials for the cluster
    Login(HookArgs),
    /// A function that reports the health of the operator
    Probe(ProbeArgs),
}

pub(super) fn run(args: &AddArgs, console: &mut Console) -> CommandStatus {
    let entry = match &args.what {
        Addition::Handler(args) => args.entry(),
        Addition::Child(args) => args.entry(),
        Addition::Timer(args) => args.entry(),
        Addition::Daemon(args) => args.entry(),
        Addition::Index(args) => args.entry(),
        Addition::Webhook(args) => args.entry(),
        Addition::State(args) => return add_state(args, console),
        Addition::Startup(args) => return hook::add("startup", args, console),
        Addition::Cleanup(args) => return hook::add("cleanup", args, console),
        Addition::Login(args) => return hook::add("login", args, console),
        Addition::Probe(args) => return hook::add_probe(args, console),
    };
    append_to_kind(&entry, console)
}

/// Adds the function, and says what the user changes in a file of theirs.
fn add_state(args: &HookArgs, console: &mut Console) -> CommandStatus {
    let status = hook::add("state", args, console);
    if status == CommandStatus::Ok {
        console.print_line(
            "in src/main.rs, write `generated::operator::<handlers::Operator>()`: \
             the function makes the state that was its argument",
        );
    }
    status
}
