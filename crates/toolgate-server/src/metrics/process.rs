//! What the process takes of the machine, under the names that Prometheus' own clients use.

use prometheus_client::registry::Registry;

/// Nothing where the system does not tell.
#[cfg(not(target_os = "linux"))]
pub(super) fn figures() -> Registry {
    Registry::default()
}

/// What can't be read is left out.
#[cfg(target_os = "linux")]
pub(super) fn figures() -> Registry {
    use procfs::process::{LimitValue, Process};
    use prometheus_client::metrics::counter::ConstCounter;
    use prometheus_client::metrics::gauge::ConstGauge;
    use prometheus_client::registry::Unit;

    let mut registry = Registry::with_prefix("process");
    let Ok(process) = Process::myself() else {
        return registry;
    };
    let gauge = |number: u64| ConstGauge::new(number as i64);
    if let Ok(stat) = process.stat() {
        let ticks = procfs::ticks_per_second() as f64;
        registry.register_with_unit(
            "cpu",
            "Time on processors, in user and system mode",
            Unit::Seconds,
            ConstCounter::new((stat.utime + stat.stime) as f64 / ticks),
        );
        registry.register_with_unit(
            "resident_memory",
            "Memory that is in RAM",
            Unit::Bytes,
            gauge(stat.rss.saturating_mul(procfs::page_size())),
        );
        registry.register_with_unit(
            "virtual_memory",
            "Memory that is reserved",
            Unit::Bytes,
            gauge(stat.vsize),
        );
        registry.register("threads", "Threads", ConstGauge::new(stat.num_threads));
        if let Ok(boot) = procfs::boot_time_secs() {
            registry.register_with_unit(
                "start_time",
                "When it was started, in seconds since 1970",
                Unit::Seconds,
                ConstGauge::new(boot as f64 + stat.starttime as f64 / ticks),
            );
        }
    }
    if let Ok(open) = process.fd_count() {
        registry.register(
            "open_fds",
            "Files and sockets that are open",
            gauge(open as u64),
        );
    }
    if let Ok(limits) = process.limits()
        && let LimitValue::Value(most) = limits.max_open_files.soft_limit
    {
        registry.register("max_fds", "Files and sockets that may be open", gauge(most));
    }
    registry
}
