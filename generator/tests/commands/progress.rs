//! Whoever waits at a terminal is told for what, and nobody else is.

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

/// Far longer than anything takes here.
const DEADLINE: Duration = Duration::from_secs(60);

/// What takes the line away.
const ERASED: &str = "\r\u{1b}[K";

/// `kopf-gen new` that waits for its definition, which comes through a pipe.
struct Waiting {
    child: Child,
    pipe: PathBuf,
    printed: Receiver<String>,
    seen: String,
}

impl Waiting {
    fn start(shell: &Shell, name: &str, options: &[&str], at: Screen) -> Self {
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
            seen: String::new(),
        }
    }

    fn see(&mut self, text: &str) {
        let end = Instant::now() + DEADLINE;
        while !self.seen.contains(text) {
            let left = end.saturating_duration_since(Instant::now());
            let more = self.printed.recv_timeout(left);
            self.seen += &more.unwrap_or_else(|_| panic!("no {text:?} in {:?}", self.seen));
        }
    }

    /// Hands over the definition, and returns everything that was printed.
    fn finish(mut self) -> String {
        fs::write(&self.pipe, CRD).expect("somebody reads");
        assert!(self.child.wait().expect("it ends").success());
        self.seen.extend(self.printed.iter());
        self.seen
    }
}

/// Where errors and messages go.
enum Screen {
    Terminal,
    File(PathBuf),
}

impl Screen {
    /// What is read of it, and what is given to a program.
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

/// What comes, until the other side is closed.
fn texts(mut reader: File) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        // The last reader of a terminal gets an error when everybody else is gone.
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
fn what_takes_long_is_told_at_a_terminal_and_erased_again() {
    let shell = Shell::new();
    let log = shell.folder().join("log");
    // These have waited for longer than the last one when that one has something to say.
    let quiet = Waiting::start(&shell, "quiet", &["-q"], Screen::Terminal);
    let json = Waiting::start(&shell, "json", &["--format", "json"], Screen::Terminal);
    let logged = Waiting::start(&shell, "logged", &[], Screen::File(log.clone()));
    let mut told = Waiting::start(&shell, "told", &[], Screen::Terminal);

    told.see("reading the definitions: 1 s");
    told.see("reading the definitions: 2 s");

    let told = told.finish();
    let (waiting, after) = told.rsplit_once(ERASED).expect("the line is erased");
    assert!(waiting.contains("reading the definitions"), "{told:?}");
    assert!(after.contains("created src/generated.rs"), "{told:?}");
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
    let (reader, stderr) = Screen::Terminal.open();
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
fn how_far_it_is_is_told_where_that_can_be_counted() {
    const KINDS: usize = 8;
    let shell = Shell::new();
    let told = |fields: usize| {
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
        let mut lines = lines.filter_map(|line| line.strip_prefix("making the crate: "));
        lines.next().map(str::to_owned)
    };
    // As many fields as it takes on this machine for somebody to wait for them.
    let line = (8..16)
        .find_map(|power| told(1 << power))
        .expect("no machine is that fast");
    let (done, rest) = line.split_once(" of ").expect("a share");
    let done: usize = done.parse().expect("a number");
    assert!(done < KINDS, "{line}");
    assert_eq!(rest, format!("{KINDS} kinds, 1 s"), "{line}");
}
