# Tests that take hours: fuzzing, kill -9, crowds and load. Sourced by test.sh.

# The fuzz targets, each with its longest input in bytes.
fuzz_targets=(math:200 wyoming:4096 json_rpc:4096 sse:4096 heads:2048 schema:2048 config:4096)

# The usual tests with larger sizes. They print figures, and run one at a time because they measure.
# The build isn't optimised, because debug builds check more.
soak() {
    local sizes=(SOAK_KILLS="${SOAK_KILLS:-1000}" SOAK_SOCKETS="${SOAK_SOCKETS:-10000}"
        SOAK_LOAD_SECONDS="${SOAK_LOAD_SECONDS:-60}" SOAK_CALLS="${SOAK_CALLS:-1000000}"
        SOAK_RESTARTS="${SOAK_RESTARTS:-10000}" SOAK_SESSIONS="${SOAK_SESSIONS:-100000}")
    local alone=(-- --nocapture --test-threads=1)
    fuzz
    ulimit -Sn "$(ulimit -Hn)"
    run "kill -9 of a journal" env "${sizes[@]}" \
        cargo test --locked -p toolgate-journal --test journal "${alone[@]}" kill::what
    run "kill -9 of the gateway, crowds, load" env "${sizes[@]}" \
        cargo test --locked -p toolgate --test gateway "${alone[@]}" killing:: crowds:: endurance::
    run "first starts over a slow line" env SOAK_FIRST_STARTS="${SOAK_FIRST_STARTS:-10}" \
        cargo test --locked -p toolgate --test cli "${alone[@]}" first_start::
    unset "${!SOAK_@}"
    run "random cases" env PROPTEST_CASES="${PROPTEST_CASES:-10000}" \
        MATH_RANDOM_CASES="${MATH_RANDOM_CASES:-50000}" MATH_SEED="${MATH_SEED:-new}" \
        cargo test --workspace --locked
}

# Runs libFuzzer with the stable compiler, whose flags below make it count branches. Inputs that
# fail are in fuzz/artifacts.
fuzz() {
    local host built entry target seconds=$((${SOAK_SECONDS:-3600} / ${#fuzz_targets[@]}))
    local flags="--cfg fuzzing -Cpasses=sancov-module" flag
    for flag in level=4 inline-8bit-counters pc-table trace-compares; do
        flags+=" -Cllvm-args=-sanitizer-coverage-$flag"
    done
    host=$(rustc -vV | sed -n 's/^host: //p')
    built=${CARGO_TARGET_DIR:-fuzz/target}/$host/release
    # With --target, build scripts and macros aren't instrumented.
    run "building the fuzzers" env RUSTFLAGS="$flags -Ccodegen-units=1" \
        cargo build --release --manifest-path fuzz/Cargo.toml --target "$host"
    run "preparing corpora and dictionaries" cargo run --manifest-path fuzz/prepare/Cargo.toml
    for entry in "${fuzz_targets[@]}"; do
        target=${entry%%:*}
        mkdir -p "fuzz/artifacts/$target"
        begin "fuzzing $target for $seconds s"
        local options=(-max_len="${entry#*:}" -timeout=5 -rss_limit_mb=2048
            -max_total_time="$seconds" -print_final_stats=1 -artifact_prefix="fuzz/artifacts/$target/")
        [[ ! -f fuzz/$target.dict ]] || options+=(-dict="fuzz/$target.dict")
        "$built/$target" "fuzz/corpus/$target" "${options[@]}" >"fuzz/artifacts/$target.log" 2>&1 \
            || { tail -n 40 "fuzz/artifacts/$target.log"; exit 1; }
        grep -E 'DONE|^stat::' "fuzz/artifacts/$target.log"
        end
    done
}
