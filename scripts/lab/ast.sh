#!/usr/bin/env bash
# The AST level on real C projects: scripts/lab/ast.sh [lua|zlib|sqlite|sqlite-parts|openssl…]   (default: all)
#
# Fetches the sources of the Debian packages, keeps every unit as gcc and clang preprocess it, and then (see examples/ast):
# how many are understood and how fast; a changed token of a body changes that function only; random mutations with the same
# meaning are compiled, and must give the same objects. COUNT (1000) mutations each, SEED (1). Of sqlite as one unit, which takes
# a minute to compile, a fiftieth are mutated, and a twentieth of the bodies; its parts one by one count in full. Ends with 1 where
# something does not hold.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
work=$target/lab-ast
seed=${SEED:-1} count=${COUNT:-1000}
mkdir -p "$work"
cargo build --quiet --release --locked --example ast

fetch() { [ -d "$work/$1" ] || scripts/subjects/fetch.sh "$2" "$work/$1"; }

# Builds in the folder of a project, and keeps its units.
keep() {
    local name=$1
    shift
    [ ! -e "$work/$name.units/.done" ] || return 0
    rm -rf "$work/$name.units" && mkdir -p "$work/$name.units"
    (cd "$work/$name" && KEPT="$work/$name.units" "$@" >"$work/$name.log" 2>&1) || echo "$name: not all of it was built; see $work/$name.log"
    touch "$work/$name.units/.done"
}

units() {
    local compiler=$root/scripts/lab/keep-units.sh
    case $1 in
    lua) fetch lua lua5.4 && keep lua make linux CC="$compiler" ;;
    zlib) fetch zlib zlib && keep zlib sh -c "./configure --static && make CC='$compiler' libz.a" ;;
    sqlite)
        fetch sqlite sqlite3
        keep sqlite sh -c "[ -e Makefile ] || ./configure --disable-shared --disable-readline; make sqlite3.c && '$compiler' -c -I. sqlite3.c -o sqlite3.o"
        ;;
    sqlite-parts)
        fetch sqlite-parts sqlite3
        keep sqlite-parts sh -c "[ -e Makefile ] || ./configure --disable-shared --disable-readline; make sqlite3.c
            for part in tsrc/*.c; do case \$part in */geopoly.c | */shell.c | */tclsqlite.c) ;; *) ONLY=1 '$compiler' -c -I. -Itsrc \$part -o \$part.o ;; esac; done"
        ;;
    openssl)
        fetch openssl openssl
        keep openssl sh -c "./Configure linux-x86_64 no-asm && ONLY=1 make CC='$compiler' AR=true RANLIB=true build_sw"
        ;;
    *) echo "no such project: $1" >&2 && exit 2 ;;
    esac
}

failed=0
for project in ${*:-lua zlib sqlite sqlite-parts openssl}; do
    units "$project"
    echo "$project"
    find "$work/$project.units" -name '*.i' | sort >"$work/$project.list"
    run() { xargs -s 1900000 -a "$work/$project.list" "$target/release/examples/ast" "$@" || failed=1; }
    run read
    bodies=$count mutations=$count
    if [ "$project" = sqlite ]; then bodies=$((count / 20)) mutations=$((count / 50)); fi
    run bodies --seed "$seed" --count "$bodies"
    for level in -O2 -O0; do
        run mutate --seed "$seed" --count "$mutations" --level "$level" --keep "$work/$project.wrong"
    done
done
exit $failed
