//! Metrics of the process, under the names that other Prometheus clients use.

use prometheus_client::registry::Registry;

// Other systems have no `/proc`.
#[cfg(not(target_os = "linux"))]
pub(super) fn registry() -> Registry {
    Registry::default()
}

/// Leaves out values that can't be read.
#[cfg(target_os = "linux")]
pub(super) fn registry() -> Registry {
    use prometheus_client::metrics::counter::ConstCounter;
    use prometheus_client::metrics::gauge::ConstGauge;
    use prometheus_client::registry::Unit;
    use rustix::param::{clock_ticks_per_second, page_size};
    use rustix::process::{Resource, getrlimit};

    let mut registry = Registry::with_prefix("process");
    let gauge = |number: u64| ConstGauge::new(number as i64);
    if let Some(stat) = linux::ProcessStat::read() {
        let ticks = clock_ticks_per_second() as f64;
        let cpu = ConstCounter::new(stat.cpu_ticks as f64 / ticks);
        let help = "Processor time in user and system mode";
        registry.register_with_unit("cpu", help, Unit::Seconds, cpu);
        let mut memory = |name, help, bytes| {
            registry.register_with_unit(name, help, Unit::Bytes, gauge(bytes));
        };
        let resident = stat.resident_pages.saturating_mul(page_size() as u64);
        memory("resident_memory", "Memory that is in RAM", resident);
        memory(
            "virtual_memory",
            "Memory that is reserved",
            stat.virtual_bytes,
        );
        registry.register("threads", "Threads", gauge(stat.threads));
        if let Some(boot) = linux::boot_time() {
            let start = ConstGauge::new(boot as f64 + stat.start_ticks as f64 / ticks);
            let help = "When it was started, in seconds since 1970";
            registry.register_with_unit("start_time", help, Unit::Seconds, start);
        }
    }
    if let Ok(open) = std::fs::read_dir("/proc/self/fd") {
        let open = gauge(open.count() as u64);
        registry.register("open_fds", "Files and sockets that are open", open);
    }
    if let Some(most) = getrlimit(Resource::Nofile).current {
        registry.register("max_fds", "Files and sockets that may be open", gauge(most));
    }
    registry
}

// Reads the files of `/proc` as described in `proc(5)`.
#[cfg(target_os = "linux")]
mod linux {
    use std::fs;

    pub(super) struct ProcessStat {
        pub(super) cpu_ticks: u64,
        pub(super) threads: u64,
        /// Since the machine started.
        pub(super) start_ticks: u64,
        pub(super) virtual_bytes: u64,
        pub(super) resident_pages: u64,
    }

    impl ProcessStat {
        pub(super) fn read() -> Option<Self> {
            Self::parse(&fs::read_to_string("/proc/self/stat").ok()?)
        }

        fn parse(text: &str) -> Option<Self> {
            // The program's name is in brackets, and may itself contain spaces and brackets.
            let (_, rest) = text.rsplit_once(')')?;
            let fields: Vec<&str> = rest.split_whitespace().collect();
            // `proc(5)` counts from 1, and this list begins with its third field.
            let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
            Some(Self {
                cpu_ticks: field(14)? + field(15)?,
                threads: field(20)?,
                start_ticks: field(22)?,
                virtual_bytes: field(23)?,
                resident_pages: field(24)?,
            })
        }
    }

    /// In seconds since 1970.
    pub(super) fn boot_time() -> Option<u64> {
        let text = fs::read_to_string("/proc/stat").ok()?;
        let mut lines = text.lines();
        let boot = lines.find_map(|line| line.strip_prefix("btime "))?;
        boot.trim().parse().ok()
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_name_with_brackets_shifts_no_field() {
            let text = "7 (a) b (c) S 1 7 7 0 -1 4194304 1 0 0 0 30 12 0 0 20 0 5 0 999 4096 3 \
                        18446744073709551615 1";
            let stat = ProcessStat::parse(text).unwrap();
            assert_eq!((stat.cpu_ticks, stat.threads), (42, 5));
            assert_eq!((stat.start_ticks, stat.virtual_bytes), (999, 4096));
            assert_eq!(stat.resident_pages, 3);
            assert!(ProcessStat::read().is_some_and(|stat| stat.resident_pages > 0));
            assert!(boot_time().is_some());
        }
    }
}
