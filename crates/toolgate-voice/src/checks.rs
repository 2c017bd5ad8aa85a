//! Checks the configured engines for `toolgate doctor`.

use std::time::Duration;

use toolgate_core::text::escape;

use crate::VoiceSettings;
use crate::capture::RECORDERS;
use crate::capture::child_program::is_installed;
use crate::speak::{CommandTts, PlayerProgram};
use crate::wyoming::{
    ServiceInfo, ServiceProgram, WyomingAddress, WyomingListener, WyomingModel, describe,
};

const PROBE_TIMEOUT: Duration = Duration::from_secs(3);

const START_ASR: &str = "python3 -m venv ~/whisper && ~/whisper/bin/pip install --only-binary :all: wyoming-faster-whisper; ~/whisper/bin/python -m wyoming_faster_whisper --uri tcp://127.0.0.1:10300 --model tiny.en --language en --data-dir ~/whisper/data";
const START_WAKE: &str = "with openWakeWord installed, python -m wyoming_openwakeword --uri tcp://127.0.0.1:10400; docs/voice.md shows how, or which container to use";
// The default addresses, which the hints above replace with the configured ones.
const DEFAULT_ASR: &str = "tcp://127.0.0.1:10300";
const DEFAULT_WAKE: &str = "tcp://127.0.0.1:10400";
const INSTALL_TTS: &str = "sudo apt-get install espeak-ng";
const INSTALL_SOUND: &str =
    "sudo apt-get install alsa-utils (or pipewire-bin, or pulseaudio-utils)";

/// What `toolgate doctor` found out about one engine.
pub struct EngineCheck {
    /// The setting that names the engine, below `voice`.
    pub name: &'static str,
    pub found: Result<String, String>,
    /// What to do if it doesn't work.
    pub todo: Option<String>,
}

/// Checks for `toolgate doctor` that all engines work, except speech-to-text: see [`check_asr`].
pub async fn check_engines(settings: &VoiceSettings) -> Vec<EngineCheck> {
    let all = [
        check_wake(settings).await,
        Some(check_tts(settings).await),
        Some(check_input(settings).await),
        Some(check_output(settings).await),
        check_offer("handle", &settings.handle).await,
        check_offer("serveTts", &settings.serve_tts).await,
    ];
    all.into_iter().flatten().collect()
}

fn check(name: &'static str, found: Result<String, String>, todo: &str) -> EngineCheck {
    let todo = Some(todo.to_owned());
    EngineCheck { name, found, todo }
}

/// Asks a Wyoming service to describe itself. `inspect` returns what was found in its description,
/// or what the service lacks.
async fn probe_service(
    address: &str,
    inspect: impl Fn(&ServiceInfo) -> Result<String, String>,
) -> Result<String, String> {
    let parsed: WyomingAddress = address.parse().map_err(|error| format!("{error}"))?;
    let info = describe(&parsed, PROBE_TIMEOUT).await;
    match inspect(&info.map_err(|error| error.to_string())?) {
        Ok(text) => Ok(format!("{text} at {parsed}")),
        Err(problem) => Err(format!("the service at {parsed} {problem}")),
    }
}

/// Checks the speech-to-text service, by asking it what it can do.
pub async fn check_asr(settings: &VoiceSettings) -> EngineCheck {
    let name = "asr";
    if settings.only_serves() {
        let found = Ok("not needed: the gateway only serves others".to_owned());
        return EngineCheck {
            name,
            found,
            todo: None,
        };
    }
    let language = settings.language.as_str();
    let dialect = format!("{language}-");
    let knows = |model: &WyomingModel| {
        let mut languages = model.languages.iter();
        model.languages.is_empty()
            || languages.any(|spoken| spoken == language || spoken.starts_with(&dialect))
    };
    let inspect = |info: &ServiceInfo| {
        let mut models = info.asr.iter().flat_map(ServiceProgram::models);
        match info.asr.first() {
            Some(program) if language.is_empty() || models.any(knows) => {
                Ok(escape(&program.artifact.name))
            }
            _ if language.is_empty() => Err("does not transcribe speech".to_owned()),
            _ => Err(format!("does not transcribe '{}'", escape(language))),
        }
    };
    let found = probe_service(&settings.asr, inspect).await;
    check(
        name,
        found,
        &START_ASR.replace(DEFAULT_ASR, &escape(&settings.asr)),
    )
}

async fn check_wake(settings: &VoiceSettings) -> Option<EngineCheck> {
    if settings.wake.is_empty() {
        return None;
    }
    let inspect = |info: &ServiceInfo| {
        let models = info.wake.iter().flat_map(ServiceProgram::models);
        let known: Vec<String> = models.map(|model| model.artifact.name.clone()).collect();
        let wanted = &settings.wake_words;
        if known.is_empty() {
            return Err("has no wake words".to_owned());
        }
        if wanted.iter().any(|word| !known.contains(word)) {
            let wanted = escape(&wanted.join(", "));
            return Err(format!("does not know all of {wanted}"));
        }
        let heard = if wanted.is_empty() { &known } else { wanted };
        Ok(format!("listens for {}", escape(&heard.join(", "))))
    };
    let found = probe_service(&settings.wake, inspect).await;
    let todo = START_WAKE.replace(DEFAULT_WAKE, &escape(&settings.wake));
    Some(check("wake", found, &todo))
}

async fn check_tts(settings: &VoiceSettings) -> EngineCheck {
    let voice = settings.tts_voice.as_str();
    let inspect = |info: &ServiceInfo| {
        let mut voices = info.tts.iter().flat_map(ServiceProgram::models);
        let mut has_voice = || voices.any(|known| known.artifact.name == voice);
        match info.tts.first() {
            Some(program) if voice.is_empty() || has_voice() => Ok(escape(&program.artifact.name)),
            _ if voice.is_empty() => Err("does not speak".to_owned()),
            _ => Err(format!("has no voice '{}'", escape(voice))),
        }
    };
    let found = probe_engine(&settings.tts, &CommandTts::KNOWN, inspect).await;
    check("tts", found, INSTALL_TTS)
}

async fn check_input(settings: &VoiceSettings) -> EngineCheck {
    let inspect = |info: &ServiceInfo| match (&info.satellite, info.mic.first()) {
        (Some(satellite), _) => Ok(format!("satellite {}", escape(&satellite.artifact.name))),
        (None, Some(mic)) => Ok(escape(&mic.artifact.name)),
        (None, None) => Err("has no microphone".to_owned()),
    };
    let found = match settings.only_serves() {
        true => Ok("not used: the gateway only serves others".to_owned()),
        false => probe_engine(&settings.input, &RECORDERS, inspect).await,
    };
    check("input", found, INSTALL_SOUND)
}

async fn check_output(settings: &VoiceSettings) -> EngineCheck {
    let inspect = |info: &ServiceInfo| match info.snd.first() {
        Some(program) => Ok(escape(&program.artifact.name)),
        None => Err("has no loudspeaker".to_owned()),
    };
    let output = settings.output.as_str();
    let is_answered = output.is_empty() && settings.input.contains("://");
    let found = if is_answered {
        Ok("answers go back to where requests come from".to_owned())
    } else if is_wav(output) || (output.starts_with('\'') && output.ends_with(".wav'")) {
        Ok(format!("answers are written to {}", escape(output)))
    } else {
        probe_engine(output, &PlayerProgram::KNOWN, inspect).await
    };
    check("output", found, INSTALL_SOUND)
}

// `value` is an address, a program's name, a command, or empty for the first installed program.
async fn probe_engine(
    value: &str,
    programs: &[&str],
    inspect: impl Fn(&ServiceInfo) -> Result<String, String>,
) -> Result<String, String> {
    match value {
        "" => match programs.iter().find(|name| is_installed(name)) {
            Some(name) => Ok(format!("{name} is installed")),
            None => Err(format!("none of {} is installed", programs.join(", "))),
        },
        "none" => Ok("disabled".to_owned()),
        "-" => Ok("sound comes from stdin".to_owned()),
        address if address.contains("://") => probe_service(address, inspect).await,
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

async fn check_offer(name: &'static str, address: &str) -> Option<EngineCheck> {
    let address = Some(address.trim()).filter(|address| !address.is_empty())?;
    let found = match address.parse::<WyomingAddress>() {
        Err(error) => Err(error.to_string()),
        Ok(address) => match WyomingListener::bind(&address).await {
            Ok(listener) if listener.is_private() => Ok(format!("{address} is free")),
            Ok(_) => Ok(format!(
                "{address} is free; anyone who can reach it can use the service, because Wyoming has no passwords"
            )),
            // A running gateway holds the port, which is fine and not a conflict.
            Err(_) if is_toolgate(&address).await => {
                Ok(format!("Toolgate already offers it at {address}"))
            }
            Err(error) => Err(error.to_string()),
        },
    };
    let todo =
        format!("stop the program that listens there, or choose another address for voice.{name}");
    Some(check(name, found, &todo))
}

async fn is_toolgate(address: &WyomingAddress) -> bool {
    let Ok(info) = describe(address, PROBE_TIMEOUT).await else {
        return false;
    };
    let mut all = info.handle.iter().chain(&info.tts);
    all.any(|program| program.artifact.attribution.name == "Toolgate")
}

/// True if the setting `output` names a WAV file. An output of several words is a command.
pub fn is_wav(output: &str) -> bool {
    let is_one_word = !output.contains(char::is_whitespace) && !output.contains("://");
    is_one_word && output.ends_with(".wav")
}
