#!/usr/bin/env bash
# Builds a copy of fixtures/demo with the shims, edits it three times, and shows what becomes of its fingerprint.
# Leaves nothing behind. Ends with 1 when a fingerprint did not behave as it should.
set -eu
cd "$(dirname "$0")/.."

if [ -t 1 ]; then bold=$'\e[1m' dim=$'\e[2m' green=$'\e[32m' yellow=$'\e[33m' red=$'\e[31m' off=$'\e[0m'
else bold='' dim='' green='' yellow='' red='' off=''; fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
scripts/install.sh "$work/tasting" >/dev/null
cp -r fixtures/demo "$work/demo"
PATH=$work/tasting/bin:$PATH
unset MAKEFLAGS MFLAGS MAKELEVEL TASTING_DISABLE TASTING_NOSPLIT TASTING_MANIFEST_DIR
cd "$work/demo"
wrong=0

build() { make CC=tasting-cc >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }; }
fingerprint() { tasting fingerprint till | grep -oE '^[0-9a-f]{32}' || { echo 'demo: no fingerprint' >&2; exit 1; }; }

# edit WHAT FILE SED-EXPRESSION EXPECTED: one edit, shown as a diff, and the fingerprint held against the first one.
edit() {
    local now verdict
    printf '\n%s%s%s\n' "$bold" "$1" "$off"
    cp "$2" "$work/old"
    sed -i "$3" "$2"
    { diff -U0 "$work/old" "$2" || true; } | sed -n "4,\$s|^|    $2  |p"
    build
    now=$(fingerprint) || exit 1
    if [ "$now" = "$first" ]; then verdict=same; else verdict=changed; fi
    show "$now" "$verdict" "$4"
}

show() {
    if [ "$2" != "$3" ]; then
        wrong=1
        printf '  %s  %s%s, and that is WRONG: it should be %s%s\n' "$1" "$red" "$2" "$3" "$off"
    elif [ "$2" = same ]; then
        printf '  %s  %ssame%s     what the tests said of the first build still holds\n' "$1" "$green" "$off"
    else
        printf '  %s  %schanged%s  the tests of this program have to run\n' "$1" "$yellow" "$off"
    fi
}

printf '%sA small C project, built by its own Makefile%s\n' "$bold" "$off"
printf '%s  $ make CC=tasting-cc%s\n' "$dim" "$off"
build
sed 's/^/    /' "$work/log"
printf '%s  $ tasting fingerprint till%s\n' "$dim" "$off"
first=$(fingerprint)
printf '  %s\n' "$first"

edit 'A comment, and every line below it moves' price.c '3i /* Tax is included. */' same
edit 'A function that the program never reaches' price.c 's/: 0;/: 1;/' same
edit 'A function that main reaches over two calls' price.c 's/119/107/' changed
edit 'That function as it was' price.c 's/107/119/' same
exit $wrong
