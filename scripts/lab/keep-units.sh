#!/usr/bin/env bash
# A compiler that keeps each C unit in its preprocessed form, as gcc and as clang see it: REAL_CC is run as it is asked for, and
# the units are left in the folder KEPT. With ONLY=1 nothing is compiled: objects and programs are empty files.
set -u
real=${REAL_CC:-gcc}
words=() compiles='' source='' output='' expects=''
for word; do
    if [ -n "$expects" ]; then
        [ "$expects" != -o ] || output=$word
        expects=''
        continue
    fi
    case $word in
    -c) compiles=1 ;;
    -o | -MF | -MT | -MQ) expects=$word ;;
    -M*) ;;
    *.c) source=$word && words+=("$word") ;;
    *) words+=("$word") ;;
    esac
done
if [ -n "$compiles" ] && [ -n "$source" ]; then
    name=$(echo "$PWD/${output:-$source}" | tr / _ | tail -c 150)
    for compiler in gcc clang; do
        "$compiler" "${words[@]}" -E -o "$KEPT/$compiler$name.i" 2>/dev/null || rm -f "$KEPT/$compiler$name.i"
    done
    output=${output:-$(basename "${source%.c}").o}
fi
if [ -n "${ONLY:-}" ] && [ -n "$output" ]; then
    : >"$output"
    chmod +x "$output"
    exit 0
fi
exec "$real" "$@"
