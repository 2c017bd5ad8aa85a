//! A WAV file that grows with every sound.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::task::spawn_blocking;

use super::program::header;
use crate::EngineError;
use crate::audio::{Format, WavStream};
use crate::speak::{Output, Playing};

const HEADER: usize = 44;

/// A file of a day and a half of speech is long enough.
const LARGEST: u32 = 2 << 30;

/// Writes all sound to one file, which begins anew with the first. At every moment the file is a valid WAV: the header is
/// corrected after each piece.
#[derive(Debug)]
pub(crate) struct WavFile {
    path: PathBuf,
    has_begun: AtomicBool,
}

impl WavFile {
    /// Writes there. The file is made with the first sound, which decides its format; one of an earlier run is written over.
    pub(crate) fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            has_begun: AtomicBool::new(false),
        }
    }
}

impl Output for WavFile {
    fn begin(&self, format: Format) -> BoxFuture<'_, Result<Box<dyn Playing>, EngineError>> {
        let path = self.path.clone();
        async move {
            let opening = match self.has_begun.swap(true, Ordering::Relaxed) {
                true => continued,
                false => begun,
            };
            let opened = blocking(&self.path, move || opening(&path, format)).await?;
            Ok(Box::new(Writing {
                path: self.path.clone(),
                from: format,
                open: opened,
                given: Duration::ZERO,
            }) as Box<dyn Playing>)
        }
        .boxed()
    }
}

#[derive(Clone)]
struct Open {
    file: Arc<File>,
    format: Format,
    length: u32,
}

struct Writing {
    path: PathBuf,
    from: Format,
    open: Open,
    given: Duration,
}

impl Playing for Writing {
    fn play(&mut self, bytes: Bytes) -> BoxFuture<'_, Result<(), EngineError>> {
        async move {
            self.given += self.from.duration(bytes.len());
            let bytes = convert(bytes, self.from, self.open.format);
            let open = self.open.clone();
            self.open.length = blocking(&self.path, move || append(&open, &bytes)).await?;
            Ok(())
        }
        .boxed()
    }

    fn heard(&self) -> Duration {
        self.given
    }
}

async fn blocking<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, EngineError> {
    let done = spawn_blocking(work)
        .await
        .map_err(io::Error::other)
        .flatten();
    done.map_err(|error| {
        EngineError::program(
            path.display().to_string(),
            format!("cannot be written: {error}"),
        )
    })
}

/// Opens the file for the first sound: what an earlier run left is gone.
fn begun(path: &Path, format: Format) -> io::Result<Open> {
    let earlier = continued(path, format)?;
    earlier.file.set_len(0)?;
    earlier.file.write_all_at(&header(format, 0), 0)?;
    Ok(Open {
        format,
        length: 0,
        ..earlier
    })
}

/// Opens the file for what comes; a new one in this format.
fn continued(path: &Path, format: Format) -> io::Result<Open> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)?;
    let length = file.metadata()?.len();
    let mut start = [0; HEADER];
    if length == 0 {
        file.write_all_at(&header(format, 0), 0)?;
        let file = Arc::new(file);
        return Ok(Open {
            file,
            format,
            length: 0,
        });
    }
    let foreign =
        || io::Error::other("it holds something else than speech of this program; move it away");
    file.read_exact_at(&mut start, 0).map_err(|_| foreign())?;
    let mut stream = WavStream::default();
    stream.feed(&start).map_err(|_| foreign())?;
    let format = stream.format().ok_or_else(foreign)?;
    let [.., a, b, c, d] = start;
    let length = u32::from_le_bytes([a, b, c, d]);
    // Only a header that this module would write is continued.
    if format.width != 2 || length > LARGEST || header(format, length) != start {
        return Err(foreign());
    }
    let file = Arc::new(file);
    Ok(Open {
        file,
        format,
        length,
    })
}

/// First the sound, then the header that counts it: whenever this ends, the file is valid. Gives the new length.
fn append(open: &Open, bytes: &[u8]) -> io::Result<u32> {
    let added = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    let length = open
        .length
        .checked_add(added)
        .filter(|length| *length <= LARGEST);
    let length = length.ok_or_else(|| io::Error::other("it is full"))?;
    open.file
        .write_all_at(bytes, HEADER as u64 + u64::from(open.length))?;
    open.file.write_all_at(&header(open.format, length), 0)?;
    Ok(length)
}

/// Sound of another format, made to fit: an engine may be replaced by one with another rate.
fn convert(bytes: Bytes, from: Format, to: Format) -> Bytes {
    if from == to {
        return bytes;
    }
    let sample = |at: usize| {
        bytes
            .get(at * 2..at * 2 + 2)
            .map_or(0, |pair| i16::from_le_bytes([pair[0], pair[1]]))
    };
    let channels = usize::from(from.channels);
    let mono: Vec<f32> = (0..bytes.len() / 2 / channels)
        .map(|frame| {
            (0..channels)
                .map(|channel| f32::from(sample(frame * channels + channel)))
                .sum::<f32>()
                / channels as f32
        })
        .collect();
    let step = f64::from(from.rate) / f64::from(to.rate);
    let count = (mono.len() as f64 / step).round() as usize;
    let frames = (0..count).map(|frame| {
        let place = frame as f64 * step;
        let (before, share) = (place as usize, place.fract() as f32);
        let left = mono.get(before).copied().unwrap_or_default();
        let right = mono.get(before + 1).copied().unwrap_or(left);
        (left + (right - left) * share) as i16
    });
    frames
        .flat_map(|frame| std::iter::repeat_n(frame, usize::from(to.channels)))
        .flat_map(i16::to_le_bytes)
        .collect()
}

#[cfg(test)]
mod tests;
