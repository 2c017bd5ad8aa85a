//! Whole conversations over real sockets with strict doubles of the providers: `fakellm` refuses every request the real ones
//! would refuse, so a test that passes has sent only what they take.
#![expect(clippy::unwrap_used, reason = "a test that can not go on says where")]

mod anthropic;
mod checklist; // of pitfalls: arguments and ids
mod checklist_names;
mod checklist_rounds;
mod faults; // of the way to a model: E1
mod faults_calls; // E2 to E5, D3
mod gemini;
mod house;
mod ollama;
mod openai;
mod others;
mod talk;
