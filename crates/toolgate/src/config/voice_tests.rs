//! How an `output` of `voice` is read.

use std::path::Path;

use super::{Config, ConfigDocument, ConfigReadOptions, SecretScope};

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
        let document = ConfigDocument::parse(path, text.as_bytes()).unwrap();
        let config = Config::resolve(
            document,
            ConfigReadOptions::new(&|_| None, SecretScope::Everything),
        )
        .unwrap();
        assert_eq!(config.voice.output, expected);
    }
}
