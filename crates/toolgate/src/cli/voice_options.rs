//! The options of `toolgate voice`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use toolgate_voice::wyoming::WyomingAddress;

use super::ModelOptions;

#[derive(Debug, Args)]
pub(crate) struct VoiceOptions {
    /// The microphone: - for raw 16-bit mono PCM on stdin, a program such as arecord, a whole
    /// command, the address of a Wyoming microphone or satellite, or none [default: the
    /// configuration's, else the first program found; none if --handle or --serve-tts is given
    /// without wake word or key]
    #[arg(
        long,
        value_name = "SOURCE",
        allow_hyphen_values = true,
        conflicts_with = "wav",
        help_heading = INPUT
    )]
    pub(crate) mic: Option<String>,
    /// Samples per second on stdin [default: 16000]
    #[arg(long, value_name = "HZ", requires = "mic", value_parser = clap::value_parser!(u32).range(8000..=192_000), help_heading = INPUT)]
    pub(crate) rate: Option<u32>,
    /// Answer the requests in these WAV files, then exit
    #[arg(long, value_name = "FILE", num_args = 1.., help_heading = INPUT)]
    pub(crate) wav: Vec<PathBuf>,
    /// The Wyoming speech-to-text service [default: the configuration's, else
    /// tcp://127.0.0.1:10300]
    #[arg(long, value_name = "ADDRESS", value_parser = wyoming, help_heading = INPUT)]
    pub(crate) asr: Option<String>,
    /// The Wyoming wake-word service, or none to answer every request
    #[arg(long, value_name = "ADDRESS", value_parser = wyoming_or_none, help_heading = INPUT)]
    pub(crate) wake: Option<String>,
    /// A wake word to react to, such as hey_jarvis; can be repeated [default: the configuration's]
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new(), conflicts_with = "push_to_talk", help_heading = INPUT)]
    pub(crate) wake_word: Vec<String>,
    /// Listen only after Enter is pressed; the same key stops an answer
    #[arg(long, conflicts_with_all = ["wake", "wav"], help_heading = INPUT)]
    pub(crate) push_to_talk: bool,
    /// The text-to-speech engine: espeak-ng, piper, flite, say, a whole command, a Wyoming address,
    /// or none [default: the configuration's, else the first program found]
    #[arg(long, value_name = "ENGINE", value_parser = NonEmptyStringValueParser::new(), help_heading = OUTPUT)]
    pub(crate) tts: Option<String>,
    /// The loudspeaker: a file that ends in .wav, a program such as aplay, a whole command,
    /// a Wyoming address, or none [default: the configuration's, else the satellite, else
    /// the first program found]
    #[arg(long, value_name = "OUTPUT", value_parser = NonEmptyStringValueParser::new(), help_heading = OUTPUT)]
    pub(crate) out: Option<String>,
    /// Act as a conversation agent for Home Assistant at this address; anyone who can reach it
    /// may use the tools
    #[arg(long, value_name = "ADDRESS", value_parser = wyoming, help_heading = SERVICES)]
    pub(crate) handle: Option<String>,
    /// Offer text-to-speech at this address as a Wyoming service
    #[arg(long, value_name = "ADDRESS", value_parser = wyoming, help_heading = SERVICES)]
    pub(crate) serve_tts: Option<String>,
    /// Exit after one request
    #[arg(long)]
    pub(crate) once: bool,
    /// Print each request and its outcome as a JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) model: ModelOptions,
}

const INPUT: &str = "Input";
const OUTPUT: &str = "Output";
const SERVICES: &str = "Services";

fn wyoming(text: &str) -> Result<String, String> {
    let address: WyomingAddress = text.parse().map_err(|error| format!("{error}"))?;
    Ok(address.to_string())
}

fn wyoming_or_none(text: &str) -> Result<String, String> {
    match text {
        "none" => Ok(String::new()),
        _ => wyoming(text),
    }
}
