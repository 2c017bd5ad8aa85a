//! Wyoming, the protocol of voice engines.
//!
//! ```text
//!  bytes ──▶ Decoder ──▶ Frame ──▶ Event        sans-IO: `frame`, `event`, `info`
//!  bytes ◀── encode  ◀── Frame ◀── Event
//!            Connection (client), Server        with a socket: `connection`, `server`
//! ```
//!
//! A frame is one line of JSON, `{"type": …, "data_length": …, "payload_length": …}`, then that many bytes of JSON, then that many
//! bytes of sound. The protocol knows no password and no encryption: it belongs on the loopback or into a network that is trusted.
//! Everything that is read is bounded all the same.

mod address;
mod connection;
mod event;
mod frame;
mod info;
mod listener;
mod server;
mod sound;

pub use address::{Address, AddressError};
pub use connection::{Connection, Receiver, Sender, describe};
pub use event::{Context, Entity, Event, Stage, TimerCommand, VoiceChoice};
pub use frame::{
    Decoder, Frame, FrameError, LONGEST_DATA, LONGEST_HEADER, LONGEST_PAYLOAD, encode,
};
pub use info::{
    Artifact, AsrProgram, Attribution, HandleProgram, Info, IntentProgram, MicProgram, Model,
    Satellite, SndProgram, Speaker, TtsProgram, TtsVoice, WakeModel, WakeProgram,
};
pub use server::{BindError, Guest, Server, Service};
