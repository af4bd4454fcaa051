//! The keys of a session on a terminal.

use std::io::{self, Read as _};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio::sync::mpsc;

/// A command that a key stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyCommand {
    Restart,
    ApplySamples,
    Inspect,
    OpenPage,
    Quit,
}

/// The keys, as the status line shows them.
pub(super) const KEYS: &str = "r restart   a apply samples   i inspect   p page   q quit";

/// The number of keys that wait while the session is busy.
const MOST_WAITING: usize = 8;

/// Reads keys while it lives, and restores the terminal after that.
pub(super) struct Keys {
    commands: mpsc::Receiver<KeyCommand>,
    former: Option<Termios>,
}

impl Keys {
    /// Reads single keys from the terminal.
    pub(super) fn read() -> Self {
        let former = tcgetattr(io::stdin()).ok();
        if let Some(former) = &former {
            let mut single = former.clone();
            // Ctrl-C still sends a signal.
            single.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, &single);
        }
        let (sender, commands) = mpsc::channel(MOST_WAITING);
        std::thread::spawn(move || {
            let mut key = [0];
            while io::stdin().read_exact(&mut key).is_ok() {
                let command = KeyCommand::of_key(key[0]);
                if command.is_some_and(|command| sender.blocking_send(command).is_err()) {
                    return;
                }
            }
        });
        Self { commands, former }
    }

    /// No keys: there is no terminal.
    pub(super) fn none() -> Self {
        let (_, commands) = mpsc::channel(MOST_WAITING);
        Self {
            commands,
            former: None,
        }
    }

    /// The next command; it never comes if no keys are read.
    pub(super) async fn next(&mut self) -> KeyCommand {
        match self.commands.recv().await {
            Some(command) => command,
            None => std::future::pending().await,
        }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        if let Some(former) = &self.former {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, former);
        }
    }
}

impl KeyCommand {
    fn of_key(key: u8) -> Option<Self> {
        match key.to_ascii_lowercase() {
            b'r' => Some(Self::Restart),
            b'a' => Some(Self::ApplySamples),
            b'i' => Some(Self::Inspect),
            b'p' => Some(Self::OpenPage),
            // Ctrl-D ends a terminal program.
            b'q' | 4 => Some(Self::Quit),
            _ => None,
        }
    }
}
