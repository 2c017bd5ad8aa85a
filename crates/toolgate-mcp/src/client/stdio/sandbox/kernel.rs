//! Enforces a sandbox on Linux: Landlock for files, TCP ports and signals, seccomp
//! for other network access.

use std::fmt;
use std::io;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus,
    NetPort, PathBeneath, PathFd, RestrictionStatus, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetError, Scope,
};

use super::grants::{GrantAccess, PathGrant};
use super::{capabilities, network};

// The Landlock versions that we request. An older kernel enforces what it supports.
const FILES: ABI = ABI::V5;
const NETWORK: ABI = ABI::V4;
const SCOPES: ABI = ABI::V6;

/// Which restrictions this kernel can enforce.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelSupport {
    abi: i32,
}

/// Detects what the kernel supports. Runs on a new thread, because probing confines the
/// thread that does it.
pub fn kernel_support() -> KernelSupport {
    let probe = std::thread::spawn(|| {
        let ruleset = Ruleset::default().handle_access(AccessFs::Refer)?;
        let status = ruleset.create()?.restrict_self()?;
        Ok::<_, RulesetError>(status.landlock)
    });
    let abi = match probe.join() {
        Ok(Ok(LandlockStatus::Available {
            effective_abi,
            kernel_abi,
        })) => kernel_abi.unwrap_or(effective_abi as i32),
        _ => 0,
    };
    KernelSupport { abi }
}

impl KernelSupport {
    /// Says what this kernel can't enforce, and what to do; `None` if it enforces everything.
    pub fn missing(self) -> Option<&'static str> {
        match self.abi {
            0 => Some(
                "this kernel has no Landlock, so only resource limits apply; Linux 5.13 or later has it, if 'landlock' is among the security modules it starts with (lsm=)",
            ),
            1 => Some(
                "this kernel can't allow moving files between folders, nor block ports and signals; Linux 6.12 or later can",
            ),
            2..=3 => Some("this kernel can't block ports and signals; Linux 6.12 or later can"),
            4..=5 => Some("this kernel can't block signals; Linux 6.12 or later can"),
            _ => None,
        }
    }

    pub fn can_block_ports(self) -> bool {
        self.abi >= NETWORK as i32
    }

    pub fn can_block_files(self) -> bool {
        self.abi > 0
    }
}

impl fmt::Display for KernelSupport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.abi {
            0 => f.write_str("no Landlock"),
            abi => write!(f, "Landlock ABI {abi}"),
        }
    }
}

/// Irrevocably drops all rights except these grants. With `ports`, the process may connect to these
/// ports only, and listen on none.
pub(super) fn restrict(grants: &[PathGrant], ports: Option<&[u16]>) -> io::Result<()> {
    capabilities::drop_unneeded();
    landlock(grants, ports).map_err(io::Error::other)?;
    match ports {
        Some(ports) => network::restrict(ports),
        None => Ok(()),
    }
}

fn landlock(
    grants: &[PathGrant],
    ports: Option<&[u16]>,
) -> Result<RestrictionStatus, RulesetError> {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::BestEffort);
    let mut ruleset = ruleset
        .handle_access(AccessFs::from_all(FILES))?
        .scope(Scope::from_all(SCOPES))?;
    if ports.is_some() {
        ruleset = ruleset.handle_access(AccessNet::from_all(NETWORK))?;
    }
    let mut ruleset = ruleset.create()?;
    for grant in grants {
        // A path that no longer exists needs no rule.
        if let Ok(place) = PathFd::new(&grant.path) {
            ruleset = ruleset.add_rule(PathBeneath::new(place, rights(grant)))?;
        }
    }
    for port in ports.unwrap_or_default() {
        ruleset = ruleset.add_rule(NetPort::new(*port, AccessNet::ConnectTcp))?;
    }
    ruleset.restrict_self()
}

fn rights(grant: &PathGrant) -> BitFlags<AccessFs> {
    let rights = match grant.access {
        GrantAccess::Names => AccessFs::ReadDir.into(),
        GrantAccess::Read => AccessFs::from_read(FILES),
        GrantAccess::Write => AccessFs::from_all(FILES),
    };
    match grant.is_folder {
        true => rights,
        false => rights & AccessFs::from_file(FILES),
    }
}
