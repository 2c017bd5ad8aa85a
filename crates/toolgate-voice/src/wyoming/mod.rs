//! Wyoming, the protocol of voice engines.
//!
//! ```text
//!  bytes ──▶ FrameDecoder ──▶ WyomingFrame ──▶ WyomingEvent    without IO: `frame`, `event`
//!  bytes ◀── encode       ◀── WyomingFrame ◀── WyomingEvent
//!            WyomingConnection, WyomingListener                with
//! a socket: `connection`,                                                              `listener`, `server`
//! ```
//!
//! A frame is a line of JSON, `{"type": …, "data_length": …, "payload_length": …}`, followed by
//! that many bytes of JSON and of sound. The protocol has neither passwords nor encryption, so it
//! belongs on the loopback or a trusted network. All input is bounded nevertheless.

mod address;
mod connection;
mod event;
mod frame;
pub(crate) mod info;
mod listener;
mod server;

pub use address::{WyomingAddress, WyomingAddressError};
pub(crate) use connection::{EventReceiver, EventSender, WyomingConnection, describe};
pub(crate) use event::{HandleContext, PipelineStage, VoiceChoice, WyomingEvent};
pub(crate) use frame::{FrameDecoder, FrameError, WyomingFrame, encode};
pub(crate) use info::{
    ArtifactAttribution, ServiceArtifact, ServiceInfo, ServiceProgram, WyomingModel,
};
pub(crate) use listener::WyomingListener;
pub use server::WyomingBindError;
pub(crate) use server::{WyomingClient, WyomingService};
