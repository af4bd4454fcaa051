//! The program with the compiled types: reads objects as JSON lines, and writes them encoded again.

use std::fmt::Write as _;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::Value;

use super::{ObjectResult, RoundtripCase, compare};
use crate::scratch_crate::{GeneratedModule, ScratchCrate};

/// A program with all cases compiled in.
#[derive(Debug)]
pub struct RoundtripProgram {
    path: PathBuf,
    cases: Vec<RoundtripCase>,
}

/// A running program.
#[derive(Debug)]
pub struct RoundtripProcess {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

/// The error of an object that could not be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError {
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

// === impl RoundtripProgram ===

impl RoundtripProgram {
    /// Compiles the modules and the cases.
    ///
    /// # Errors
    /// If cargo cannot be run, or the types do not compile.
    pub fn build(
        scratch: &ScratchCrate,
        modules: &[GeneratedModule],
        cases: Vec<RoundtripCase>,
    ) -> io::Result<Self> {
        let path = scratch.build(modules, &main_of(&cases))?;
        Ok(Self { path, cases })
    }

    /// The cases.
    #[must_use]
    pub fn cases(&self) -> &[RoundtripCase] {
        &self.cases
    }

    /// Starts the program.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(&self) -> io::Result<RoundtripProcess> {
        let mut child = Command::new(&self.path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = child.stdin.take().expect("standard input is piped");
        let output = child.stdout.take().expect("standard output is piped");
        Ok(RoundtripProcess {
            child,
            input: Some(input),
            output: BufReader::new(output),
        })
    }

    /// Decodes and encodes every object of every case.
    ///
    /// # Errors
    /// If a program cannot be run, or dies.
    pub fn run(&self) -> io::Result<Vec<(&RoundtripCase, Vec<ObjectResult>)>> {
        let mut session = self.start()?;
        self.cases
            .iter()
            .map(|case| {
                let outcomes = case
                    .objects
                    .iter()
                    .map(|test_object| {
                        let encoded = session.pass(case, &test_object.object)?;
                        let result = compare(&case.version, &test_object.object, &encoded);
                        Ok(ObjectResult {
                            origin: test_object.origin,
                            result,
                        })
                    })
                    .collect::<io::Result<_>>()?;
                Ok((case, outcomes))
            })
            .collect()
    }
}

fn main_of(cases: &[RoundtripCase]) -> String {
    let mut main = String::from(
        "fn dispatch(case: &str, text: &str) -> serde_json::Result<String> {\n    match case {\n",
    );
    for RoundtripCase { path, .. } in cases {
        // Writing to a string cannot fail.
        let _ = writeln!(main, "        {path:?} => pass::<{path}>(text),");
    }
    main.push_str("        other => panic!(\"no case {other}\"),\n    }\n}\n");
    main + SUPPORT
}

// === impl RoundtripProcess ===

impl RoundtripProcess {
    /// Decodes and encodes an object.
    ///
    /// # Errors
    /// If the program dies.
    pub fn pass(
        &mut self,
        case: &RoundtripCase,
        object: &Value,
    ) -> io::Result<Result<Value, DecodeError>> {
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
        Ok(Err(DecodeError {
            message: tail.to_owned(),
            column,
        }))
    }
}

impl Drop for RoundtripProcess {
    fn drop(&mut self) {
        self.input = None;
        // The program exits at the end of its input; its status adds nothing to the responses.
        let _ = self.child.wait();
    }
}
