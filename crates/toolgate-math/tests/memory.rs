//! Memory stays below 32 MiB, even with ten times the time limit. Needs its own process, because it
//! measures the process' peak.
#![cfg(target_os = "linux")]
#![expect(clippy::expect_used, reason = "a test that cannot continue says where")]

use std::time::Duration;

use toolgate_math::{Budget, evaluate};

/// The peak of the process' resident memory, in KiB.
fn peak_memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("the status of this process");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .expect("a peak of the resident memory");
    let number = line.trim().trim_end_matches(" kB");
    number.parse().expect("a number of KiB")
}

#[test]
fn memory_stays_below_32_mib() {
    let budget = Budget {
        time: Duration::from_millis(300),
        ..Budget::default()
    };
    let long_text = "a=\"aaaaaaaaaaaaaaaa\";".to_owned() + &"a=concat(a,a);".repeat(11);
    let many_parameters: Vec<String> = (0..1000).map(|i| format!("a{i}")).collect();
    let expressions = [
        "zeros(199000)".to_owned(),
        "zeros(99000, 2)".to_owned(),
        "a = 1:2000; map(1:3000, f(x) = concat(a)); 1".to_owned(),
        "a = 1:2000; map(1:3000, f(x) = squeeze(a)); 1".to_owned(),
        "a = 1:60000; b = [a, a]; matrixFromRows(".to_owned() + &"a, ".repeat(2000) + "a)",
        "o = {a: 1, b: 2}; map(zeros(60000), f(x) = o)".to_owned(),
        "o = {a: 1}; a = map(zeros(90), f(x) = o); map(zeros(2000), f(x) = a)".to_owned(),
        "a = zeros(9000); map(zeros(60), f(x) = index(a, a, a))".to_owned(),
        "bignumber(0):bignumber(199990)".to_owned(),
        "a = bignumber(1) / 3; map(zeros(60000), f(x) = a + 1)".to_owned(),
        "map(zeros(60000), f(x) = 1 m * kg * s * A)".to_owned(),
        "splitUnit(1 m, map(zeros(90000), f(x) = \"m\"))".to_owned(),
        "map(zeros(60000), f(x) = (g(".to_owned() + &many_parameters.join(",") + ") = 1))",
        long_text.clone() + "map(zeros(60000), f(x) = print(a, [1]))",
        long_text + "map(zeros(60000), f(x) = a)",
    ];
    let before = peak_memory();
    for expression in expressions {
        if let Ok(answer) = evaluate(&expression, &budget) {
            let _text = answer.to_string();
            let _json = answer.to_json();
        }
        let grown = peak_memory() - before;
        let shown: String = expression.chars().take(80).collect();
        assert!(grown < 32 * 1024, "{grown} KiB after {shown}");
    }
}
