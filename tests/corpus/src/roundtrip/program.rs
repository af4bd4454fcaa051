//! The program that has the generated types compiled in: JSON lines in, JSON lines out.

use std::fmt::Write as _;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::Value;

use super::{Case, Outcome, compare};
use crate::scratch::{Module, Scratch};

/// A program with all cases compiled in.
#[derive(Debug)]
pub struct Program {
    path: PathBuf,
    cases: Vec<Case>,
}

/// A running program.
#[derive(Debug)]
pub struct Session {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

/// Why an object was not decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The message of the decoder.
    pub message: String,
    /// The column of the compact text at which it stopped.
    pub column: usize,
}

const SUPPORT: &str = r#"
fn pass<T: serde::de::DeserializeOwned + serde::Serialize>(text: &str) -> serde_json::Result<String> {
    serde_json::to_string(&serde_json::from_str::<T>(text)?)
}

fn main() -> std::io::Result<()> {
    use std::io::{BufRead as _, Write as _};
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let (case, text) = line.split_once('\t').expect("a case and an object");
        match dispatch(case, text) {
            Ok(text) => writeln!(out, "ok\t{text}")?,
            Err(error) => writeln!(out, "{}\t{}", error.column(), error.to_string().replace('\n', " "))?,
        }
        out.flush()?;
    }
    Ok(())
}
"#;

// === impl Program ===

impl Program {
    /// Compiles the modules and the cases.
    ///
    /// # Errors
    /// If cargo cannot be run, or the types do not compile.
    pub fn build(scratch: &Scratch, modules: &[Module], cases: Vec<Case>) -> io::Result<Self> {
        let path = scratch.build(modules, &main_of(&cases))?;
        Ok(Self { path, cases })
    }

    /// The cases.
    #[must_use]
    pub fn cases(&self) -> &[Case] {
        &self.cases
    }

    /// Starts the program.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(&self) -> io::Result<Session> {
        let mut child = Command::new(&self.path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = child.stdin.take().expect("standard input is piped");
        let output = child.stdout.take().expect("standard output is piped");
        Ok(Session {
            child,
            input: Some(input),
            output: BufReader::new(output),
        })
    }

    /// Sends every object of every case through its types.
    ///
    /// # Errors
    /// If a program cannot be run, or dies.
    pub fn run(&self) -> io::Result<Vec<(&Case, Vec<Outcome>)>> {
        let mut session = self.start()?;
        self.cases
            .iter()
            .map(|case| {
                let outcomes = case
                    .objects
                    .iter()
                    .map(|labelled| {
                        let answer = session.pass(case, &labelled.object)?;
                        let fate = compare(&case.version, &labelled.object, &answer);
                        Ok(Outcome {
                            label: labelled.label,
                            fate,
                        })
                    })
                    .collect::<io::Result<_>>()?;
                Ok((case, outcomes))
            })
            .collect()
    }
}

fn main_of(cases: &[Case]) -> String {
    let mut main = String::from(
        "fn dispatch(case: &str, text: &str) -> serde_json::Result<String> {\n    match case {\n",
    );
    for Case { path, .. } in cases {
        // Writing to a string cannot fail.
        let _ = writeln!(main, "        {path:?} => pass::<{path}>(text),");
    }
    main.push_str("        other => panic!(\"no case {other}\"),\n    }\n}\n");
    main + SUPPORT
}

// === impl Session ===

impl Session {
    /// Decodes and encodes an object.
    ///
    /// # Errors
    /// If the program dies.
    pub fn pass(&mut self, case: &Case, object: &Value) -> io::Result<Result<Value, Refusal>> {
        if let Some(input) = &mut self.input {
            writeln!(input, "{}\t{object}", case.path)?;
        }
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        let Some((head, tail)) = line.trim_end().split_once('\t') else {
            return Err(io::Error::other(format!(
                "the program with {} died",
                case.stem
            )));
        };
        if head == "ok" {
            return Ok(Ok(serde_json::from_str(tail)?));
        }
        let column = head.parse().map_err(io::Error::other)?;
        Ok(Err(Refusal {
            message: tail.to_owned(),
            column,
        }))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.input = None;
        // It ends when its input does; its status says nothing that the answers did not.
        let _ = self.child.wait();
    }
}
