//! The WAV file is valid at every moment.

use super::*;

fn sound(value: i16, frames: usize) -> Bytes {
    value.to_le_bytes().repeat(frames).into()
}

fn samples(path: &Path) -> (hound::WavSpec, Vec<i16>) {
    let reader = hound::WavReader::open(path).unwrap();
    (
        reader.spec(),
        reader.into_samples().map(Result::unwrap).collect(),
    )
}

fn answers() -> (tempfile::TempDir, PathBuf, WavFile) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("answers.wav");
    let file = WavFile::new(&path);
    (folder, path, file)
}

async fn say(file: &WavFile, sound: Bytes) {
    let mut playing = file.begin(AudioFormat::CAPTURE).await.unwrap();
    playing.play(sound).await.unwrap();
}

#[tokio::test]
async fn file_is_valid_after_every_piece_and_restarted_with_each_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("answers.wav");
    for value in [1, 2, 3, 4] {
        let file = WavFile::new(&path);
        let mut expected = vec![9; 5];
        let mut playing = file.begin(AudioFormat::CAPTURE).await.unwrap();
        playing.play(sound(9, 5)).await.unwrap();
        let mut playing = file.begin(AudioFormat::CAPTURE).await.unwrap();
        for frames in [100, 7] {
            playing.play(sound(value, frames)).await.unwrap();
            expected.extend(std::iter::repeat_n(value, frames));
            let (spec, found) = samples(&path);
            assert_eq!(
                (spec.sample_rate, spec.channels, spec.bits_per_sample),
                (16_000, 1, 16)
            );
            assert_eq!(found, expected);
        }
        assert_eq!(playing.heard(), AudioFormat::CAPTURE.duration(214));
        // Dropped without an end, as if the process were killed.
    }
}

#[tokio::test]
async fn bytes_after_the_recorded_length_are_overwritten() {
    let (_folder, path, file) = answers();
    say(&file, sound(1, 10)).await;
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.extend([9; 6]);
    std::fs::write(&path, bytes).unwrap();
    assert_eq!(samples(&path).1.len(), 10);
    say(&file, sound(2, 10)).await;
    assert_eq!(samples(&path).1, [[1; 10], [2; 10]].concat());
}

#[tokio::test]
async fn sound_of_another_format_is_converted() {
    let (_folder, path, file) = answers();
    say(&file, sound(5, 16)).await;
    for (rate, channels, frames) in [(22_050, 1, 2205), (48_000, 2, 9600), (8_000, 1, 800)] {
        let before = samples(&path).1.len();
        let format = AudioFormat {
            rate,
            width: 2,
            channels,
        };
        let mut playing = file.begin(format).await.unwrap();
        playing.play(sound(1000, frames)).await.unwrap();
        assert_eq!(playing.heard().as_millis(), 100);
        let (spec, found) = samples(&path);
        assert_eq!((spec.sample_rate, spec.channels), (16_000, 1));
        assert_eq!(found.len() - before, 1600, "{rate}");
        assert!(
            found[before..].iter().all(|sample| *sample == 1000),
            "{rate}"
        );
    }
}

#[tokio::test]
async fn files_of_other_programs_are_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in [
        ("text.wav", b"my notes".to_vec()),
        ("long.wav", vec![7; 1000]),
        (
            "other.wav",
            [
                &wav_header(AudioFormat::CAPTURE, 10)[..40],
                &u32::MAX.to_le_bytes(),
            ]
            .concat(),
        ),
        (
            "header.wav",
            wav_header(AudioFormat::CAPTURE, 4)[..43].to_vec(),
        ),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, &content).unwrap();
        let error = WavFile::new(&path)
            .begin(AudioFormat::CAPTURE)
            .await
            .err()
            .unwrap()
            .to_string();
        assert!(
            error.ends_with("it was not written by Toolgate; move it away"),
            "{error}"
        );
        assert_eq!(std::fs::read(&path).unwrap(), content);
    }
    let nowhere = WavFile::new(folder.path().join("no/such/folder.wav"));
    let error = nowhere
        .begin(AudioFormat::CAPTURE)
        .await
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("can't write: No such file"), "{error}");
}

#[test]
fn full_file_stays_valid() {
    let file = tempfile::tempfile().unwrap();
    let open = OpenWav {
        file: Arc::new(file),
        format: AudioFormat::CAPTURE,
        length: MAX_AUDIO_BYTES - 2,
    };
    assert_eq!(
        append(&open, &[0; 4]).unwrap_err().to_string(),
        "it is full"
    );
}
