_toolgate_tools() {
    local -a names
    names=("${(@f)$(toolgate completions --names tools 2>/dev/null)}")
    compadd -a names
}
_toolgate_resources() {
    local -a names
    names=("${(@f)$(toolgate completions --names resources 2>/dev/null)}")
    compadd -a names
}
_toolgate_prompts() {
    local -a names
    names=("${(@f)$(toolgate completions --names prompts 2>/dev/null)}")
    compadd -a names
}
