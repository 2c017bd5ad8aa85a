//! Whole conversations over real sockets with strict doubles of the providers. `fakellm` refuses
//! every request that the real ones would refuse, so a passing test has sent only what they accept.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod anthropic;
mod checklist; // of pitfalls: arguments and ids
mod checklist_names;
mod checklist_rounds;
mod faults; // of the way to a model: E1
mod faults_calls; // E2 to E5, D3
mod gemini;
mod ollama;
mod openai;
mod others;
mod recorded_tools;
mod test_conversation;
