//! Converts sound of any format to 16-bit mono at 16 kHz.

use std::f64::consts::PI;

use super::{AudioFormat, AudioFormatError, SAMPLE_RATE};

// Filter taps per output sample at 16 kHz or less: enough to keep frequencies above speech from
// aliasing into it.
const TAPS: u32 = 128;
// The fraction of the band that passes; the rest is the slope of the filter.
const PASS_BAND: f64 = 0.95;
// Positions between two input samples that get coefficients of their own. Usual rates are exact,
// and memory is bounded.
const MAX_PHASES: u32 = 640;

// Sound arrives in pieces that may be cut anywhere, even within a sample.
pub(crate) struct CaptureConverter {
    format: AudioFormat,
    rest: Vec<u8>,
    resampler: Option<MonoResampler>,
}

impl CaptureConverter {
    pub(crate) fn new(format: AudioFormat) -> Result<Self, AudioFormatError> {
        let format = format.validated()?;
        let resampler = (format.rate != SAMPLE_RATE).then(|| MonoResampler::new(format.rate));
        Ok(Self {
            format,
            rest: Vec::new(),
            resampler,
        })
    }

    pub(crate) fn convert(&mut self, bytes: &[u8]) -> Vec<i16> {
        let size = self.format.frame_bytes();
        self.rest.extend_from_slice(bytes);
        let whole = self.rest.len() / size * size;
        let frames = self.rest[..whole].chunks_exact(size);
        let mono: Vec<f32> = frames
            .map(|frame| mix_to_mono(frame, self.format.width))
            .collect();
        self.rest.drain(..whole);
        match &mut self.resampler {
            None => mono.into_iter().map(to_sample).collect(),
            Some(resampler) => resampler.convert(&mono),
        }
    }

    pub(crate) fn finish(self) -> Vec<i16> {
        self.resampler.map_or_else(Vec::new, MonoResampler::finish)
    }
}

fn mix_to_mono(frame: &[u8], width: u16) -> f32 {
    let width = usize::from(width);
    let sum: f32 = frame.chunks_exact(width).map(decode_sample).sum();
    sum / (frame.len() / width) as f32
}

// Shifted to the top of 32 bits, samples of every width have the same scale.
fn decode_sample(bytes: &[u8]) -> f32 {
    let mut wide = [0; 4];
    wide[4 - bytes.len()..].copy_from_slice(bytes);
    i32::from_le_bytes(wide) as f32 / -(i32::MIN as f32)
}

fn to_sample(value: f32) -> i16 {
    // A float-to-integer cast saturates, so clipping needs no code.
    (value * 32_768.0).round() as i16
}

// A windowed sinc, evaluated where each output sample falls. Written by hand because it takes less
// code than feeding a crate that works in blocks with a delay.
struct MonoResampler {
    rate: u32,
    taps: usize,
    // `taps` coefficients for each phase.
    filters: Vec<f32>,
    // Input for the next outputs, with silence before the very first sample.
    recent: Vec<f32>,
    // Samples removed from the front of `recent` so far.
    dropped: u64,
    received: u64,
    sent: u64,
}

impl MonoResampler {
    fn new(rate: u32) -> Self {
        let taps = (TAPS * rate.div_ceil(SAMPLE_RATE)) as usize;
        let phases = (SAMPLE_RATE / greatest_common_divisor(SAMPLE_RATE, rate)).min(MAX_PHASES);
        let filters = (0..phases).flat_map(|phase| filter_coefficients(rate, taps, phase, phases));
        Self {
            rate,
            taps,
            filters: filters.collect(),
            recent: vec![0.0; taps / 2 - 1],
            dropped: 0,
            received: 0,
            sent: 0,
        }
    }

    fn convert(&mut self, mono: &[f32]) -> Vec<i16> {
        self.received += mono.len() as u64;
        self.recent.extend_from_slice(mono);
        self.take_ready()
    }

    // Silence stands in for the samples that the last outputs still wait for.
    fn finish(mut self) -> Vec<i16> {
        self.recent
            .resize(self.recent.len() + self.taps / 2 + 1, 0.0);
        self.take_ready()
    }

    fn take_ready(&mut self) -> Vec<i16> {
        let due = (self.received * u64::from(SAMPLE_RATE)).div_ceil(u64::from(self.rate));
        let mut ready = Vec::new();
        while self.sent < due {
            let (start, filter) = self.next_window();
            let Some(samples) = self.recent.get(start..start + self.taps) else {
                break;
            };
            let sum: f32 = samples.iter().zip(filter).map(|(a, b)| a * b).sum();
            ready.push(to_sample(sum));
            self.sent += 1;
        }
        let done = self.next_window().0.min(self.recent.len());
        self.recent.drain(..done);
        self.dropped += done as u64;
        ready
    }

    // Where in `recent` the samples of the next output begin, and their coefficients.
    fn next_window(&self) -> (usize, &[f32]) {
        let phases = (self.filters.len() / self.taps) as u64;
        // Counted in phases; only unusual rates need the rounding.
        let position = self.sent * u64::from(self.rate) * phases;
        let position = (position + u64::from(SAMPLE_RATE) / 2) / u64::from(SAMPLE_RATE);
        let start = (position / phases - self.dropped) as usize;
        let filter = (position % phases) as usize * self.taps;
        (start, &self.filters[filter..filter + self.taps])
    }
}

// The coefficients for an output `phase / phases` of the way from one input sample to the next.
fn filter_coefficients(rate: u32, taps: usize, phase: u32, phases: u32) -> Vec<f32> {
    let half = taps as f64 / 2.0;
    let cutoff = PASS_BAND * f64::from(SAMPLE_RATE.min(rate)) / f64::from(rate);
    let offset = f64::from(phase) / f64::from(phases) + half - 1.0;
    let at = |tap: usize| {
        let distance = tap as f64 - offset;
        sinc(cutoff * distance) * blackman_harris(distance / half)
    };
    let coefficients: Vec<f64> = (0..taps).map(at).collect();
    // Normalized, so that loudness is the same at every phase.
    let sum: f64 = coefficients.iter().sum();
    coefficients.iter().map(|one| (one / sum) as f32).collect()
}

fn sinc(x: f64) -> f64 {
    if x == 0.0 {
        1.0
    } else {
        (PI * x).sin() / (PI * x)
    }
}

// From -1 to 1. Its side lobes are below -90 dB, so nothing above speech is heard as speech.
fn blackman_harris(x: f64) -> f64 {
    let cosine = |n: f64| (n * PI * x).cos();
    0.358_75 + 0.488_29 * cosine(1.0) + 0.141_28 * cosine(2.0) + 0.011_68 * cosine(3.0)
}

fn greatest_common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 {
        a
    } else {
        greatest_common_divisor(b, a % b)
    }
}

#[cfg(test)]
mod tests;
