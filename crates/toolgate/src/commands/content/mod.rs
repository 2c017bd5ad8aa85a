//! `toolgate resources`, `read`, `prompts` and `prompt`: what servers offer besides tools. Reading
//! a resource and getting a prompt are calls, so `request` runs them like `toolgate call` does.

mod arguments;
mod list;
mod prompt;
mod read;
mod request;
mod rows;

pub(super) use arguments::prompt_arguments;
pub(crate) use list::{list_prompts, list_resources};
pub(super) use list::{offered_prompts, offered_resources};
pub(crate) use prompt::run as prompt;
pub(crate) use read::run as read;
