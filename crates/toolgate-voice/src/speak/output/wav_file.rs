//! Writes speech to a WAV file that grows.

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

use super::player_program::wav_header;
use crate::EngineError;
use crate::audio::{AudioFormat, WavStream};
use crate::speak::{AudioOutput, AudioPlayback, OpenedPlayback};

const HEADER_LEN: usize = 44;
// The length field has 32 bits. A day and a half of speech is enough.
const MAX_AUDIO_BYTES: u32 = 2 << 30;

/// Writes all sound to one file, which is overwritten by the first sound of a run. The header is
/// updated after each piece, so the file is always valid.
#[derive(Debug)]
pub(crate) struct WavFile {
    path: PathBuf,
    has_begun: AtomicBool,
}

impl WavFile {
    pub(crate) fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            has_begun: AtomicBool::new(false),
        }
    }
}

impl AudioOutput for WavFile {
    fn begin(&self, format: AudioFormat) -> BoxFuture<'_, OpenedPlayback> {
        let path = self.path.clone();
        async move {
            let opening = match self.has_begun.swap(true, Ordering::Relaxed) {
                true => open_existing,
                false => create_file,
            };
            let opened = run_blocking(&self.path, move || opening(&path, format)).await?;
            Ok(Box::new(FilePlayback {
                path: self.path.clone(),
                from: format,
                open: opened,
                written: Duration::ZERO,
            }) as Box<dyn AudioPlayback>)
        }
        .boxed()
    }
}

#[derive(Clone)]
struct OpenWav {
    file: Arc<File>,
    format: AudioFormat,
    length: u32,
}

struct FilePlayback {
    path: PathBuf,
    from: AudioFormat,
    open: OpenWav,
    written: Duration,
}

impl AudioPlayback for FilePlayback {
    fn play(&mut self, bytes: Bytes) -> BoxFuture<'_, Result<(), EngineError>> {
        async move {
            self.written += self.from.duration(bytes.len());
            let bytes = resample(bytes, self.from, self.open.format);
            let open = self.open.clone();
            self.open.length = run_blocking(&self.path, move || append(&open, &bytes)).await?;
            Ok(())
        }
        .boxed()
    }

    fn heard(&self) -> Duration {
        self.written
    }
}

async fn run_blocking<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, EngineError> {
    let done = spawn_blocking(work)
        .await
        .map_err(io::Error::other)
        .flatten();
    done.map_err(|error| EngineError::program(path.display(), format!("can't write: {error}")))
}

fn create_file(path: &Path, format: AudioFormat) -> io::Result<OpenWav> {
    let earlier = open_existing(path, format)?;
    earlier.file.set_len(0)?;
    earlier.file.write_all_at(&wav_header(format, 0), 0)?;
    Ok(OpenWav {
        format,
        length: 0,
        ..earlier
    })
}

fn open_existing(path: &Path, format: AudioFormat) -> io::Result<OpenWav> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)?;
    let length = file.metadata()?.len();
    let mut start = [0; HEADER_LEN];
    let file = Arc::new(file);
    if length == 0 {
        file.write_all_at(&wav_header(format, 0), 0)?;
        return Ok(OpenWav {
            file,
            format,
            length: 0,
        });
    }
    let foreign = || io::Error::other("it was not written by Toolgate; move it away");
    file.read_exact_at(&mut start, 0).map_err(|_| foreign())?;
    let mut stream = WavStream::default();
    stream.feed(&start).map_err(|_| foreign())?;
    let format = stream.format().ok_or_else(foreign)?;
    let [.., a, b, c, d] = start;
    let length = u32::from_le_bytes([a, b, c, d]);
    // Only continue a file with exactly our header: another program's file must not be overwritten.
    if format.width != 2 || length > MAX_AUDIO_BYTES || wav_header(format, length) != start {
        return Err(foreign());
    }
    Ok(OpenWav {
        file,
        format,
        length,
    })
}

/// Writes the sound first and its header second, so that a crash leaves a valid file.
/// Returns the new length.
fn append(open: &OpenWav, bytes: &[u8]) -> io::Result<u32> {
    let added = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    let length = open
        .length
        .checked_add(added)
        .filter(|length| *length <= MAX_AUDIO_BYTES);
    let length = length.ok_or_else(|| io::Error::other("it is full"))?;
    let end = HEADER_LEN as u64 + u64::from(open.length);
    open.file.write_all_at(bytes, end)?;
    open.file
        .write_all_at(&wav_header(open.format, length), 0)?;
    Ok(length)
}

// The engine may have been replaced by one with another sample rate.
fn resample(bytes: Bytes, from: AudioFormat, to: AudioFormat) -> Bytes {
    if from == to {
        return bytes;
    }
    let samples = bytes.chunks_exact(2);
    let samples: Vec<f32> = samples
        .map(|pair| f32::from(i16::from_le_bytes([pair[0], pair[1]])))
        .collect();
    let frames = samples.chunks_exact(usize::from(from.channels));
    let mono: Vec<f32> = frames
        .map(|frame| frame.iter().sum::<f32>() / frame.len() as f32)
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
