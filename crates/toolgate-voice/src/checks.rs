//! Whether the engines that the settings name are there, for `toolgate doctor`.

use std::time::Duration;

use toolgate_core::escape;

use crate::VoiceSettings;
use crate::hear::Recorder;
use crate::hear::program::is_installed;
use crate::speak::{CommandTts, Program};
use crate::wyoming::{Address, Info, Listener, describe};

/// How long an engine has to say what it is.
const PATIENCE: Duration = Duration::from_secs(3);

const START_ASR: &str = "python3 -m venv ~/whisper && ~/whisper/bin/pip install --only-binary :all: wyoming-faster-whisper; ~/whisper/bin/python -m wyoming_faster_whisper --uri tcp://127.0.0.1:10300 --model tiny.en --language en --data-dir ~/whisper/data";
const START_WAKE: &str = "with openWakeWord installed, python -m wyoming_openwakeword --uri tcp://127.0.0.1:10400; docs/voice.md says how that is done, or which container has it";
/// Where they are, unless the settings say otherwise.
const ASR: &str = "tcp://127.0.0.1:10300";
const WAKE: &str = "tcp://127.0.0.1:10400";
const INSTALL_TTS: &str = "sudo apt-get install espeak-ng";
const INSTALL_SOUND: &str =
    "sudo apt-get install alsa-utils (or pipewire-bin, or pulseaudio-utils)";

/// What a check of an engine found, and what to do if it isn't enough.
pub struct EngineCheck {
    /// The setting that names the engine.
    pub name: &'static str,
    /// What is there, or what is missing.
    pub found: Result<String, String>,
    /// How to get what is missing.
    pub todo: Option<String>,
}

/// Everything but the speech-to-text service.
pub async fn check_engines(settings: &VoiceSettings) -> Vec<EngineCheck> {
    let all = [
        of_wake(settings).await,
        Some(of_tts(settings).await),
        Some(of_input(settings).await),
        Some(of_output(settings).await),
        of_offer("handle", &settings.handle).await,
        of_offer("serveTts", &settings.serve_tts).await,
    ];
    all.into_iter().flatten().collect()
}

/// What a Wyoming service says of itself: `part` finds what is wanted in it, or says what it does not do.
async fn of_service(
    address: &str,
    part: impl Fn(&Info) -> Result<String, String>,
) -> Result<String, String> {
    let parsed: Address = address.parse().map_err(|error| format!("{error}"))?;
    let info = describe(&parsed, PATIENCE).await;
    let info = info.map_err(|error| error.to_string())?;
    match part(&info) {
        Ok(text) => Ok(format!("{text} at {parsed}")),
        Err(is_no) => Err(format!("the service at {parsed} {is_no}")),
    }
}

/// Whether speech can be understood: without that, nothing else matters.
pub async fn check_asr(settings: &VoiceSettings) -> EngineCheck {
    if settings.only_serves() {
        let found = Ok("none is needed, since only others are served".to_owned());
        return EngineCheck {
            name: "asr",
            found,
            todo: None,
        };
    }
    let language = settings.language.as_str();
    let part = |info: &Info| {
        let program = info.asr.first()?;
        let mut models = info.asr.iter().flat_map(|program| &program.models);
        let knows =
            |spoken: &String| spoken == language || spoken.starts_with(&format!("{language}-"));
        let has = language.is_empty()
            || models.any(|model| model.languages.is_empty() || model.languages.iter().any(knows));
        has.then(|| escape(&program.artifact.name))
    };
    let is_no = match language {
        "" => "makes no text of speech".to_owned(),
        language => format!("makes no text of speech in '{}'", escape(language)),
    };
    EngineCheck {
        name: "asr",
        found: of_service(&settings.asr, |info| {
            part(info).ok_or_else(|| is_no.clone())
        })
        .await,
        todo: Some(START_ASR.replace(ASR, &escape(&settings.asr))),
    }
}

async fn of_wake(settings: &VoiceSettings) -> Option<EngineCheck> {
    if settings.wake.is_empty() {
        return None;
    }
    let words = |info: &Info| -> Vec<String> {
        let models = info.wake.iter().flat_map(|program| &program.models);
        models.map(|model| model.artifact.name.clone()).collect()
    };
    let part = |info: &Info| {
        let (known, wanted) = (words(info), &settings.wake_words);
        if known.is_empty() {
            return Err("hears no wake words".to_owned());
        }
        if wanted.iter().any(|word| !known.contains(word)) {
            let wanted = escape(&wanted.join(", "));
            return Err(format!("does not know all of {wanted}"));
        }
        let heard = if wanted.is_empty() { &known } else { wanted };
        Ok(format!("hears {}", escape(&heard.join(", "))))
    };
    Some(EngineCheck {
        name: "wake",
        found: of_service(&settings.wake, part).await,
        todo: Some(START_WAKE.replace(WAKE, &escape(&settings.wake))),
    })
}

async fn of_tts(settings: &VoiceSettings) -> EngineCheck {
    let voice = settings.tts_voice.as_str();
    let part = |info: &Info| {
        let program = info.tts.first()?;
        let mut voices = info.tts.iter().flat_map(|program| &program.voices);
        let has = voice.is_empty() || voices.any(|known| known.artifact.name == voice);
        has.then(|| escape(&program.artifact.name))
    };
    let is_no = match voice {
        "" => "does not speak".to_owned(),
        voice => format!("has no voice '{}'", escape(voice)),
    };
    let found = of_engine(&settings.tts, &CommandTts::KNOWN, part, &is_no).await;
    EngineCheck {
        name: "tts",
        found,
        todo: Some(INSTALL_TTS.to_owned()),
    }
}

async fn of_input(settings: &VoiceSettings) -> EngineCheck {
    let part = |info: &Info| match (&info.satellite, info.mic.first()) {
        (Some(satellite), _) => Some(format!("satellite {}", escape(&satellite.artifact.name))),
        (None, Some(mic)) => Some(escape(&mic.artifact.name)),
        (None, None) => None,
    };
    let programs = Recorder::ALL.map(Recorder::name);
    let found = match settings.only_serves() {
        true => Ok("none is used, since only others are served".to_owned()),
        false => of_engine(&settings.input, &programs, part, "has no microphone").await,
    };
    EngineCheck {
        name: "input",
        found,
        todo: Some(INSTALL_SOUND.to_owned()),
    }
}

async fn of_output(settings: &VoiceSettings) -> EngineCheck {
    let part = |info: &Info| Some(escape(&info.snd.first()?.artifact.name));
    let output = settings.output.as_str();
    let is_answered = output.is_empty() && settings.input.contains("://");
    let found = if is_answered {
        Ok("answers go back to where requests come from".to_owned())
    } else if is_wav(output) || (output.starts_with('\'') && output.ends_with(".wav'")) {
        Ok(format!("answers are kept in {}", escape(output)))
    } else {
        of_engine(output, &Program::KNOWN, part, "has no loudspeaker").await
    };
    EngineCheck {
        name: "output",
        found,
        todo: Some(INSTALL_SOUND.to_owned()),
    }
}

/// A service, a program by its name or its command, or the first program there is.
async fn of_engine(
    value: &str,
    programs: &[&str],
    part: impl Fn(&Info) -> Option<String>,
    is_no: &str,
) -> Result<String, String> {
    match value {
        "" => match programs.iter().find(|name| is_installed(name)) {
            Some(name) => Ok(format!("{name} is installed")),
            None => Err(format!("none of {} is installed", programs.join(", "))),
        },
        "none" => Ok("none is wanted".to_owned()),
        "-" => Ok("sound comes from stdin".to_owned()),
        address if address.contains("://") => {
            of_service(address, |info| part(info).ok_or_else(|| is_no.to_owned())).await
        }
        command => {
            let program = command.split_whitespace().next().unwrap_or(command);
            let shown = escape(program);
            match is_installed(program.trim_matches(['\'', '"'])) {
                true => Ok(format!("{shown} is installed")),
                false => Err(format!("{shown} is not installed")),
            }
        }
    }
}

/// Where others are to find a service of ours; only where one is offered.
async fn of_offer(name: &'static str, address: &str) -> Option<EngineCheck> {
    let address = Some(address.trim()).filter(|address| !address.is_empty())?;
    let found = match address.parse::<Address>() {
        Err(error) => Err(error.to_string()),
        Ok(address) => match Listener::bind(&address).await {
            Ok(listener) if listener.is_private() => Ok(format!("{address} is free")),
            Ok(_) => Ok(format!(
                "{address} is free; whoever reaches it may use the service, as Wyoming knows no passwords"
            )),
            Err(_) if is_ours(&address).await => {
                Ok(format!("a Toolgate offers it at {address} already"))
            }
            Err(error) => Err(error.to_string()),
        },
    };
    Some(EngineCheck {
        name,
        found,
        todo: Some(format!(
            "end the program that listens there, or choose another address for voice.{name}"
        )),
    })
}

async fn is_ours(address: &Address) -> bool {
    let Ok(info) = describe(address, PATIENCE).await else {
        return false;
    };
    let handle = info.handle.iter().map(|program| &program.artifact);
    let tts = info.tts.iter().map(|program| &program.artifact);
    let mut all = handle.chain(tts);
    all.any(|artifact| artifact.attribution.name == "Toolgate")
}

/// True if speech goes to a file; what has several words is a command.
pub fn is_wav(output: &str) -> bool {
    let is_one = !output.contains(char::is_whitespace) && !output.contains("://");
    is_one && output.ends_with(".wav")
}
