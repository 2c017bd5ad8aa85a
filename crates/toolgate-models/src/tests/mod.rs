//! What the tests of several modules share.

pub(crate) mod loopback;
pub(crate) mod samples;
