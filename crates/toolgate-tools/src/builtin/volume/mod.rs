//! `volume`: controls the volume of the machine's speakers with a mixer program, or that of
//! the program's own voice.
//!
//! `wpctl`, `pactl` and `amixer` each know the commands of their program; `program_runner`
//! finds and runs it.

use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use toolgate_core::{
    Annotations, CallContext, Handler, ToolError, ToolFuture, ToolOutput, ValidArguments,
};

use self::mixer::SinkState;
use self::program_runner::ProgramRunner;
use super::BuiltinTool;

mod amixer;
mod mixer;
mod pactl;
mod program_runner;
mod wpctl;

const MAX_LEVEL: u32 = 100;

/// Something with a volume of its own, such as a voice. The `volume` tool controls it instead
/// of the machine's speakers.
pub trait VolumeControl: fmt::Debug + Send + Sync {
    fn volume(&self) -> VolumeState;

    fn set_volume(&self, state: VolumeState);

    /// Why nothing can be heard at any volume, as a sentence for a person. The tool then fails with
    /// this sentence instead of reading or changing the volume.
    fn inaudible_reason(&self) -> Option<String> {
        None
    }
}

/// The level of a [`VolumeControl`], and whether it is muted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VolumeState {
    /// In percent, from 0 to 100. Kept while muted.
    pub level: u32,
    pub muted: bool,
}

pub(super) fn builtin(control: Option<&Arc<dyn VolumeControl>>) -> BuiltinTool {
    let mut annotations = Annotations::default();
    annotations.read_only = Some(false);
    annotations.idempotent = Some(false);
    annotations.destructive = Some(false);
    let (description, handler): (_, Arc<dyn Handler>) = match control {
        Some(control) => (
            "Reads or changes the volume of the voice that speaks your answers, in percent from 0 to 100. Use `set` for an exact \
             level, `up` and `down` for louder and quieter, `mute` for silence and `unmute` to bring the voice back.",
            Arc::new(CustomVolumeHandler {
                control: control.clone(),
                lock: parking_lot::Mutex::new(()),
            }),
        ),
        None => (
            "Reads or changes the volume of this machine's speakers, in percent from 0 to 100. Use `set` for an exact level, `up` \
             and `down` for louder and quieter, `mute` for silence and `unmute` to bring the sound back.",
            Arc::new(SpeakerVolumeHandler::new(ProgramRunner::default())),
        ),
    };
    BuiltinTool {
        name: "volume",
        description,
        parameters: parameters(),
        annotations,
        handler,
    }
}

fn parameters() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "action": { "type": "string", "enum": ["get", "set", "up", "down", "mute", "unmute"], "description": "What to do" },
            "level": { "type": "integer", "minimum": 0, "maximum": 100, "description": "For set: the volume in percent; 1 is 1 %" },
            "step": {
                "type": "integer", "minimum": 1, "maximum": 100, "default": 10,
                "description": "For up and down: how many percent"
            }
        },
        "required": ["action"]
    })
}

#[derive(Debug, Deserialize)]
struct VolumeArguments {
    action: VolumeAction,
    level: Option<u32>,
    #[serde(default = "default_step")]
    step: u32,
}

fn default_step() -> u32 {
    10
}

impl VolumeArguments {
    fn check(&self) -> Result<(), ToolError> {
        if self.action == VolumeAction::Set && self.level.is_none() {
            let text = "is needed to set the volume: a percentage from 0 to 100";
            return Err(ToolError::invalid("level", text));
        }
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum VolumeAction {
    Get,
    Set,
    Up,
    Down,
    Mute,
    Unmute,
}

struct SpeakerVolumeHandler {
    programs: ProgramRunner,
    // The level to restore on mixers without a mute switch. Locked during a whole call, so that
    // concurrent calls don't lose each other's changes.
    before_mute: Mutex<Option<u32>>,
}

impl Handler for SpeakerVolumeHandler {
    fn call<'a>(&'a self, arguments: ValidArguments, context: &'a CallContext) -> ToolFuture<'a> {
        Box::pin(async move {
            self.answer(&arguments.parse()?, context.tool_name())
                .await
                .map(ToolOutput::json)
        })
    }
}

impl SpeakerVolumeHandler {
    fn new(programs: ProgramRunner) -> Self {
        Self {
            programs,
            before_mute: Mutex::new(None),
        }
    }

    async fn answer(&self, arguments: &VolumeArguments, tool: &str) -> Result<Value, ToolError> {
        arguments.check()?;
        let mut before_mute = self.before_mute.lock().await;
        let (mixer, sink) = mixer::find(&self.programs, tool).await?;
        let state = VolumeState::from_sink(&sink, *before_mute);
        let wanted = state.apply(arguments);
        if wanted == state {
            return Ok(state.report());
        }
        if sink.muted.is_some() {
            // The level first, so that unmuting is never louder than requested.
            if wanted.level != state.level {
                mixer.set(wanted.level, tool).await?;
            }
            if wanted.muted != state.muted {
                mixer.set_muted(wanted.muted, tool).await?;
            }
        } else if wanted.muted {
            // Stored before the change and cleared after it, so that a call that is cancelled in
            // between doesn't lose the level.
            *before_mute = Some(wanted.level);
            mixer.set(0, tool).await?;
        } else {
            mixer.set(wanted.level, tool).await?;
            *before_mute = None;
        }
        // Reports what the mixer says now, rather than the request.
        Ok(VolumeState::from_sink(&mixer.read_state(tool).await?, *before_mute).report())
    }
}

struct CustomVolumeHandler {
    control: Arc<dyn VolumeControl>,
    // Locked while the volume is read and changed, so that no change is lost.
    lock: parking_lot::Mutex<()>,
}

impl Handler for CustomVolumeHandler {
    fn call<'a>(&'a self, arguments: ValidArguments, _context: &'a CallContext) -> ToolFuture<'a> {
        let answer = arguments
            .parse()
            .and_then(|arguments| self.answer(&arguments));
        Box::pin(async { answer.map(ToolOutput::json) })
    }
}

impl CustomVolumeHandler {
    fn answer(&self, arguments: &VolumeArguments) -> Result<Value, ToolError> {
        arguments.check()?;
        if let Some(why) = self.control.inaudible_reason() {
            return Err(ToolError::failed(why));
        }
        let _guard = self.lock.lock();
        let state = self.control.volume();
        let wanted = state.apply(arguments);
        if wanted != state {
            self.control.set_volume(wanted);
        }
        Ok(self.control.volume().report())
    }
}

impl VolumeState {
    fn from_sink(sink: &SinkState, before_mute: Option<u32>) -> Self {
        match (sink.muted, before_mute) {
            (None, Some(level)) if sink.level == 0 => Self { level, muted: true },
            (muted, _) => Self {
                level: sink.level,
                muted: muted.unwrap_or(false),
            },
        }
    }

    fn apply(self, arguments: &VolumeArguments) -> Self {
        let audible = |level: u32| Self {
            level: level.min(MAX_LEVEL),
            muted: false,
        };
        match (arguments.action, &arguments.level) {
            (VolumeAction::Set, Some(level)) => audible(*level),
            (VolumeAction::Up, _) => audible(self.level.saturating_add(arguments.step)),
            (VolumeAction::Down, _) if !self.muted => {
                audible(self.level.saturating_sub(arguments.step))
            }
            (VolumeAction::Mute, _) => Self {
                muted: true,
                ..self
            },
            (VolumeAction::Unmute, _) => Self {
                muted: false,
                ..self
            },
            // Lowering the volume while muted changes nothing.
            (VolumeAction::Get | VolumeAction::Set | VolumeAction::Down, _) => self,
        }
    }

    fn report(self) -> Value {
        let level = self.level;
        if self.muted {
            let sentence = format!("The sound is muted; unmuting brings it back to {level} %.");
            return json!({ "sentence": sentence, "level": 0, "muted": true, "level_when_unmuted": level });
        }
        json!({ "sentence": format!("The volume is {level} %."), "level": level, "muted": false })
    }
}

#[cfg(test)]
mod tests;
