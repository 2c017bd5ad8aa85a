//! How a turn, or the choice of a model, ended: what a person is told, and the exit code.

use toolgate_models::{ChooseError, ModelError, ModelSettings, Turn, TurnEnd};

use crate::exit::Exit;

/// What a person should know of how a turn ended, and the exit code of that.
pub(crate) fn ending(
    turn: &Turn,
    settings: &ModelSettings,
    streamed: bool,
) -> (Exit, Option<String>) {
    let rounds = settings.max_tool_rounds;
    let note = match turn.end {
        TurnEnd::RoundLimit => Some(format!(
            "the model wanted more than {rounds} rounds of tools (model.maxToolRounds) and answered with what it had"
        )),
        TurnEnd::Repetition => Some(
            "the model asked for the same call again and again, and answered with what it had"
                .to_owned(),
        ),
        TurnEnd::Deadline => Some(
            "there was no time for more tools (model.timeout): the model answered with what it had"
                .to_owned(),
        ),
        TurnEnd::Length => Some(
            "the answer is cut: it reached model.maxTokens, the end of model.contextTokens, or model.timeout"
                .to_owned(),
        ),
        // What was said instead says why.
        TurnEnd::Refusal if turn.answer.trim().is_empty() => {
            Some("the model will not answer this".to_owned())
        }
        _ => None,
    };
    match &turn.error {
        // Where words stream, this sentence was among them.
        Some(_) if streamed => (Exit::Failure, None),
        Some(_) => (Exit::Failure, Some(turn.answer.clone())),
        None if turn.end == TurnEnd::Refusal => (Exit::Failure, note),
        None => (Exit::Success, note),
    }
}

pub(crate) fn exit_of(error: &ChooseError) -> Exit {
    match error {
        ChooseError::Model(ModelError::Unreachable { .. } | ModelError::TimedOut { .. }) => {
            Exit::Failure
        }
        _ => Exit::Usage,
    }
}
