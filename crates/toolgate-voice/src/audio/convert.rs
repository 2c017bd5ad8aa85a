//! From any format to the one that is heard.

use rubato::audioadapter_buffers::direct::InterleavedSlice;
use rubato::{
    Async, FixedAsync, Indexing, Resampler, SincInterpolationParameters, SincInterpolationType,
    WindowFunction,
};

use super::{Format, FormatError, RATE};

/// Pieces of sound per second that are resampled at once: ten milliseconds are not noticed.
const PIECES: u32 = 100;
/// Taps of the filter per step of the rate. Enough to keep what is above speech from being heard as something below it.
const TAPS: u32 = 128;

/// Makes sound of one format into 16-bit mono at 16 kHz, as it comes: pieces may end anywhere, even within a sample.
pub(crate) struct ToHeard {
    format: Format,
    /// The beginning of a frame whose rest is not here yet.
    rest: Vec<u8>,
    /// None for sound that has the right rate already.
    resampling: Option<Resampling>,
}

impl ToHeard {
    pub(crate) fn new(format: Format) -> Result<Self, FormatError> {
        let format = format.check()?;
        let resampling = match format.rate {
            RATE => None,
            rate => Some(Resampling::new(rate)?),
        };
        Ok(Self {
            format,
            rest: Vec::new(),
            resampling,
        })
    }

    /// What it makes of these bytes and those before. Some of it comes with the next ones.
    pub(crate) fn convert(&mut self, bytes: &[u8]) -> Vec<i16> {
        let size = self.format.frame_bytes();
        let mut bytes = bytes;
        let mut mono = Vec::with_capacity(bytes.len() / size + 1);
        if !self.rest.is_empty() {
            let missing = (size - self.rest.len()).min(bytes.len());
            self.rest.extend_from_slice(&bytes[..missing]);
            bytes = &bytes[missing..];
            if self.rest.len() < size {
                return Vec::new();
            }
            mono.push(mean(&self.rest, self.format.width));
            self.rest.clear();
        }
        let frames = bytes.chunks_exact(size);
        self.rest.extend_from_slice(frames.remainder());
        mono.extend(frames.map(|frame| mean(frame, self.format.width)));
        match &mut self.resampling {
            None => mono.into_iter().map(to_sample).collect(),
            Some(resampling) => resampling.convert(&mono),
        }
    }

    /// What is still inside, once no more comes. The beginning of a frame is forgotten.
    pub(crate) fn finish(self) -> Vec<i16> {
        self.resampling.map_or_else(Vec::new, Resampling::finish)
    }
}

/// All channels together, from -1 to 1.
fn mean(frame: &[u8], width: u16) -> f32 {
    let width = usize::from(width);
    let sum: f32 = frame.chunks_exact(width).map(sample).sum();
    sum / (frame.len() / width) as f32
}

/// A sample of any width, from -1 to 1: shifted to the top of 32 bits, all have the same scale.
fn sample(bytes: &[u8]) -> f32 {
    let mut wide = [0; 4];
    wide[4 - bytes.len()..].copy_from_slice(bytes);
    i32::from_le_bytes(wide) as f32 / -(i32::MIN as f32)
}

fn to_sample(value: f32) -> i16 {
    // A conversion of a float to an integer stops at the ends of its range.
    (value * 32_768.0).round() as i16
}

struct Resampling {
    resampler: Async<f32>,
    waiting: Vec<f32>,
    made: Vec<f32>,
    /// How much of what it makes is the filter's own delay, which nobody said.
    delay: usize,
    taken: u64,
    given: u64,
}

impl Resampling {
    fn new(rate: u32) -> Result<Self, FormatError> {
        let taps = TAPS * rate.div_ceil(RATE);
        let parameters =
            SincInterpolationParameters::new(taps as usize, WindowFunction::BlackmanHarris2)
                .interpolation(SincInterpolationType::Linear);
        let ratio = f64::from(RATE) / f64::from(rate);
        let piece = (rate / PIECES) as usize;
        let resampler =
            Async::<f32>::new_sinc(ratio, 1.0, &parameters, piece, 1, FixedAsync::Input)
                .map_err(|_| FormatError::Rate(rate))?;
        Ok(Self {
            delay: resampler.output_delay(),
            made: vec![0.0; resampler.output_frames_max()],
            waiting: Vec::new(),
            resampler,
            taken: 0,
            given: 0,
        })
    }

    fn convert(&mut self, mono: &[f32]) -> Vec<i16> {
        self.taken += mono.len() as u64;
        self.waiting.extend_from_slice(mono);
        let mut heard = Vec::new();
        let mut used = 0;
        loop {
            let piece = self.resampler.input_frames_next();
            if self.waiting.len() - used < piece {
                break;
            }
            let at = used..used + piece;
            used = at.end;
            let samples = self.waiting[at].to_vec();
            heard.extend(self.piece(&samples, None));
        }
        self.waiting.drain(..used);
        heard
    }

    /// Silence pushes the rest out; what is more than was taken belongs to the silence.
    fn finish(mut self) -> Vec<i16> {
        let due = (self.taken as f64 * self.resampler.resample_ratio()).ceil() as u64;
        let mut rest = std::mem::take(&mut self.waiting);
        let mut heard = Vec::new();
        while self.given < due {
            let samples = std::mem::take(&mut rest);
            let before = (self.given, self.delay);
            heard.extend(self.piece(&samples, Some(samples.len())));
            if before == (self.given, self.delay) {
                break;
            }
        }
        heard.truncate(heard.len() - self.given.saturating_sub(due) as usize);
        heard
    }

    fn piece(&mut self, samples: &[f32], partial: Option<usize>) -> Vec<i16> {
        let room = self.made.len();
        let indexing = Indexing {
            partial_len: partial,
            ..Indexing::default()
        };
        let made = InterleavedSlice::new(samples, 1, samples.len())
            .ok()
            .zip(InterleavedSlice::new_mut(&mut self.made, 1, room).ok())
            .and_then(|(from, mut to)| {
                let done = self
                    .resampler
                    .process_into_buffer(&from, &mut to, Some(&indexing));
                done.ok()
            });
        let Some((_, made)) = made else {
            // Its buffers are of the sizes it asked for: this cannot be. Better a gap than no microphone.
            tracing::error!("a piece of sound could not be resampled and is left out");
            return Vec::new();
        };
        let late = self.delay.min(made);
        self.delay -= late;
        self.given += (made - late) as u64;
        self.made[late..made]
            .iter()
            .copied()
            .map(to_sample)
            .collect()
    }
}

#[cfg(test)]
mod tests;
