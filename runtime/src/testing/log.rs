//! What operators say during a test.

use std::io;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use tracing_subscriber::fmt::MakeWriter;

/// A log that grows.
#[derive(Clone, Default)]
pub(super) struct Log {
    text: Arc<Mutex<Vec<u8>>>,
    /// What was said before is not told.
    from: usize,
}

/// The log of all operators inside of the test program: logging is one for the whole process.
static INSIDE: LazyLock<Log> = LazyLock::new(|| {
    let log = Log::default();
    // If the test has a way to log of its own, that stays, and nothing is captured.
    let _ = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(log.clone())
        .try_init();
    log
});

/// What operators inside of the test program say from now on.
pub(super) fn captured() -> Log {
    let from = INSIDE.lock().len();
    Log {
        from,
        ..INSIDE.clone()
    }
}

impl Log {
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

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}
