//! Where there is no Landlock, only limits hold.

use std::fmt;
use std::io;

use super::grants::Grant;

/// How much of a sandbox this kernel can do: nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelSupport;

/// What this kernel can do.
pub fn kernel_support() -> KernelSupport {
    KernelSupport
}

impl KernelSupport {
    /// What can't be closed here.
    pub fn missing(self) -> Option<&'static str> {
        Some("only Linux can confine servers; here only limits hold")
    }

    /// True if TCP ports can be closed.
    pub fn closes_ports(self) -> bool {
        false
    }

    /// True if files can be closed.
    pub fn closes_files(self) -> bool {
        false
    }
}

impl fmt::Display for KernelSupport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no Landlock")
    }
}

pub(super) fn restrict(_: &[Grant], _: Option<&[u16]>) -> io::Result<()> {
    Ok(())
}
