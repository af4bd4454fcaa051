//! Captures the logs of operators during a test.

use std::io;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use tracing_subscriber::fmt::MakeWriter;

/// A log that is being captured; cheap to clone.
#[derive(Clone, Default)]
pub(super) struct CapturedLog {
    text: Arc<Mutex<Vec<u8>>>,
    /// The position from which this log is read.
    from: usize,
}

/// The log of all operators inside the test program: a process has one tracing subscriber.
static PROCESS_LOG: LazyLock<CapturedLog> = LazyLock::new(|| {
    let log = CapturedLog::default();
    // If the test has set a subscriber of its own, that stays, and nothing is captured.
    let _ = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(log.clone())
        .try_init();
    log
});

/// The log of operators inside the test program from now on.
pub(super) fn captured() -> CapturedLog {
    let from = PROCESS_LOG.lock().len();
    CapturedLog {
        from,
        ..PROCESS_LOG.clone()
    }
}

impl CapturedLog {
    pub(super) fn text(&self) -> String {
        let text = self.lock();
        String::from_utf8_lossy(text.get(self.from..).unwrap_or_default()).into_owned()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<u8>> {
        self.text.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl io::Write for CapturedLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for CapturedLog {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}
