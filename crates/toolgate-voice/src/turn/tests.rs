//! Whole turns, from an utterance to its spoken answer, with scripted engines and models.

mod answers;

mod barge_in;
mod consent;
#[cfg(target_os = "linux")]
mod endurance;
mod engines;
mod fillers;
#[path = "../../examples/measure/mod.rs"]
mod measure;
mod names;
mod queue;
mod starting;
mod support;
mod voice_stages;
mod written_requests;
