//! A stand-in for the servers of releases, which can be made to misbehave on cue.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// The paths and contents of a mirror.
pub(crate) type MirrorFiles = BTreeMap<String, Vec<u8>>;

/// The time for which a silent server keeps a connection open.
pub(super) const SILENCE: Duration = Duration::from_secs(10);

/// A server on this machine.
pub(crate) struct StandIn {
    url: String,
    requests: Arc<Mutex<Vec<StandInRequest>>>,
}

/// A request for a path.
#[derive(Clone, Debug)]
pub(super) struct StandInRequest {
    pub(super) path: String,
    /// The first requested byte.
    pub(super) offset: usize,
    /// The number of earlier requests for the same path.
    pub(super) number: usize,
}

/// What the server does with a request.
pub(super) struct StandInAnswer {
    status: u16,
    headers: Vec<String>,
    body: Vec<u8>,
    /// The size in the header; none leaves it out.
    length: Option<usize>,
    is_silent_at_end: bool,
}

impl StandIn {
    /// Serves these files, with ranges.
    pub(crate) fn serve(files: MirrorFiles) -> Self {
        Self::start(move |request| StandInAnswer::file(&files, request))
    }

    pub(super) fn start(
        answer: impl Fn(&StandInRequest) -> StandInAnswer + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (log, answer) = (Arc::clone(&requests), Arc::new(answer));
        // The thread ends with the process.
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let (log, answer) = (Arc::clone(&log), Arc::clone(&answer));
                thread::spawn(move || serve_one(connection, &log, &*answer));
            }
        });
        Self {
            url: format!("http://{address}"),
            requests,
        }
    }

    /// The server of another process.
    pub(super) fn at(url: String) -> Self {
        Self {
            url,
            requests: Arc::default(),
        }
    }

    pub(crate) fn url(&self) -> String {
        self.url.clone()
    }

    pub(super) fn requests(&self) -> Vec<StandInRequest> {
        self.requests.lock().expect("no panic").clone()
    }

    /// The first requested byte of each request for this path.
    pub(super) fn offsets(&self, path: &str) -> Vec<usize> {
        let requests = self.requests();
        let of_path = requests.iter().filter(|request| request.path == path);
        of_path.map(|request| request.offset).collect()
    }
}

impl StandInAnswer {
    pub(super) fn file(files: &MirrorFiles, request: &StandInRequest) -> Self {
        let Some(content) = files.get(&request.path) else {
            return Self::status(404);
        };
        let StandInRequest { offset, .. } = *request;
        let mut answer = Self::status(200);
        if offset > 0 && offset >= content.len() {
            return Self::status(416);
        }
        if offset > 0 {
            answer.status = 206;
            let (last, total) = (content.len() - 1, content.len());
            answer
                .headers
                .push(format!("Content-Range: bytes {offset}-{last}/{total}"));
        }
        answer.body = content[offset..].to_vec();
        answer.length = Some(answer.body.len());
        answer
    }

    pub(super) fn status(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: Vec::new(),
            length: Some(0),
            is_silent_at_end: false,
        }
    }

    pub(super) fn redirect(location: &str) -> Self {
        let mut answer = Self::status(302);
        answer.headers.push(format!("Location: {location}"));
        answer
    }

    /// Closes the connection in the middle of the body.
    pub(super) fn cut_after(mut self, bytes: usize) -> Self {
        self.body.truncate(bytes);
        self
    }

    /// Keeps the connection open in the middle of the body, and sends nothing.
    pub(super) fn silent_after(mut self, bytes: usize) -> Self {
        self.is_silent_at_end = true;
        self.cut_after(bytes)
    }

    pub(super) fn without_length(mut self) -> Self {
        self.length = None;
        self
    }
}

fn serve_one(
    mut connection: TcpStream,
    log: &Mutex<Vec<StandInRequest>>,
    answer: &dyn Fn(&StandInRequest) -> StandInAnswer,
) {
    let Some((path, offset)) = read_request(&connection) else {
        return;
    };
    let request = {
        let mut log = log.lock().expect("no panic");
        let number = log.iter().filter(|earlier| earlier.path == path).count();
        let request = StandInRequest {
            path,
            offset,
            number,
        };
        log.push(request.clone());
        request
    };
    let answer = answer(&request);
    let mut header = format!(
        "HTTP/1.1 {} Stand-In\r\nConnection: close\r\n",
        answer.status
    );
    for line in &answer.headers {
        header.push_str(&format!("{line}\r\n"));
    }
    if let Some(length) = answer.length {
        header.push_str(&format!("Content-Length: {length}\r\n"));
    }
    header.push_str("\r\n");
    // The client may have gone.
    let _ = connection.write_all(header.as_bytes());
    let _ = connection.write_all(&answer.body);
    if answer.is_silent_at_end {
        thread::sleep(SILENCE);
    }
    let _ = connection.shutdown(Shutdown::Both);
}

fn read_request(connection: &TcpStream) -> Option<(String, usize)> {
    let mut lines = BufReader::new(connection).lines().map_while(Result::ok);
    let path = lines.next()?.split(' ').nth(1)?.to_owned();
    let mut offset = 0;
    for line in lines.take_while(|line| !line.is_empty()) {
        let line = line.to_ascii_lowercase();
        if let Some(range) = line.strip_prefix("range: bytes=") {
            offset = range.trim_end_matches('-').parse().ok()?;
        }
    }
    Some((path, offset))
}
