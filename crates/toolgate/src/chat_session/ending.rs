//! Exit codes and closing notes for turns and for the choice of a model.

use toolgate_models::{ModelError, ModelSelectionError, ModelSettings, TurnEnd, TurnRecord};

use crate::exit::Exit;

pub(crate) fn turn_ending(
    turn: &TurnRecord,
    settings: &ModelSettings,
    streamed: bool,
) -> (Exit, Option<String>) {
    let rounds = settings.max_tool_rounds;
    let note = match turn.end {
        TurnEnd::RoundLimit => Some(format!(
            "the model wanted more than {rounds} rounds of tools (model.maxToolRounds) and answered with what it had"
        )),
        TurnEnd::Repetition => Some(
            "the model kept repeating the same call, and then answered with what it had"
                .to_owned(),
        ),
        TurnEnd::Deadline => Some(
            "there was no time for more tools (model.timeout), so the model answered with what it had"
                .to_owned(),
        ),
        TurnEnd::Length => Some(
            "the answer is cut off: it reached model.maxTokens, model.contextTokens or model.timeout"
                .to_owned(),
        ),
        // Otherwise the answer itself says why.
        TurnEnd::Refusal if turn.answer.trim().is_empty() => {
            Some("the model declined to answer".to_owned())
        }
        _ => None,
    };
    match &turn.error {
        // A streamed answer has already shown this sentence.
        Some(_) if streamed => (Exit::Failure, None),
        Some(_) => (Exit::Failure, Some(turn.answer.clone())),
        None if turn.end == TurnEnd::Refusal => (Exit::Failure, note),
        None => (Exit::Success, note),
    }
}

pub(crate) fn exit_for(error: &ModelSelectionError) -> Exit {
    match error {
        ModelSelectionError::Model(
            ModelError::Unreachable { .. } | ModelError::TimedOut { .. },
        ) => Exit::Failure,
        _ => Exit::Usage,
    }
}
