//! Replaces the enforcement on systems without Landlock, where only resource limits apply.

use std::fmt;
use std::io;

use super::grants::PathGrant;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelSupport;

pub fn kernel_support() -> KernelSupport {
    KernelSupport
}

impl KernelSupport {
    pub fn missing(self) -> Option<&'static str> {
        Some("only Linux can confine servers; on this system only resource limits apply")
    }

    pub fn can_block_ports(self) -> bool {
        false
    }

    pub fn can_block_files(self) -> bool {
        false
    }
}

impl fmt::Display for KernelSupport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no Landlock")
    }
}

pub(super) fn restrict(_: &[PathGrant], _: Option<&[u16]>) -> io::Result<()> {
    Ok(())
}
