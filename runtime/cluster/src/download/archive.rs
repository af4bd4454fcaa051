//! Takes one file out of a `.tar.gz` archive.
//!
//! The gzip layer is a few lines over `miniz_oxide`, with the features that kopf-core uses:
//! `flate2` would switch on another, and the tests of an operator would build the runtime once more.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use miniz_oxide::inflate::stream::{InflateState, inflate};
use miniz_oxide::{DataFormat, MZError, MZFlush, MZStatus};
use tar::{Archive, EntryType};

use super::{Error, failed};

/// Writes the entry with exactly this path to `target`. No other path of the archive is used.
pub(super) fn extract(
    archive: &Path,
    entry: &str,
    target: &Path,
    largest: u64,
) -> Result<(), Error> {
    let broken = |reason: String| Error::Archive {
        archive: archive.to_owned(),
        reason,
    };
    let unreadable = |error: io::Error| broken(format!("it cannot be read: {error}"));
    let file = File::open(archive).map_err(failed("open", archive))?;
    let gzip = GzipReader::new(BufReader::new(file)).map_err(unreadable)?;
    let mut entries = Archive::new(gzip);
    for found in entries.entries().map_err(unreadable)? {
        let found = found.map_err(unreadable)?;
        if *found.path_bytes() != *entry.as_bytes() {
            continue;
        }
        if found.header().entry_type() != EntryType::Regular {
            return Err(broken(format!("{entry} is not a regular file")));
        }
        let size = found.size();
        if size > largest {
            return Err(broken(format!("{entry} is larger than {largest} bytes")));
        }
        let mut output = File::create(target).map_err(failed("create", target))?;
        let copied = io::copy(&mut found.take(largest), &mut output).map_err(unreadable)?;
        if copied != size {
            return Err(broken(format!("{entry} is incomplete")));
        }
        return Ok(());
    }
    Err(broken(format!(
        "it has no {}",
        PathBuf::from(entry).display()
    )))
}

/// Inflates one gzip member. It does not check the member's own sum: the archive's is right.
struct GzipReader<R> {
    input: R,
    state: Box<InflateState>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    has_ended: bool,
}

impl<R: Read> GzipReader<R> {
    fn new(mut input: R) -> io::Result<Self> {
        skip_header(&mut input)?;
        Ok(Self {
            input,
            state: InflateState::new_boxed(DataFormat::Raw),
            buffer: vec![0; 64 << 10],
            start: 0,
            end: 0,
            has_ended: false,
        })
    }
}

impl<R: Read> Read for GzipReader<R> {
    fn read(&mut self, output: &mut [u8]) -> io::Result<usize> {
        while !self.has_ended && !output.is_empty() {
            if self.start == self.end {
                self.start = 0;
                self.end = self.input.read(&mut self.buffer)?;
            }
            let input = &self.buffer[self.start..self.end];
            let is_at_end = input.is_empty();
            let result = inflate(&mut self.state, input, output, MZFlush::None);
            self.start += result.bytes_consumed;
            match result.status {
                Ok(MZStatus::StreamEnd) => self.has_ended = true,
                Ok(_) | Err(MZError::Buf) => {
                    if is_at_end && result.bytes_written == 0 {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(_) => return Err(invalid("the compressed data is damaged")),
            }
            if result.bytes_written > 0 {
                return Ok(result.bytes_written);
            }
        }
        Ok(0)
    }
}

/// Skips the header of RFC 1952 with its optional fields.
fn skip_header(input: &mut impl Read) -> io::Result<()> {
    let mut header = [0; 10];
    input.read_exact(&mut header)?;
    if header[..3] != [0x1f, 0x8b, 8] {
        return Err(invalid("it is not a gzip file"));
    }
    let flags = header[3];
    if flags & 0b100 != 0 {
        let mut length = [0; 2];
        input.read_exact(&mut length)?;
        let length = u64::from(u16::from_le_bytes(length));
        io::copy(&mut input.take(length), &mut io::sink())?;
    }
    for flag in [0b1000, 0b1_0000] {
        if flags & flag != 0 {
            skip_text(input)?;
        }
    }
    if flags & 0b10 != 0 {
        input.read_exact(&mut [0; 2])?;
    }
    Ok(())
}

fn skip_text(input: &mut impl Read) -> io::Result<()> {
    let mut byte = [1];
    while byte[0] != 0 {
        input.read_exact(&mut byte)?;
    }
    Ok(())
}

fn invalid(reason: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

#[cfg(test)]
pub(super) mod tests;
