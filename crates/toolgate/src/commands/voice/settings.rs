//! Merges the voice settings of the configuration and the command line.

use std::io::IsTerminal;

use anyhow::{Context, bail};
use toolgate_core::text::escape;
use toolgate_voice::wyoming::WyomingAddress;
use toolgate_voice::{AudioInput, ListenMode, VoiceSettings, check_wav};

use crate::cli::VoiceOptions;
use crate::config::Config;
use crate::terminal;

#[derive(Debug)]
pub(super) struct VoiceSetup {
    pub(super) settings: VoiceSettings,
    /// `None` if only text is answered.
    pub(super) input: Option<AudioInput>,
    pub(super) mode: ListenMode,
    pub(super) mqtt: Option<toolgate_mqtt::MqttClientSettings>,
}

impl VoiceSetup {
    pub(super) fn read(config: &Config, options: &VoiceOptions) -> anyhow::Result<Self> {
        if let Some(unset) = config.unset_in_sections(&["mqtt", "voice"]) {
            bail!(unset.clone());
        }
        let settings = merge_settings(&config.voice, options);
        check_addresses(config, &settings)?;
        check_lengths(config, &settings)?;
        if let (Ok(tts), Ok(offered)) = (settings.tts.parse(), settings.serve_tts.parse())
            && WyomingAddress::may_reach(&tts, &offered)
        {
            bail!(
                "--tts {tts} would reach this program's own --serve-tts; use another engine, such as --tts espeak-ng"
            );
        }
        if !options.wake_word.is_empty() && settings.wake.is_empty() {
            bail!("--wake-word needs a service that hears it; give --wake too");
        }
        let mqtt = config.mqtt.broker().map_err(|error| {
            let located = config.error_about("mqtt", "url", &error.to_string());
            located.map_or_else(|| error.into(), anyhow::Error::from)
        })?;
        let input = input(&settings, options)?;
        if matches!(input, Some(AudioInput::Stdin { .. })) {
            // stdin carries sound, so keys come from the terminal itself.
            terminal::read_keys_from_tty();
        }
        Ok(Self {
            input,
            mode: mode(&settings, options)?,
            settings,
            mqtt,
        })
    }

    pub(super) fn microphone_note(&self) -> Option<&'static str> {
        let is_default = self.input.is_none() && self.settings.input.is_empty();
        is_default.then_some(
            "the microphone is off, because only other devices are served; --mic arecord listens here too",
        )
    }
}

fn merge_settings(configured: &VoiceSettings, options: &VoiceOptions) -> VoiceSettings {
    let mut settings = configured.clone();
    let overrides = [
        (&options.mic, &mut settings.input),
        (&options.out, &mut settings.output),
        (&options.asr, &mut settings.asr),
        (&options.wake, &mut settings.wake),
        (&options.tts, &mut settings.tts),
        (&options.handle, &mut settings.handle),
        (&options.serve_tts, &mut settings.serve_tts),
    ];
    for (option, setting) in overrides {
        if let Some(option) = option {
            setting.clone_from(option);
        }
    }
    if !options.wake_word.is_empty() {
        settings.wake_words.clone_from(&options.wake_word);
    }
    if options.push_to_talk {
        settings.wake.clear();
    }
    if !options.wav.is_empty() {
        settings.input.clear();
    }
    settings
}

fn check_addresses(config: &Config, settings: &VoiceSettings) -> anyhow::Result<()> {
    for (key, address) in [
        ("asr", &settings.asr),
        ("wake", &settings.wake),
        ("handle", &settings.handle),
        ("serveTts", &settings.serve_tts),
    ] {
        if key != "asr" && address.is_empty() {
            continue;
        }
        if let Err(error) = address.parse::<WyomingAddress>() {
            let located = config.error_about("voice", key, &error.to_string());
            return Err(located.map_or_else(|| error.into(), anyhow::Error::from));
        }
    }
    Ok(())
}

fn check_lengths(config: &Config, settings: &VoiceSettings) -> anyhow::Result<()> {
    let longest = settings.max_command;
    for (key, length) in [
        ("silence", settings.silence),
        ("minSpeech", settings.min_speech),
        ("minCommand", settings.min_command),
    ] {
        if length >= longest {
            let text = format!("must be less than voice.maxCommand, which is {longest:?}");
            let located = config.error_about("voice", key, &text);
            let plain = || anyhow::anyhow!("voice.{key} {text}");
            return Err(located.map_or_else(plain, anyhow::Error::from));
        }
    }
    Ok(())
}

fn input(settings: &VoiceSettings, options: &VoiceOptions) -> anyhow::Result<Option<AudioInput>> {
    let is_piped = settings.input == "-" && options.wav.is_empty();
    if let Some(rate) = options.rate.filter(|_| !is_piped) {
        bail!("--rate {rate} is for sound on stdin; give --mic - too");
    }
    if !options.wav.is_empty() {
        for file in &options.wav {
            let shown = escape(&file.to_string_lossy());
            let found = std::fs::metadata(file).with_context(|| format!("cannot read {shown}"))?;
            if !found.is_file() {
                bail!("cannot read {shown}: it is not a file");
            }
            check_wav(file).with_context(|| format!("cannot read {shown}"))?;
        }
        return Ok(Some(AudioInput::Wav(options.wav.clone())));
    }
    if is_piped {
        if std::io::stdin().is_terminal() {
            bail!(
                "--mic - reads sound from stdin, and that is a terminal; pipe it in: arecord -q -t raw -r 16000 -f S16_LE -c 1 | toolgate voice --mic -"
            );
        }
        return Ok(Some(match options.rate {
            Some(rate) => AudioInput::Stdin { rate },
            None => AudioInput::parse("-")?,
        }));
    }
    let is_silent = !options.push_to_talk && settings.only_serves();
    match settings.input.as_str() {
        "none" if !settings.serves() => bail!(
            "without a microphone there is nothing to answer; --handle tcp://127.0.0.1:10800 takes requests as text"
        ),
        "none" => Ok(None),
        _ if is_silent => Ok(None),
        text => Ok(Some(AudioInput::parse(text)?)),
    }
}

fn mode(settings: &VoiceSettings, options: &VoiceOptions) -> anyhow::Result<ListenMode> {
    if !options.push_to_talk {
        return Ok(match settings.wake.is_empty() {
            true => ListenMode::Always,
            false => ListenMode::Wake,
        });
    }
    if !terminal::is_foreground() {
        bail!("--push-to-talk needs a terminal where Enter can be pressed");
    }
    Ok(ListenMode::PushToTalk)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, CliCommand};

    fn options(arguments: &[&str]) -> VoiceOptions {
        let words = ["toolgate", "voice"].iter().chain(arguments);
        match Cli::try_parse_from(words).unwrap().command {
            CliCommand::Voice(options) => options,
            other => panic!("{other:?}"),
        }
    }

    fn read_error(arguments: &[&str]) -> String {
        match VoiceSetup::read(&Config::default(), &options(arguments)) {
            Ok(wanted) => panic!("{wanted:?}"),
            Err(error) => format!("{error:#}"),
        }
    }

    #[test]
    fn the_command_line_wins_over_the_configuration() {
        let mut config = Config::default();
        config.voice.asr = "tcp://a:1".to_owned();
        config.voice.wake = "tcp://b:1".to_owned();
        config.voice.tts = "flite".to_owned();
        let kept = merge_settings(&config.voice, &options(&[]));
        assert_eq!(kept, config.voice);
        config.voice.wake_words = vec!["alexa".to_owned()];
        let named = merge_settings(&config.voice, &options(&["--wake-word", "hey_jarvis"]));
        assert_eq!(named.wake_words, ["hey_jarvis"]);
        let words = ["--asr", "tcp://c:1", "--wake", "none", "--out", "x.wav"];
        let changed = merge_settings(&config.voice, &options(&words));
        assert_eq!(
            [&changed.asr, &changed.wake, &changed.output, &changed.tts],
            ["tcp://c:1", "", "x.wav", "flite"]
        );
        let pressed = merge_settings(&config.voice, &options(&["--push-to-talk"]));
        assert_eq!(pressed.wake, "");
    }

    #[test]
    fn options_decide_how_it_listens() {
        let config = Config::default();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.wav");
        std::fs::write(&file, "").unwrap();
        let file = file.to_str().unwrap();
        for (words, input, mode) in [
            (
                &["--wav", file][..],
                AudioInput::Wav(vec![file.into()]),
                ListenMode::Always,
            ),
            (
                &["--wav", file, file, "--wake", "tcp://h:1"],
                AudioInput::Wav(vec![file.into(), file.into()]),
                ListenMode::Wake,
            ),
        ] {
            let wanted = VoiceSetup::read(&config, &options(words)).unwrap();
            assert_eq!(
                (wanted.input, wanted.mode),
                (Some(input), mode),
                "{words:?}"
            );
        }
    }

    #[test]
    fn lengths_stay_below_max_command() {
        let check = |change: fn(&mut VoiceSettings)| {
            let mut settings = Config::default().voice;
            change(&mut settings);
            let checked = check_lengths(&Config::default(), &settings);
            checked.map_err(|error| error.to_string())
        };
        assert_eq!(check(|_| {}), Ok(()));
        let shorter = "must be less than voice.maxCommand, which is";
        for (change, expected) in [
            (
                (|it| it.min_command = Duration::from_secs(20)) as fn(&mut VoiceSettings),
                format!("voice.minCommand {shorter} 15s"),
            ),
            (
                |it| it.silence = Duration::from_secs(7200),
                format!("voice.silence {shorter} 15s"),
            ),
            (
                |it| it.max_command = Duration::from_millis(300),
                format!("voice.silence {shorter} 300ms"),
            ),
        ] {
            assert_eq!(check(change), Err(expected));
        }
    }

    #[test]
    fn serving_others_opens_no_microphone() {
        let arecord = AudioInput::parse("arecord").ok();
        for (words, input, is_noted) in [
            (&["--handle", "tcp://h:1"][..], None, true),
            (&["--serve-tts", "tcp://h:1"], None, true),
            (&["--handle", "tcp://h:1", "--mic", "none"], None, false),
            (
                &["--handle", "tcp://h:1", "--mic", "arecord"],
                arecord,
                false,
            ),
        ] {
            let wanted = VoiceSetup::read(&Config::default(), &options(words)).unwrap();
            assert_eq!(wanted.input, input, "{words:?}");
            assert_eq!(wanted.microphone_note().is_some(), is_noted, "{words:?}");
        }
        // A wake word needs the microphone.
        let mut settings = VoiceSettings::default();
        settings.handle = "tcp://h:1".to_owned();
        assert!(settings.only_serves());
        settings.wake = "tcp://h:2".to_owned();
        assert!(!settings.only_serves());
    }

    #[test]
    fn contradictory_options_explain_the_fix() {
        for (words, expected) in [
            (&["--wav", "/no/such.wav"][..], "cannot read /no/such.wav"),
            (&["--wav", "/"], "cannot read /: it is not a file"),
            (&["--mic", "none"], "--handle tcp://127.0.0.1:10800"),
            (&["--mic", "tcp://h"], "is not a Wyoming address"),
            (&["--wake-word", "alexa"], "give --wake too"),
            (
                &[
                    "--tts",
                    "tcp://localhost:9",
                    "--serve-tts",
                    "tcp://0.0.0.0:9",
                ],
                "--tts tcp://localhost:9 would reach this program",
            ),
            (&["--mic", "arecord", "--rate", "8000"], "give --mic - too"),
        ] {
            let error = read_error(words);
            assert!(error.contains(expected), "{error}");
        }
        for words in [
            &["--asr", "localhost:1"][..],
            &["--handle", "tcp://h"],
            &["--rate", "16000"],
            &["--mic", "-", "--rate", "1"],
            &["--wav", "a", "--mic", "-"],
            &["--push-to-talk", "--wake", "tcp://h:1"],
            &["--resume", "x"],
        ] {
            let words = ["toolgate", "voice"].iter().chain(words);
            assert!(Cli::try_parse_from(words.clone()).is_err(), "{words:?}");
        }
    }
}
