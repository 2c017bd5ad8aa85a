//! `volume`: the loudness of the machine's speakers, through the mixer program it has, or of a voice that was put in their place.
//!
//! `wpctl`, `pactl` and `amixer` each know the words of their program; `programs` finds and runs it.

use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use toolgate_core::{
    Annotations, CallContext, Handler, ToolError, ToolFuture, ToolOutput, ValidArguments,
};

use self::mixer::Sink;
use self::programs::Programs;
use super::Builtin;

mod amixer;
mod mixer;
mod pactl;
mod programs;
mod wpctl;

const LOUDEST: u32 = 100;

/// Something that sounds and has a volume of its own, in place of the machine's speakers.
///
/// ```
/// use std::sync::Arc;
///
/// use parking_lot::Mutex;
/// use toolgate_tools::builtin::{BuiltinSettings, Sounding, VolumeState};
///
/// #[derive(Debug)]
/// struct Voice(Mutex<VolumeState>);
///
/// impl Sounding for Voice {
///     fn volume(&self) -> VolumeState {
///         *self.0.lock()
///     }
///     fn set_volume(&self, state: VolumeState) {
///         *self.0.lock() = state;
///     }
/// }
///
/// let mut settings = BuiltinSettings::default();
/// settings.sounding = Some(Arc::new(Voice(Mutex::new(VolumeState { level: 80, muted: false }))));
/// ```
pub trait Sounding: fmt::Debug + Send + Sync {
    /// How loud it is.
    fn volume(&self) -> VolumeState;

    /// Makes it so.
    fn set_volume(&self, state: VolumeState);

    /// Why nothing can be heard however loud it is, in a sentence for a person: there is no volume to tell or to change then.
    fn unheard(&self) -> Option<String> {
        None
    }
}

/// How loud something is, or will be once it is no longer muted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VolumeState {
    /// In percent; kept while muted.
    pub level: u32,
    /// Whether it is silent, whatever the level.
    pub muted: bool,
}

/// Governs what sounds here, or the machine's speakers if nothing of its own does.
pub(super) fn builtin(sounding: Option<&Arc<dyn Sounding>>) -> Builtin {
    let mut annotations = Annotations::default();
    annotations.read_only = Some(false);
    annotations.idempotent = Some(false);
    annotations.destructive = Some(false);
    let (description, handler): (_, Arc<dyn Handler>) = match sounding {
        Some(sounding) => (
            "Reads or changes the volume of the voice that speaks your answers, in percent from 0 to 100. Use `set` for an exact \
             level, `up` and `down` for louder and quieter, `mute` for silence and `unmute` to bring the voice back.",
            Arc::new(Own {
                sounding: sounding.clone(),
                one_at_a_time: parking_lot::Mutex::new(()),
            }),
        ),
        None => (
            "Reads or changes the volume of this machine's speakers, in percent from 0 to 100. Use `set` for an exact level, `up` \
             and `down` for louder and quieter, `mute` for silence and `unmute` to bring the sound back.",
            Arc::new(Volume::new(Programs::default())),
        ),
    };
    Builtin {
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
                "type": "integer",
                "minimum": 1,
                "maximum": 100,
                "default": 10,
                "description": "For up and down: how many percent"
            }
        },
        "required": ["action"]
    })
}

#[derive(Debug, Deserialize)]
struct Asked {
    action: Action,
    level: Option<u32>,
    #[serde(default = "ten")]
    step: u32,
}

fn ten() -> u32 {
    10
}

impl Asked {
    fn check(&self) -> Result<(), ToolError> {
        if self.action == Action::Set && self.level.is_none() {
            let text = "is needed to set the volume: a percentage from 0 to 100";
            return Err(ToolError::invalid("level", text));
        }
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    Get,
    Set,
    Up,
    Down,
    Mute,
    Unmute,
}

struct Volume {
    programs: Programs,
    /// The level to bring back where the mixer has no switch for silence. Locked during a whole call, so that no other call
    /// comes between reading, changing and reading again.
    before_mute: Mutex<Option<u32>>,
}

impl Handler for Volume {
    fn call<'a>(&'a self, arguments: ValidArguments, context: &'a CallContext) -> ToolFuture<'a> {
        Box::pin(async move {
            self.answer(&arguments.parse()?, context.tool_name())
                .await
                .map(ToolOutput::json)
        })
    }
}

impl Volume {
    fn new(programs: Programs) -> Self {
        Self {
            programs,
            before_mute: Mutex::new(None),
        }
    }

    async fn answer(&self, asked: &Asked, tool: &str) -> Result<Value, ToolError> {
        asked.check()?;
        let mut before_mute = self.before_mute.lock().await;
        let (mixer, sink) = mixer::find(&self.programs, tool).await?;
        let state = VolumeState::of(&sink, *before_mute);
        let wanted = state.after(asked);
        if wanted == state {
            return Ok(state.report());
        }
        if sink.muted.is_some() {
            // The level first: what was silent must not come back louder than asked.
            if wanted.level != state.level {
                mixer.set(wanted.level, tool).await?;
            }
            if wanted.muted != state.muted {
                mixer.mute(wanted.muted, tool).await?;
            }
        } else if wanted.muted {
            // Remembered before and forgotten after the change: a call that is cut off in between loses nothing.
            *before_mute = Some(wanted.level);
            mixer.set(0, tool).await?;
        } else {
            mixer.set(wanted.level, tool).await?;
            *before_mute = None;
        }
        Ok(VolumeState::of(&mixer.look(tool).await?, *before_mute).report())
    }
}

struct Own {
    sounding: Arc<dyn Sounding>,
    /// No other call comes between reading and changing.
    one_at_a_time: parking_lot::Mutex<()>,
}

impl Handler for Own {
    fn call<'a>(&'a self, arguments: ValidArguments, _context: &'a CallContext) -> ToolFuture<'a> {
        let answer = arguments.parse().and_then(|asked| self.answer(&asked));
        Box::pin(async { answer.map(ToolOutput::json) })
    }
}

impl Own {
    fn answer(&self, asked: &Asked) -> Result<Value, ToolError> {
        asked.check()?;
        if let Some(why) = self.sounding.unheard() {
            return Err(ToolError::failed(why));
        }
        let _one_at_a_time = self.one_at_a_time.lock();
        let state = self.sounding.volume();
        let wanted = state.after(asked);
        if wanted != state {
            self.sounding.set_volume(wanted);
        }
        Ok(self.sounding.volume().report())
    }
}

impl VolumeState {
    fn of(sink: &Sink, before_mute: Option<u32>) -> Self {
        match (sink.muted, before_mute) {
            (Some(muted), _) => Self {
                level: sink.level,
                muted,
            },
            (None, Some(level)) if sink.level == 0 => Self { level, muted: true },
            (None, _) => Self {
                level: sink.level,
                muted: false,
            },
        }
    }

    fn after(self, asked: &Asked) -> Self {
        let heard = |level: u32| Self {
            level: level.min(LOUDEST),
            muted: false,
        };
        match (asked.action, &asked.level) {
            (Action::Set, Some(level)) => heard(*level),
            (Action::Up, _) => heard(self.level.saturating_add(asked.step)),
            (Action::Down, _) if !self.muted => heard(self.level.saturating_sub(asked.step)),
            (Action::Mute, _) => Self {
                muted: true,
                ..self
            },
            (Action::Unmute, _) => Self {
                muted: false,
                ..self
            },
            // Quieter than silence is silence.
            (Action::Get | Action::Set | Action::Down, _) => self,
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
