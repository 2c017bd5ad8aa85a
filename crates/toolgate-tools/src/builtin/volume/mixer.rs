//! [`SystemMixer`]: runs the first mixer program that works on this machine.

use std::path::PathBuf;

use toolgate_core::ToolError;

use super::program_runner::ProgramRunner;
use super::{amixer, pactl, wpctl};

pub(super) struct MixerCommands {
    pub(super) program: &'static str,
    /// Commands whose concatenated output contains the state of the speakers.
    pub(super) state: &'static [&'static [&'static str]],
    // Strict: unexpected output must not be mistaken for a volume.
    pub(super) parse_state: fn(&str) -> Option<SinkState>,
    // Followed by a level with `%`, because `wpctl` takes a number without it as a fraction: 1 is
    // full volume.
    pub(super) set: &'static [&'static str],
    /// Followed by one of `mute_words`.
    pub(super) mute: &'static [&'static str],
    /// The words to mute and to unmute.
    pub(super) mute_words: (&'static str, &'static str),
}

// The most modern one first, because newer ones often emulate older ones.
const MIXERS: [MixerCommands; 3] = [wpctl::COMMANDS, pactl::COMMANDS, amixer::COMMANDS];

#[derive(Debug, PartialEq)]
pub(super) struct SinkState {
    /// In percent. Kept while muted; above 100 if another program amplifies the sound.
    pub(super) level: u32,
    /// `None` if the mixer has no mute switch.
    pub(super) muted: Option<bool>,
}

pub(super) struct SystemMixer<'a> {
    commands: &'static MixerCommands,
    path: PathBuf,
    programs: &'a ProgramRunner,
}

// Searches again for every call, because sound servers come and go, and the state has to be read
// anyway.
pub(super) async fn find<'a>(
    programs: &'a ProgramRunner,
    tool: &str,
) -> Result<(SystemMixer<'a>, SinkState), ToolError> {
    let mut problems = Vec::new();
    for commands in &MIXERS {
        let Some(path) = programs.find(commands.program) else {
            continue;
        };
        let mixer = SystemMixer {
            commands,
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

impl SystemMixer<'_> {
    pub(super) async fn read_state(&self, tool: &str) -> Result<SinkState, ToolError> {
        self.read()
            .await
            .map_err(|problem| mixer_error(tool, problem))
    }

    pub(super) async fn set(&self, level: u32, tool: &str) -> Result<(), ToolError> {
        let level = format!("{level}%");
        self.run_command(self.commands.set, &level, tool).await
    }

    pub(super) async fn set_muted(&self, muted: bool, tool: &str) -> Result<(), ToolError> {
        let (on, off) = self.commands.mute_words;
        let word = if muted { on } else { off };
        self.run_command(self.commands.mute, word, tool).await
    }

    async fn run_command(
        &self,
        command: &[&str],
        value: &str,
        tool: &str,
    ) -> Result<(), ToolError> {
        self.programs
            .run(&self.path, &[command, &[value]].concat())
            .await
            .map(drop)
            .map_err(|problem| mixer_error(tool, self.with_program_name(&problem)))
    }

    async fn read(&self) -> Result<SinkState, String> {
        let mut output = String::new();
        for arguments in self.commands.state {
            output += &self
                .programs
                .run(&self.path, arguments)
                .await
                .map_err(|problem| self.with_program_name(&problem))?;
        }
        (self.commands.parse_state)(&output)
            .ok_or_else(|| self.with_program_name(&format!("unexpected output: {}", output.trim())))
    }

    fn with_program_name(&self, problem: &str) -> String {
        format!("{}: {problem}", self.commands.program)
    }
}

fn mixer_error(tool: &str, problem: String) -> ToolError {
    ToolError::unavailable(tool, "the volume could not be changed; try again").with_details(problem)
}
