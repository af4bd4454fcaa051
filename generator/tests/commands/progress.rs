//! The progress line is shown on a terminal only.

use std::fs::{self, File, OpenOptions};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, Mode, mkfifoat};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::shell::{CRD, Shell};

/// Far longer than any step takes.
const DEADLINE: Duration = Duration::from_secs(60);

/// The escape sequence that erases the line.
const ERASED: &str = "\r\u{1b}[K";

/// A run of `kopf-gen new` that waits for its definition from a pipe.
struct Waiting {
    child: Child,
    pipe: PathBuf,
    printed: Receiver<String>,
    output: String,
}

impl Waiting {
    fn start(shell: &Shell, name: &str, options: &[&str], at: ErrorOutput) -> Self {
        let pipe = shell.folder().join(format!("{name}.yaml"));
        mkfifoat(CWD, &pipe, Mode::RWXU).expect("a pipe");
        let (reader, stderr) = at.open();
        let child = Command::new(env!("CARGO_BIN_EXE_kopf-gen"))
            .args(options)
            .args(["new", name, "--runtime-version", "1.0.0", "--crd"])
            .arg(&pipe)
            .current_dir(shell.folder())
            .env("TERM", "xterm")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr)
            .spawn()
            .expect("the program runs");
        Self {
            child,
            pipe,
            printed: texts(reader),
            output: String::new(),
        }
    }

    fn wait_for(&mut self, text: &str) {
        let end = Instant::now() + DEADLINE;
        while !self.output.contains(text) {
            let left = end.saturating_duration_since(Instant::now());
            let more = self.printed.recv_timeout(left);
            self.output += &more.unwrap_or_else(|_| panic!("no {text:?} in {:?}", self.output));
        }
    }

    /// Writes the definition to the pipe, and returns everything that was printed.
    fn finish(mut self) -> String {
        fs::write(&self.pipe, CRD).expect("the program reads");
        assert!(self.child.wait().expect("it ends").success());
        self.output.extend(self.printed.iter());
        self.output
    }
}

/// The standard error of the program.
enum ErrorOutput {
    Terminal,
    File(PathBuf),
}

impl ErrorOutput {
    /// The side to read from, and the side for the program.
    fn open(self) -> (File, Stdio) {
        match self {
            Self::File(path) => {
                let writer = File::create(&path).expect("writable");
                (File::open(path).expect("readable"), writer.into())
            }
            Self::Terminal => {
                let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
                let near = openpt(flags).expect("a terminal");
                grantpt(&near).and_then(|()| unlockpt(&near)).expect("ours");
                let name = ptsname(&near, Vec::new()).expect("it has a name");
                let name = name.into_string().expect("a path");
                let mut options = OpenOptions::new();
                let far = options.read(true).write(true).open(Path::new(&name));
                (near.into(), far.expect("its other side").into())
            }
        }
    }
}

/// The texts that arrive, until the other side is closed.
fn texts(mut reader: File) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        // The last reader of a terminal gets an error when all writers have closed it.
        while let Ok(count @ 1..) = reader.read(&mut buffer) {
            let text = String::from_utf8_lossy(&buffer[..count]).into_owned();
            if sender.send(text).is_err() {
                break;
            }
        }
    });
    receiver
}

#[test]
fn a_long_task_is_shown_on_a_terminal_and_erased_afterwards() {
    let shell = Shell::new();
    let log = shell.folder().join("log");
    // These start first, so that they have waited long enough when the last one shows its line.
    let quiet = Waiting::start(&shell, "quiet", &["-q"], ErrorOutput::Terminal);
    let json = Waiting::start(&shell, "json", &["--format", "json"], ErrorOutput::Terminal);
    let logged = Waiting::start(&shell, "logged", &[], ErrorOutput::File(log.clone()));
    let mut shown = Waiting::start(&shell, "shown", &[], ErrorOutput::Terminal);

    shown.wait_for("reading the definitions: 1 s");
    shown.wait_for("reading the definitions: 2 s");

    let shown = shown.finish();
    let (waiting, after) = shown.rsplit_once(ERASED).expect("the line is erased");
    assert!(waiting.contains("reading the definitions"), "{shown:?}");
    assert!(after.contains("created src/generated.rs"), "{shown:?}");
    assert_eq!(quiet.finish(), "");
    let json = json.finish();
    assert!(json.starts_with("{\"code\":"), "{json:?}");
    assert!(!json.contains('\u{1b}'), "{json:?}");
    logged.finish();
    let logged = fs::read_to_string(log).expect("a log");
    assert!(logged.contains("\ncreated src/generated.rs"), "{logged:?}");
    assert!(!logged.contains("reading"), "{logged:?}");
    assert!(!logged.contains('\u{1b}'), "{logged:?}");
}

/// Runs the program at a terminal, and returns everything that was printed there.
fn at_terminal(shell: &Shell, arguments: &[&str]) -> String {
    let (reader, stderr) = ErrorOutput::Terminal.open();
    let printed = texts(reader);
    let mut child = Command::new(env!("CARGO_BIN_EXE_kopf-gen"))
        .args(arguments)
        .current_dir(shell.folder())
        .env("TERM", "xterm")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(stderr)
        .spawn()
        .expect("the program runs");
    let printed: String = printed.iter().collect();
    assert!(child.wait().expect("it ends").success(), "{printed}");
    printed
}

#[test]
fn the_progress_line_counts_the_generated_kinds() {
    const KINDS: usize = 8;
    let shell = Shell::new();
    let first_line = |fields: usize| {
        let fields: String = (0..fields)
            .map(|number| format!("field{number}: {{type: string}}, "))
            .collect();
        let kinds = (0..KINDS).map(|number| {
            CRD.replace("widgets", &format!("widgets{number}"))
                .replace("Widget", &format!("Widget{number}"))
                .replace("size:", &format!("{fields}size:"))
        });
        shell.write("many.yaml", &kinds.collect::<Vec<_>>().join("---\n"));
        let name = format!("operator-{}", fields.len());
        let runtime = ["--runtime-version", "1.0.0"];
        let arguments = [&["new", &name, "--crd", "many.yaml"], &runtime[..]].concat();
        let printed = at_terminal(&shell, &arguments);
        let lines = printed.split(ERASED);
        let mut lines = lines.filter_map(|line| line.strip_prefix("generating the crate: "));
        lines.next().map(str::to_owned)
    };
    // As many fields as this machine needs to take long enough.
    let line = (8..16)
        .find_map(|power| first_line(1 << power))
        .expect("no machine is that fast");
    let (done, rest) = line.split_once(" of ").expect("a count");
    let done: usize = done.parse().expect("a number");
    assert!(done < KINDS, "{line}");
    assert_eq!(rest, format!("{KINDS} kinds, 1 s"), "{line}");
}
