# For recipes: how tests ended, a line for each.

# ctest_results BUILD
ctest_results() {
    ctest --test-dir "$1" -j"$jobs" --output-junit "$PWD/$1/results.xml" >&2 || true
    sed -nE 's/.*<testcase name="([^"]*)".* status="([a-z]+)".*/\1: \2/p' "$1/results.xml"
}

# automake_results MAKE-ARGUMENT…
automake_results() {
    { make -k -j"$jobs" check "$@" || true; } | grep -E '^(PASS|FAIL|XFAIL|XPASS|SKIP|ERROR): '
}

# result NAME COMMAND…: what the command prints, and how it ends.
result() {
    local name=$1 status=0
    shift
    "$@" </dev/null >output.now 2>&1 || status=$?
    echo "$name: $status $(cksum <output.now)"
}
