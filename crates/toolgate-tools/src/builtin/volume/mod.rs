//! `volume`: the loudness of the machine's speakers, through the mixer program it has.
//!
//! `wpctl`, `pactl` and `amixer` each know the words of their program; `programs` finds and runs it.

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

pub(super) fn builtin() -> Builtin {
    let mut annotations = Annotations::default();
    annotations.read_only = Some(false);
    annotations.idempotent = Some(false);
    annotations.destructive = Some(false);
    Builtin {
        name: "volume",
        description: "Reads or changes the volume of this machine's speakers, in percent from 0 to 100. Use `set` for an exact \
                      level, `up` and `down` for louder and quieter, `mute` for silence and `unmute` to bring the sound back.",
        parameters: parameters(),
        annotations,
        handler: Arc::new(Volume::new(Programs::default())),
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
        if asked.action == Action::Set && asked.level.is_none() {
            return Err(ToolError::invalid(
                "level",
                "is needed to set the volume: a percentage from 0 to 100",
            ));
        }
        let mut before_mute = self.before_mute.lock().await;
        let (mixer, sink) = mixer::find(&self.programs, tool).await?;
        let state = State::of(&sink, *before_mute);
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
        Ok(State::of(&mixer.look(tool).await?, *before_mute).report())
    }
}

/// What the speakers do, or will do once they are no longer muted.
#[derive(Debug, Clone, Copy, PartialEq)]
struct State {
    level: u32,
    muted: bool,
}

impl State {
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
