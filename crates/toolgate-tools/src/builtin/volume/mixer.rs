//! What mixer programs have in common, and which of them works here.

use std::path::PathBuf;

use toolgate_core::ToolError;

use super::programs::Programs;
use super::{amixer, pactl, wpctl};

pub(super) struct Language {
    pub(super) program: &'static str,
    /// Commands whose outputs, one after the other, tell the state of the speakers.
    pub(super) look: &'static [&'static [&'static str]],
    /// Nothing for any output but the expected one.
    pub(super) read: fn(&str) -> Option<Sink>,
    /// A level follows, with `%`: a bare number would be a fraction to `wpctl`, where 1 is full volume.
    pub(super) set: &'static [&'static str],
    /// One of the words follows.
    pub(super) mute: &'static [&'static str],
    /// To be silent, and not to be.
    pub(super) mute_words: (&'static str, &'static str),
}

/// The most modern first: where several are installed, the older ones are often emulated by the newer.
const LANGUAGES: [Language; 3] = [wpctl::LANGUAGE, pactl::LANGUAGE, amixer::LANGUAGE];

/// The speakers as the mixer has them.
#[derive(Debug, PartialEq)]
pub(super) struct Sink {
    /// In percent; kept while muted, and above 100 if something else amplifies.
    pub(super) level: u32,
    /// Nothing if there is no switch for silence.
    pub(super) muted: Option<bool>,
}

pub(super) struct Mixer<'a> {
    language: &'static Language,
    path: PathBuf,
    programs: &'a Programs,
}

/// The first mixer that can tell the state of the speakers, and that state. Looked for anew on every call: sound servers come
/// and go, and the question has to be asked anyway.
pub(super) async fn find<'a>(
    programs: &'a Programs,
    tool: &str,
) -> Result<(Mixer<'a>, Sink), ToolError> {
    let mut problems = Vec::new();
    for language in &LANGUAGES {
        let Some(path) = programs.find(language.program) else {
            continue;
        };
        let mixer = Mixer {
            language,
            path,
            programs,
        };
        match mixer.read().await {
            Ok(sink) => return Ok((mixer, sink)),
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() {
        let reason = "this machine has no program to set the volume; install wireplumber (wpctl), pulseaudio-utils (pactl) or \
                      alsa-utils (amixer)";
        return Err(ToolError::unavailable(tool, reason));
    }
    let reason = "no speakers were found; is a sound server running, and an output connected?";
    Err(ToolError::unavailable(tool, reason).with_details(problems.join("\n")))
}

impl Mixer<'_> {
    pub(super) async fn look(&self, tool: &str) -> Result<Sink, ToolError> {
        self.read().await.map_err(|problem| gone(tool, problem))
    }

    pub(super) async fn set(&self, level: u32, tool: &str) -> Result<(), ToolError> {
        let level = format!("{level}%");
        self.order(self.language.set, &level, tool).await
    }

    pub(super) async fn mute(&self, muted: bool, tool: &str) -> Result<(), ToolError> {
        let (on, off) = self.language.mute_words;
        let word = if muted { on } else { off };
        self.order(self.language.mute, word, tool).await
    }

    async fn order(&self, command: &[&str], value: &str, tool: &str) -> Result<(), ToolError> {
        self.programs
            .run(&self.path, &[command, &[value]].concat())
            .await
            .map(drop)
            .map_err(|problem| gone(tool, self.name(&problem)))
    }

    async fn read(&self) -> Result<Sink, String> {
        let mut output = String::new();
        for arguments in self.language.look {
            output += &self
                .programs
                .run(&self.path, arguments)
                .await
                .map_err(|problem| self.name(&problem))?;
        }
        (self.language.read)(&output)
            .ok_or_else(|| self.name(&format!("unexpected output: {}", output.trim())))
    }

    fn name(&self, problem: &str) -> String {
        format!("{}: {problem}", self.language.program)
    }
}

fn gone(tool: &str, problem: String) -> ToolError {
    ToolError::unavailable(tool, "the speakers did not take the change; try again")
        .with_details(problem)
}
