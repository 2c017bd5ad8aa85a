use std::fs;
use std::io::Write;
use std::time::Duration;

use super::super::{AudioInput, open};
use super::*;

/// All events of a source.
async fn all(source: &mut dyn AudioSource) -> Result<Vec<i16>, EngineError> {
    let mut sound = Vec::new();
    let listening = async {
        while let Some(heard) = source.next().await? {
            match heard {
                CaptureEvent::Sound(samples) => sound.extend(samples),
                CaptureEvent::Woken(_) => panic!("a stream has no wake word"),
                CaptureEvent::FileBegins(_) | CaptureEvent::FileEnds => {}
            }
        }
        Ok(())
    };
    timeout(Duration::from_secs(60), listening)
        .await
        .expect("it ends")?;
    Ok(sound)
}

fn shell(script: &str) -> Vec<String> {
    ["sh", "-c", script].map(str::to_owned).to_vec()
}

fn wav(folder: &std::path::Path, name: &str, rate: u32, samples: &[i16]) -> PathBuf {
    let path = folder.join(name);
    let spec = hound::WavSpec {
        channels: 2,
        sample_rate: rate,
        bits_per_sample: 16,
        sample_format: hound::SampleFormat::Int,
    };
    let mut writer = hound::WavWriter::create(&path, spec).unwrap();
    for sample in samples {
        writer.write_sample(*sample).unwrap();
        writer.write_sample(*sample).unwrap();
    }
    writer.finalize().unwrap();
    path
}

#[tokio::test]
async fn start_and_end_of_each_file_are_reported() {
    let home = tempfile::tempdir().unwrap();
    let files = ["one.wav", "two.wav"].map(|name| wav(home.path(), name, 16_000, &[1; 10]));
    let mut opened = open(&AudioInput::Wav(files.to_vec())).await.unwrap();
    let mut told = Vec::new();
    while let Some(heard) = opened.source.next().await.unwrap() {
        match heard {
            // All of it is one.
            CaptureEvent::Sound(_) if matches!(told.last(), Some(CaptureEvent::Sound(_))) => {}
            CaptureEvent::Sound(_) => told.push(CaptureEvent::Sound(Vec::new())),
            other => told.push(other),
        }
    }
    let expected = files.map(|file| {
        [
            CaptureEvent::FileBegins(file),
            CaptureEvent::Sound(Vec::new()),
            CaptureEvent::FileEnds,
        ]
    });
    assert_eq!(told, expected.concat());
}

#[tokio::test]
async fn files_are_read_in_order_with_silence_after_each() {
    let home = tempfile::tempdir().unwrap();
    let one = wav(home.path(), "one.wav", 16_000, &[1; 20_000]);
    let two = wav(home.path(), "two.wav", 48_000, &[0; 4_800]);
    let mut opened = open(&AudioInput::Wav(vec![one, two])).await.unwrap();
    let sound = all(&mut *opened.source).await.unwrap();
    assert_eq!(sound[..20_000], [1; 20_000]);
    assert!(sound[20_000..].iter().all(|sample| *sample == 0));
    assert_eq!(
        sound.len(),
        20_000 + TRAILING_SILENCE + 1_600 + TRAILING_SILENCE
    );
    assert_eq!(opened.source.next().await, Ok(None));
}

#[tokio::test]
async fn missing_or_invalid_wav_file_is_named() {
    let home = tempfile::tempdir().unwrap();
    let missing = home.path().join("missing.wav");
    let error = open(&AudioInput::Wav(vec![missing]))
        .await
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("missing.wav: No such file"), "{error}");

    let text = home.path().join("text.wav");
    fs::File::create(&text)
        .unwrap()
        .write_all(b"hello")
        .unwrap();
    let good = wav(home.path(), "good.wav", 16_000, &[5]);
    let mut opened = open(&AudioInput::Wav(vec![text, good])).await.unwrap();
    let error = all(&mut *opened.source).await.unwrap_err().to_string();
    assert!(
        error.ends_with("text.wav: this is not WAV: it has no RIFF header"),
        "{error}"
    );
    // The next file is read nevertheless.
    assert_eq!(all(&mut *opened.source).await.unwrap()[0], 5);
}

#[tokio::test]
async fn command_is_captured_until_it_exits() {
    let mut source = open_command(&shell("printf '\\1\\0\\2'; printf '\\0\\3\\0'"), false).unwrap();
    assert_eq!(all(&mut *source).await, Ok(vec![1, 2, 3]));
    assert_eq!(source.next().await, Ok(None));
}

#[tokio::test]
async fn failing_command_reports_why() {
    for (script, is_continuous, expected) in [
        (
            "printf '\\1\\0'; echo device is busy >&2; exit 1",
            false,
            "sh: ended (exit status: 1): device is busy",
        ),
        ("printf '\\1\\0'", true, "sh: ended by itself"),
        (
            "printf 'RIFFxxxxAVI '",
            false,
            "sh: this is not WAV: it has no RIFF header",
        ),
    ] {
        let command = shell(script);
        let mut source = super::open_command(&command, is_continuous).unwrap();
        let error = all(&mut *source).await.unwrap_err().to_string();
        assert_eq!(error, expected, "{script}");
        assert_eq!(source.next().await, Ok(None), "{script}");
    }
}

#[tokio::test]
async fn cancelled_read_loses_nothing() {
    let script = "for i in 1 2 3 4 5; do printf '\\1\\0'; sleep 0.02; done";
    let mut source = open_command(&shell(script), false).unwrap();
    let mut sound = Vec::new();
    loop {
        match timeout(Duration::from_millis(3), source.next()).await {
            Err(_) => {}
            Ok(Ok(Some(CaptureEvent::Sound(samples)))) => sound.extend(samples),
            Ok(end) => break assert_eq!(end, Ok(None)),
        }
    }
    assert_eq!(sound, [1; 5]);
}

#[tokio::test(start_paused = true)]
async fn silent_recorder_times_out() {
    let (ours, _theirs) = tokio::io::duplex(64);
    let (running, ..) = ChildProgram::start(&shell("sleep 600")).unwrap();
    let mut source = CommandSource {
        stream: SampleStream::new(
            "sh",
            Box::new(ours),
            SourceDecoder::raw_or_wav(AudioFormat::CAPTURE).unwrap(),
        ),
        running,
        is_continuous: true,
        ended: false,
    };
    let error = source.next().await.unwrap_err().to_string();
    assert_eq!(error, "sh: gave no sound for 10 s");
    assert_eq!(source.next().await, Ok(None));
}

#[tokio::test]
async fn stdin_is_read_at_its_rate_or_as_its_header_says() {
    let home = tempfile::tempdir().unwrap();
    let raw = home.path().join("raw");
    fs::write(&raw, [0; 9_600]).unwrap();
    let wav = wav(home.path(), "one.wav", 16_000, &[3; 10]);
    for (path, length) in [(raw, 1_600), (wav, 10)] {
        let file = fs::File::open(&path).unwrap();
        let mut source = open_descriptor(file.into(), 48_000).unwrap();
        assert_eq!(all(&mut *source).await.unwrap().len(), length);

        let (read, mut write) = io::pipe().unwrap();
        write.write_all(&fs::read(&path).unwrap()).unwrap();
        drop(write);
        let mut source = open_descriptor(read.into(), 48_000).unwrap();
        assert_eq!(all(&mut *source).await.unwrap().len(), length);
    }
    let (read, write) = io::pipe().unwrap();
    drop(write);
    let mut source = open_descriptor(read.into(), 16_000).unwrap();
    let error = all(&mut *source).await.unwrap_err().to_string();
    assert_eq!(
        error,
        "stdin: it ended without any sound: is the program before it recording?"
    );
    assert_eq!(all(&mut *source).await, Ok(Vec::new()), "told once");
    let (read, _write) = io::pipe().unwrap();
    let error = open_descriptor(read.into(), 1).err().unwrap().to_string();
    assert_eq!(
        error,
        "stdin: sound at 1 Hz cannot be used: it must be from 8000 to 192000 Hz"
    );
}
