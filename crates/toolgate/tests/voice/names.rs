//! A wake word before the request, detected by the real openWakeWord.

use std::io::Write;
use std::path::Path;

use serde_json::json;

use crate::engines::{EngineProcess, pause, speak};
use crate::house::SimulatedHome;
use crate::program::{VoiceFolder, VoiceRun};

/// The sample rate of espeak-ng.
const RATE: u32 = 22_050;

/// The samples of a file, as a microphone with that rate would deliver them.
fn heard(wav: &Path) -> Vec<i16> {
    let mut reader = hound::WavReader::open(wav).unwrap();
    let spec = reader.spec();
    assert_eq!((spec.sample_rate, spec.channels), (RATE, 1));
    reader.samples().map(Result::unwrap).collect()
}

fn silence(ms: u32) -> Vec<i16> {
    vec![0; (RATE * ms / 1000) as usize]
}

/// Plays sound made of sentences and of pauses in milliseconds. Returns the house and the result,
/// or `None` without the engines.
async fn play_parts(parts: &[(&str, u32)]) -> Option<(SimulatedHome, VoiceRun)> {
    let home = SimulatedHome::new().await?;
    let (whisper, wake) = (EngineProcess::whisper()?, EngineProcess::open_wake_word()?);
    let folder = VoiceFolder::new();
    // Speech from before the wake word service is connected isn't sent to it.
    let mut sound = silence(3000);
    for (text, pause) in parts {
        let wav = folder.path("said.wav");
        speak(text, &wav);
        sound.extend(heard(&wav));
        sound.extend(silence(*pause));
    }
    let config = json!({
        "mcpServers": { "zwave": home.server() },
        "model": { "provider": "intents" },
        "voice": {
            "asr": whisper.address(),
            "wake": wake.address(),
            "wakeWords": ["hey_jarvis"],
            "tts": "espeak-ng",
        },
    });
    let answer = folder.path("answer.wav");
    let (rate, answer) = (RATE.to_string(), answer.to_str().unwrap());
    let arguments = ["--mic", "-", "--rate", &rate, "--out", answer];
    let mut running = folder.start(&config, &arguments);
    running.until("ready");
    let mut microphone = running.child.stdin.take().unwrap();
    // In real time like a microphone, because another process detects the wake word.
    for chunk in sound.chunks((RATE / 50) as usize) {
        let bytes: Vec<u8> = chunk.iter().flat_map(|one| one.to_le_bytes()).collect();
        microphone.write_all(&bytes).unwrap();
        pause(20);
    }
    drop(microphone);
    let done = running.ended();
    assert_eq!(done.code, Some(0), "{}", done.log);
    assert_eq!(done.turns.len(), 1, "{}", done.log);
    let name = done.turns[0]["wake_word"].as_str().unwrap();
    assert!(name.starts_with("hey_jarvis"), "{name}");
    Some((home, done))
}

#[tokio::test(flavor = "multi_thread")]
async fn vo2_only_requests_after_the_wake_word_are_answered() {
    let parts = [
        ("turn on the lamp", 1500),
        ("hey jarvis", 700),
        ("turn on switch one", 2500),
    ];
    let Some((home, done)) = play_parts(&parts).await else {
        return;
    };
    assert_eq!(home.state("Switch One"), "on", "{}", done.log);
    assert_eq!(home.state("Lamp"), "off", "nobody called it by its name");
}

#[tokio::test(flavor = "multi_thread")]
async fn speech_right_after_the_wake_word_is_heard() {
    let parts = [("hey jarvis turn on switch one", 2500)];
    let Some((home, done)) = play_parts(&parts).await else {
        return;
    };
    // Whisper may transcribe a remnant of the wake word in any way.
    let heard = done.turns[0]["heard"].as_str().unwrap().to_lowercase();
    assert!(heard.starts_with("turn on switch"), "{heard}\n{}", done.log);
    assert_eq!(home.state("Switch One"), "on", "{}", done.log);
}
