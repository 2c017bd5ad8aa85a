//! How the voice settings are read: programs, files and commands told apart.

use toolgate_voice::VoiceSettings;

/// True if a program can be started by this name.
pub(crate) fn is_installed(name: &str) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let is_program = |path: &std::path::Path| {
        let found = std::fs::metadata(path);
        found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    if name.contains('/') {
        return is_program(name.as_ref());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| is_program(&folder.join(name)))
}

/// True if speech goes to a file; what has several words is a command.
pub(crate) fn is_wav(output: &str) -> bool {
    let is_one = !output.contains(char::is_whitespace) && !output.contains("://");
    is_one && output.ends_with(".wav")
}

/// True if the gateway serves others.
pub(crate) fn offers(settings: &VoiceSettings) -> bool {
    !settings.handle.is_empty() || !settings.serve_tts.is_empty()
}

/// True if that is all it does: whoever gives another machine an agent has not asked for a microphone that is always open.
pub(crate) fn only_serves(settings: &VoiceSettings) -> bool {
    offers(settings) && settings.input.is_empty() && settings.wake.is_empty()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::{Config, Document, Reading, Uses};

    #[test]
    fn a_file_stays_one_word_and_a_command_stays_a_command() {
        for (output, expected) in [
            ("spoken.wav", "'/my house/spoken.wav'"),
            ("/a/spoken.wav", "/a/spoken.wav"),
            ("it's.wav", r"'/my house/it'\''s.wav'"),
            ("sox - spoken.wav", "sox - spoken.wav"),
            ("aplay", "aplay"),
        ] {
            let text = serde_json::json!({ "voice": { "output": output } }).to_string();
            let path = Path::new("/my house/t.json");
            let document = Document::parse(path, text.as_bytes()).unwrap();
            let config =
                Config::resolve(document, Reading::new(&|_| None, Uses::Everything)).unwrap();
            assert_eq!(config.voice.output, expected);
        }
    }
}
