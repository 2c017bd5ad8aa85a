_toolgate_tools() {
    local -a names
    names=("${(@f)$(toolgate completions --names tools 2>/dev/null)}")
    compadd -a names
}

