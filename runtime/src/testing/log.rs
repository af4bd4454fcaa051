//! What operators say during a test.

use std::io;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use tracing_subscriber::fmt::MakeWriter;

/// A log that grows.
#[derive(Clone, Default)]
pub(super) struct CapturedLog {
    text: Arc<Mutex<Vec<u8>>>,
    /// What was said before is not told.
    from: usize,
}

/// The log of all operators inside of the test program: logging is one for the whole process.
static INSIDE: LazyLock<CapturedLog> = LazyLock::new(|| {
    let log = CapturedLog::default();
    // If the test has a way to log of its own, that stays, and nothing is captured.
    let _ = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(log.clone())
        .try_init();
    log
});

/// What operators inside of the test program say from now on.
pub(super) fn captured() -> CapturedLog {
    let from = INSIDE.lock().len();
    CapturedLog {
        from,
        ..INSIDE.clone()
    }
}

impl CapturedLog {
    pub(super) fn text(&self) -> String {
        let text = self.lock();
        String::from_utf8_lossy(text.get(self.from..).unwrap_or_default()).into_owned()
    }

    pub(super) fn extend(&self, bytes: &[u8]) {
        self.lock().extend_from_slice(bytes);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<u8>> {
        self.text.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl io::Write for CapturedLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.extend(bytes);
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
