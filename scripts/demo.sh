#!/usr/bin/env bash
# Builds a copy of fixtures/demo with the shims, edits it, and shows when its test has to run and when its result is reused.
# Leaves nothing behind. Ends with 1 when something did not go as it should.
set -eu
cd "$(dirname "$0")/.."

if [ -t 1 ]; then bold=$'\e[1m' dim=$'\e[2m' green=$'\e[32m' yellow=$'\e[33m' red=$'\e[31m' off=$'\e[0m'
else bold='' dim='' green='' yellow='' red='' off=''; fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
scripts/install.sh "$work/tasting" >/dev/null
cp -r fixtures/demo "$work/demo"
PATH=$work/tasting/bin:$PATH
for name in $(compgen -e | grep -E '^(MAKEFLAGS|MFLAGS|MAKELEVEL|TASTING_.*)$' || true); do unset "$name"; done
export TASTING_DIR=$work/store TASTING_ROOT=$work/demo
export CC=tasting-cc RUNNER='tasting run --'
cd "$work/demo"
wrong=0

# field NAME: of the latest decision.
field() { tasting log --json -n 1 | grep -oE "\"$1\":\"[^\"]*\"" | cut -d'"' -f4 | sed 's/ since .*//'; }

# check EXPECTED: builds, runs the tests, and holds the decision against the expected one.
check() {
    local start milliseconds decision colour
    make till >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
    start=$(date +%s%N)
    make check >"$work/log" 2>&1 || true
    milliseconds=$((($(date +%s%N) - start) / 1000000))
    decision=$(field decision)
    if [ "$decision" = reused ]; then colour=$green; else colour=$yellow; fi
    printf '  %s%-8s%s  %4d ms  %s\n' "$colour" "$decision" "$off" "$milliseconds" "$(field reason)"
    if [ "$decision" != "$1" ]; then
        wrong=1
        printf '  %sand that is WRONG: it should be %s%s\n' "$red" "$1" "$off"
    fi
}

# edit WHAT FILE SED-EXPRESSION EXPECTED: one edit, shown as a diff, and what it means for the test.
edit() {
    printf '\n%s%s%s\n' "$bold" "$1" "$off"
    cp "$2" "$work/old"
    sed -i "$3" "$2"
    { diff -U0 "$work/old" "$2" || true; } | sed -n "4,\$s|^|    $2  |p"
    check "$4"
}

printf '%sA small C project, built and tested by its own Makefile%s\n' "$bold" "$off"
printf "%s  \$ export CC=tasting-cc RUNNER='tasting run --'\n  \$ make check%s\n" "$dim" "$off"
check executed
printf '%s  $ make check%s\n' "$dim" "$off"
check reused

edit 'A comment, and every line below it moves' price.c '3i /* Tax is included. */' reused
edit 'A function that the program never reaches' price.c 's/: 0;/: 1;/' reused
edit 'A file that the test reads' expected.txt 's/bread/Bread/' executed
edit 'That file as it was' expected.txt 's/Bread/bread/' reused
edit 'A function that main reaches over two calls' price.c 's/119/107/' executed
sed -i 's/107/108/' price.c
printf '%s  $ sed -i s/107/108/ price.c && make && tasting explain -- ./test.sh%s\n' "$dim" "$off"
make till >/dev/null 2>&1
tasting explain -- ./test.sh | sed 's/^/    /'
edit 'That function as it was' price.c 's/108/119/' reused

printf '\n'
tasting stats | sed 's/^/  /'
exit $wrong
