//! How loud it is.

/// Below this, in decibels of full scale, a person hears silence.
const SILENT: f32 = -60.0;
/// Above this somebody shouts into the microphone.
const LOUD: f32 = -12.0;

/// How loud it is to a listener, from 0 to 1: in steps of loudness, not of amplitude.
pub(crate) fn level(samples: &[i16]) -> f32 {
    if samples.is_empty() {
        return 0.0;
    }
    let sum: i64 = samples
        .iter()
        .map(|sample| i64::from(*sample) * i64::from(*sample))
        .sum();
    let power = sum as f64 / samples.len() as f64;
    let decibels = 10.0 * (power / f64::from(i16::MAX).powi(2)).log10() as f32;
    ((decibels - SILENT) / (LOUD - SILENT)).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_level_follows_loudness_and_stays_in_its_bounds() {
        // A square wave has its amplitude as its power: 32767 is 0 dB, a tenth of it -20 dB.
        for (amplitude, expected) in [
            (0, 0.0),
            (10, 0.0),
            (328, 20.0 / 48.0),
            (3277, 40.0 / 48.0),
            (i16::MAX, 1.0),
            (i16::MIN, 1.0),
        ] {
            let found = level(&[amplitude; 100]);
            assert!((found - expected).abs() < 0.001, "{amplitude}: {found}");
        }
    }
}
