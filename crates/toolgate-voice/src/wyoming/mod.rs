//! Wyoming, the protocol of voice engines.
//!
//! ```text
//!  bytes ──▶ Decoder ──▶ Frame ──▶ Event        sans-IO: `frame`, `event`, `info`
//!  bytes ◀── encode  ◀── Frame ◀── Event
//!            Connection (client), Listener      with a socket: `connection`, `listener`, `server`
//! ```
//!
//! A frame is one line of JSON, `{"type": …, "data_length": …, "payload_length": …}`, then that many bytes of JSON, then that many
//! bytes of sound. The protocol knows no password and no encryption: it belongs on the loopback or into a network that is trusted.
//! Everything that is read is bounded all the same.

mod address;
mod connection;
mod event;
mod frame;
pub(crate) mod info;
mod listener;
mod server;

pub use address::{Address, AddressError};
pub(crate) use connection::{Connection, Receiver, Sender, describe};
pub(crate) use event::{Context, Event, Stage, VoiceChoice};
pub(crate) use frame::{Decoder, Frame, FrameError, encode};
pub(crate) use info::{Artifact, Attribution, HandleProgram, Info, Model, TtsProgram, TtsVoice};
pub(crate) use listener::Listener;
pub use server::BindError;
pub(crate) use server::{Guest, Service};
