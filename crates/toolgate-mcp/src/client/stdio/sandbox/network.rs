//! Blocks network access by seccomp where Landlock can't, because Landlock handles only TCP.
//!
//! IPv4 and IPv6 sockets are limited to TCP, plus UDP for name lookups if port 53 is
//! allowed. Other ways to create or connect a socket (`io_uring`, TCP Fast Open) would
//! bypass both, so they are blocked.

use std::collections::BTreeMap;
use std::io;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

const DNS: u16 = 53;

pub(super) fn restrict(ports: &[u16]) -> io::Result<()> {
    // The crate doesn't support this processor. Landlock still applies.
    let Ok(arch) = TargetArch::try_from(std::env::consts::ARCH) else {
        return Ok(());
    };
    let program = build_filter(ports.contains(&DNS), arch).map_err(io::Error::other)?;
    seccompiler::apply_filter(&program).map_err(io::Error::other)
}

fn build_filter(allow_dns: bool, arch: TargetArch) -> Result<BpfProgram, seccompiler::Error> {
    let mut rules = BTreeMap::from([
        (libc::SYS_socket, socket_rules(allow_dns)?),
        // Without a condition, every call is blocked.
        (libc::SYS_io_uring_setup, Vec::new()),
    ]);
    // The argument index of each call's flags.
    for (call, flags) in [
        (libc::SYS_sendto, 3),
        (libc::SYS_sendmsg, 2),
        (libc::SYS_sendmmsg, 3),
    ] {
        let fast_open = value(libc::MSG_FASTOPEN);
        let rule = [(flags, SeccompCmpOp::MaskedEq(fast_open), fast_open)];
        rules.insert(call, vec![all_of(rule)?]);
    }
    let denied = SeccompAction::Errno(libc::EACCES.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, denied, arch)?;
    Ok(filter.try_into()?)
}

fn socket_rules(allow_dns: bool) -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    // The bits of `type` that hold the kind; the rest are flags.
    const KIND: u64 = 0xf;
    let families = [
        libc::AF_UNIX,
        libc::AF_NETLINK,
        libc::AF_INET,
        libc::AF_INET6,
    ];
    let mut rules = vec![all_of(
        families.map(|family| (0, SeccompCmpOp::Ne, value(family))),
    )?];
    let tcp = (value(libc::SOCK_STREAM), value(libc::IPPROTO_TCP));
    let udp = (value(libc::SOCK_DGRAM), value(libc::IPPROTO_UDP));
    for family in [libc::AF_INET, libc::AF_INET6].map(value) {
        for kind in 0..=KIND {
            let of_kind = [
                (0, SeccompCmpOp::Eq, family),
                (1, SeccompCmpOp::MaskedEq(KIND), kind),
            ];
            let usual = [tcp, udp].into_iter().find(|usual| usual.0 == kind);
            match usual.filter(|usual| *usual == tcp || allow_dns) {
                // Protocol 0 is the default. Others, such as MPTCP, are unknown to Landlock.
                Some((_, protocol)) => {
                    let others = [0, protocol].map(|protocol| (2, SeccompCmpOp::Ne, protocol));
                    rules.push(all_of(of_kind.into_iter().chain(others))?);
                }
                None => rules.push(all_of(of_kind)?),
            }
        }
    }
    Ok(rules)
}

fn all_of(
    conditions: impl IntoIterator<Item = (u8, SeccompCmpOp, u64)>,
) -> Result<SeccompRule, seccompiler::BackendError> {
    let conditions = conditions.into_iter().map(|(argument, operator, value)| {
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)
    });
    SeccompRule::new(conditions.collect::<Result<_, _>>()?)
}

// The compared kernel constants are never negative.
fn value(number: i32) -> u64 {
    u64::from(number.unsigned_abs())
}
