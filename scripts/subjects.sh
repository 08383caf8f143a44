#!/usr/bin/env bash
# Builds real projects by their own build systems, once plainly and once with the shims, runs their own tests on both,
# and ends with 1 unless the results are the same and every executable and shared library has a valid manifest.
#   BUILT=target/release scripts/subjects.sh [NAME…]     (default: every scripts/subjects/NAME.recipe)
#
# A recipe sets `package`, the Debian source package, and defines, for the folder with its upstream sources:
#   build   builds with $CC and $CXX; CMake and Meson with $cmake_options and $meson_options instead
#   check   runs the project's own tests; what it prints has to be the same in both builds
set -euo pipefail
cd "$(dirname "$0")/.."

cache=$(realpath -m "${CARGO_TARGET_DIR:-target}")/subjects
recipes=$PWD/scripts/subjects
jobs=$(nproc)
export recipes jobs LC_ALL=C
unset MAKEFLAGS MFLAGS MAKELEVEL CFLAGS CXXFLAGS CPPFLAGS LDFLAGS
unset TASTING_DISABLE TASTING_NOSPLIT TASTING_LEVEL TASTING_MANIFEST_DIR TASTING_CC TASTING_CXX TASTING_LD

main() {
    local name status=0
    [ $# -gt 0 ] || set -- $(cd "$recipes" && ls ./*.recipe | sed 's|^\./||; s|\.recipe$||')
    prefix=$(mktemp -d)
    trap 'rm -rf "$prefix"' EXIT
    scripts/install.sh "$prefix" >/dev/null
    for name; do
        [ -e "$recipes/$name.recipe" ] || { echo "subjects: there is no $recipes/$name.recipe" >&2; exit 2; }
        subject "$name" || { status=1; echo "$name: FAILED" >&2; }
    done
    exit $status
}

subject() (
    mkdir -p "$cache/$1" && cd "$cache/$1" || return
    exec 9>lock && flock 9
    [ -d source ] || recipe "$1" 'exec "$recipes/fetch.sh" "$package" source' || return
    variant "$1" plain cc c++ || return
    PATH=$prefix/bin:$PATH variant "$1" shims tasting-cc tasting-c++ || return
    diff plain.results shims.results >&2 || { echo "$1: its tests end differently with the shims" >&2; return 1; }
    PATH=$prefix/bin:$PATH manifests "$1" || return
)

# variant SUBJECT plain|shims CC CXX
variant() {
    export CC=$3 CXX=$4 cmake_options= meson_options=
    if [ "$2" = shims ]; then
        cmake_options="--toolchain $prefix/share/tasting/cmake/tasting.cmake"
        meson_options="--native-file $prefix/share/tasting/meson/tasting.ini"
    fi
    rm -rf "$2"
    cp -a source "$2"
    recipe "$1" "cd $2 && build" >"$2.log" 2>&1 || { tail -n 30 "$2.log" >&2; return 1; }
    recipe "$1" "cd $2 && check" >"$2.results" 2>"$2.log" || { tail -n 30 "$2.log" "$2.results" >&2; return 1; }
    [ -s "$2.results" ] || { echo "$1: its tests printed nothing" >&2; return 1; }
}

# recipe SUBJECT COMMAND: in a shell of its own, which stops at the first failure whoever asks.
recipe() { bash -euo pipefail -c ". '$recipes/$1.recipe'; $2" </dev/null; }

# Every linked file that the build left, as the kernel sees it; the build systems' own probes leave no manifest.
linked_files() {
    find "$1" -type f ! -name '*.o' ! -name '*.a' ! -path '*/CMakeFiles/*' ! -path '*/meson-private/*' ! -path '*/.git/*' -size +1k \
        -exec sh -c 'for f; do case $(readelf -hW "$f" 2>/dev/null) in *"Type: "*" EXEC "*|*"Type: "*" DYN "*) echo "$f";; esac; done' sh {} +
}

manifests() {
    local file good=0 count=0
    while read -r file; do
        count=$((count + 1))
        if tasting fingerprint "$file" | grep -qE '^[0-9a-f]{32}  '; then good=$((good + 1)); else echo "$1: no fingerprint: $file" >&2; fi
    done < <(linked_files shims)
    echo "$1: $(wc -l <shims.results) lines of test results as in the plain build; $good of $count linked files have a manifest"
    [ "$count" -gt 0 ] && [ "$good" = "$count" ]
}

main "$@"
