//! Speech programs that work, fail, hang or misbehave.

use std::path::Path;

use futures::TryStreamExt;
use tempfile::TempDir;

use super::*;
use crate::audio::AudioFormat;

const FORMAT: AudioFormat = AudioFormat {
    rate: 22_050,
    width: 2,
    channels: 1,
};

/// A folder with a WAV of one second in it.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let spec = hound::WavSpec {
        channels: 1,
        sample_rate: FORMAT.rate,
        bits_per_sample: 16,
        sample_format: hound::SampleFormat::Int,
    };
    let mut wav = hound::WavWriter::create(folder.path().join("one.wav"), spec).unwrap();
    (0..22_050).for_each(|sample| wav.write_sample(sample as i16).unwrap());
    wav.finalize().unwrap();
    folder
}

/// An engine that is this script, with the folder as its first argument and the text on stdin.
fn script(script: &str, folder: &Path) -> CommandTts {
    CommandTts {
        words: ["sh", "-c", script, "engine", &folder.display().to_string()]
            .map(str::to_owned)
            .to_vec(),
    }
}

async fn all(engine: &CommandTts, text: &str) -> Result<(AudioFormat, Vec<u8>), EngineError> {
    let stream = engine.synthesize(text).await?;
    let chunks: Vec<Bytes> = stream.chunks.try_collect().await?;
    Ok((stream.format, chunks.concat()))
}

#[tokio::test]
async fn text_goes_in_and_sound_comes_out() {
    let folder = folder();
    let file = std::fs::read(folder.path().join("one.wav")).unwrap();
    let said = folder.path().join("said");
    for text in [
        "hello",
        "-v $(touch x) `id` \"quoted\" 'it'",
        "two\nlines",
        "a\0b",
    ] {
        let engine = script("cat > $1/said; cat $1/one.wav", folder.path());
        let (format, sound) = all(&engine, text).await.unwrap();
        assert_eq!((format, &sound[..]), (FORMAT, &file[44..]));
        let expected = text.replace('\n', " ").replace('\0', "");
        assert_eq!(std::fs::read_to_string(&said).unwrap().trim(), expected);
    }
}

#[tokio::test]
async fn text_is_at_most_one_argument() {
    let folder = folder();
    let mut engine = script(
        "printf '%s\\n' \"$#\" \"$2\" > $1/said; cat $1/one.wav",
        folder.path(),
    );
    engine.words.push("{text}".to_owned());
    for (text, expected) in [
        ("hello there", "2\nhello there\n"),
        ("-o /etc/passwd; $(id)", "2\n -o /etc/passwd; $(id)\n"),
        ("a\0b\nc", "2\nab c\n"),
    ] {
        all(&engine, text).await.unwrap();
        assert_eq!(
            std::fs::read_to_string(folder.path().join("said")).unwrap(),
            expected
        );
    }
}

#[tokio::test]
async fn program_that_writes_files_gets_a_temporary_file() {
    let folder = folder();
    let mut engine = script(
        "echo noise; echo $2 > $1/said; cat $1/one.wav > $2",
        folder.path(),
    );
    engine.words.push("{file}".to_owned());
    let (format, sound) = all(&engine, "hello").await.unwrap();
    assert_eq!((format, sound.len()), (FORMAT, 44_100));
    let file = std::fs::read_to_string(folder.path().join("said")).unwrap();
    assert!(file.trim().ends_with(".wav") && !Path::new(file.trim()).exists());
}

#[tokio::test]
async fn program_errors_contain_the_last_stderr_lines() {
    let folder = folder();
    for (what, expected) in [
        ("exit 3", "sh: ended (exit status: 3)"),
        (
            "echo no such voice >&2; exit 1",
            "sh: ended (exit status: 1): no such voice",
        ),
        ("true", "sh: wrote no WAV"),
        (
            "echo this is not sound",
            "sh: this is not WAV: it has no RIFF header",
        ),
        (
            "head -c 100000 /dev/zero",
            "sh: this is not WAV: it has no RIFF header",
        ),
        ("head -c 20 $1/one.wav", "sh: wrote no WAV"),
        (
            "head -c 5000 $1/one.wav; kill -9 $$",
            "sh: ended (signal: 9 (SIGKILL))",
        ),
        (
            "(printf 'RIFF\\0\\0\\0\\0WAVE'; head -c 100000 /dev/zero)",
            "sh: this is not WAV: its header is longer than 64 KiB",
        ),
    ] {
        let error = all(&script(what, folder.path()), "hello")
            .await
            .unwrap_err();
        assert_eq!(error.to_string(), expected, "{what}");
    }
    let absent = CommandTts::parse("/no/such/engine", "").unwrap();
    let error = all(&absent, "hello").await.unwrap_err().to_string();
    assert!(
        error.starts_with("/no/such/engine: can't start: "),
        "{error}"
    );
}

#[tokio::test]
async fn endless_output_is_cut_and_its_program_killed() {
    let folder = folder();
    let flood = "head -c 44 $1/one.wav | head -c 40; printf '\\377\\377\\377\\177'; cat /dev/zero";
    let error = all(&script(flood, folder.path()), "hello")
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "sh: wrote far too much sound for the text"
    );
}

#[tokio::test(start_paused = true)]
async fn hanging_program_times_out() {
    let folder = folder();
    // Tokio's paused clock only advances while everything else is idle.
    for hang in ["sleep 1000", "head -c 3000 $1/one.wav; sleep 1000"] {
        let error = all(&script(hang, folder.path()), "hello")
            .await
            .unwrap_err();
        assert_eq!(error.to_string(), "sh did not answer within 15 s");
    }
}

#[tokio::test]
async fn program_whose_sound_is_dropped_is_killed() {
    let folder = folder();
    let engine = script(
        "echo $$ > $1/pid; cat $1/one.wav; sleep 1000",
        folder.path(),
    );
    let stream = engine.synthesize("hello").await.unwrap();
    let pid = std::fs::read_to_string(folder.path().join("pid")).unwrap();
    let lives = || {
        let stat =
            std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        stat.rsplit_once(") ")
            .is_some_and(|(_, rest)| !rest.starts_with('Z'))
    };
    assert!(lives());
    drop(stream);
    let gone = async {
        while lives() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(10), gone)
        .await
        .expect("the program ends");
}
