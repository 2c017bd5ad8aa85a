#!/usr/bin/env bash
# Runs the tests. `./test.sh --help` says what each command does.
set -euo pipefail
cd "$(dirname "$0")"

# Debian puts mosquitto where only root looks.
export PATH=$PATH:/usr/sbin
cache=${TOOLGATE_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/toolgate-tests}
skipped=()
step="starting"
started=0
# How to run the skipped tests, if a longer run would help.
advice=

source scripts/third-parties.sh
source scripts/soak.sh
source scripts/bench.sh

usage() {
    cat <<'END'
Usage: ./test.sh [COMMAND]

  (none)   everything: installs what is missing, then formatting, lints, tests, documentation,
           dependencies
  quick    formatting, lints, tests; installs nothing and skips the tests that need more than Rust
  install  only installs what is missing
  soak     fuzzing, thousands of kill -9, crowds and load, then the tests with many more random
           cases; takes hours
  bench    the benchmarks, and those of other projects if their folder exists

Installing means Debian packages with apt-get (with sudo unless you are root), and cargo-deny,
mathjs, real MCP servers, a small model and speech engines in the cache folder. Tests whose programs
can't be installed are skipped and listed at the end. With CI=true a skipped test is a failure.

Variables, with their defaults:

  TOOLGATE_TEST_CACHE   the cache folder (~/.cache/toolgate-tests)
  SOAK_SECONDS          time for fuzzing, shared by all targets (3600)
  SOAK_KILLS            how often the gateway under load, and a process with a journal, are killed
                        with kill -9 (1000)
  SOAK_SOCKETS          idle sockets at the same time (10000)
  SOAK_LOAD_SECONDS     time with ten times as many calls as there are slots (60)
  SOAK_CALLS, SOAK_RESTARTS, SOAK_SESSIONS
                        how many must not use more memory, files or threads over time
                        (1000000, 10000, 100000)
  SOAK_FIRST_STARTS     real servers added with empty caches over a slow connection, up to 10 (10)
  PROPTEST_CASES        random cases of each property in soak (10000)
  MATH_RANDOM_CASES     random expressions compared with mathjs in soak (50000)
  BENCH_PEERS           folder with the benchmark of other projects and its run.sh (../shared/bench)
  BENCH_ONLY            sections of that benchmark to run (ABCDE)
END
}

main() {
    case "${1:-}" in
        "" | quick | install | soak | bench) ;;
        -h | --help | help)
            usage
            return
            ;;
        *)
            usage >&2
            exit 2
            ;;
    esac
    trap 'finish $?' EXIT
    # Skipped tests add a line to this file, as cargo counts them as passed.
    TOOLGATE_TEST_SKIPPED=$(mktemp)
    export TOOLGATE_TEST_SKIPPED
    case "${1:-}" in
        "")
            install_third_parties
            quick
            gateway_alone
            documentation
            dependencies
            ;;
        quick)
            advice='./test.sh installs what is missing and runs everything.'
            quick
            ;;
        install)
            install_third_parties
            install_cargo_deny || skip "dependencies" "cargo-deny can't be installed"
            ;;
        soak)
            install_third_parties
            soak
            ;;
        bench) bench ;;
    esac
}

# The cheapest checks come first.
quick() {
    if cargo fmt --version >/dev/null 2>&1; then
        run "formatting" cargo fmt --all --check
    else
        skip "formatting" "it needs rustfmt (rustup component add rustfmt)"
    fi
    if command -v node >/dev/null; then
        run "dashboard scripts" node --test crates/toolgate-server/tests/js/*.test.mjs
    else
        skip "dashboard scripts" "they need node"
    fi
    if cargo clippy --version >/dev/null 2>&1; then
        run "lints" cargo clippy --workspace --all-targets --locked -- -D warnings
    else
        skip "lints" "they need clippy (rustup component add clippy)"
    fi
    tests
}

tests() {
    # The same random cases every time: a run must not fail by chance. `soak` draws new ones.
    local seed=${PROPTEST_RNG_SEED:-20261115}
    # More than there are cores: most tests wait for other processes or a deadline.
    local threads=${RUST_TEST_THREADS:-$((2 * $(nproc || echo 2)))}
    run "tests" env PROPTEST_RNG_SEED="$seed" RUST_TEST_THREADS="$threads" \
        cargo test --workspace --locked
}

# A build with few features must compile, and must say which feature a command needs.
gateway_alone() {
    run "the gateway alone" cargo test --locked --package toolgate --lib \
        --no-default-features --features serve features::
}

documentation() {
    run "documentation" env RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked
}

dependencies() {
    if install_cargo_deny; then
        # Also fetches the dependencies of other systems, which are in the lock file and checked too.
        run "fetching dependencies" cargo fetch --locked
        run "dependencies" "$cache/bin/cargo-deny" --offline --locked check bans licenses sources
        advisories
    else
        skip "dependencies" "cargo-deny can't be installed"
    fi
}

# Checks the dependencies for known vulnerabilities. The database isn't in any package registry, so
# the run reports it but doesn't fail if the database can't be reached.
advisories() {
    if timeout 60 "$cache/bin/cargo-deny" --locked fetch db >/dev/null 2>&1; then
        run "advisories" "$cache/bin/cargo-deny" --offline --locked check advisories
    else
        printf -- "-- advisories were not checked: their database can't be fetched\n"
    fi
}

run() {
    begin "$1"
    shift
    "$@" || exit
    end
}

begin() {
    step=$1
    started=$SECONDS
    printf '\n== %s\n' "$step"
}

end() {
    printf -- '-- %s: ok, %d s\n' "$step" $((SECONDS - started))
}

skip() {
    if [[ ${CI:-} == true ]]; then
        step="$1: $2"
        exit 1
    fi
    printf -- '-- skipped %s: %s\n' "$1" "$2"
    skipped+=("$1")
}

finish() {
    stop_engine
    skipped_tests
    if (($1 != 0)); then
        printf '\nFAILED: %s\n' "$step" >&2
    elif ((${#skipped[@]} > 0)); then
        printf '\nAll steps passed in %d s. Skipped: %s.\n' "$SECONDS" "$(IFS=,; echo "${skipped[*]}")"
        [[ -z $advice ]] || printf '%s\n' "$advice"
    else
        printf '\nAll steps passed in %d s.\n' "$SECONDS"
    fi
}

# Lists the tests that were skipped, each once with what it needs.
skipped_tests() {
    local lines count
    lines=$(sort -u "$TOOLGATE_TEST_SKIPPED" 2>/dev/null | sed -n 's/^skipped: /   /p')
    rm -f "$TOOLGATE_TEST_SKIPPED"
    [[ -n $lines ]] || return 0
    count=$(sed 's/ needs .*//' <<<"$lines" | sort -u | wc -l)
    printf '\n-- skipped %d tests, which cargo counts as passed:\n%s\n' "$count" "$lines"
    skipped+=("$count tests")
}

main "$@"
