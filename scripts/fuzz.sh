#!/bin/sh
# Fuzzes the readers of bytes from outside: scripts/fuzz.sh [SECONDS] [TARGET...]
#
# Builds the targets of fuzz/ with a stable compiler, makes seeds of real files, runs each target for SECONDS (60).
# Corpora stay in the target folder, so that a later run goes on where this one ended. Ends with status 1 and the path
# of the input when a target crashes, takes more than 10 s for one input, or more than 512 MB.
set -eu
cd "$(dirname "$0")/.."

seconds=${1:-60}
[ $# -eq 0 ] || shift
absolute() { case $1 in /*) echo "$1" ;; *) echo "$PWD/$1" ;; esac; }
folder=$(absolute "${CARGO_TARGET_DIR:-target}")
built=$(absolute "${BUILT:-$folder/release}")
work=$folder/fuzz
host=$(rustc -vV | sed -n 's/^host: //p')
targets=${*:-$(sed -n 's/^name = "\(.*\)"$/\1/p' fuzz/Cargo.toml | grep -v tasting)}

# The coverage that libFuzzer follows. What cargo-fuzz passes, less the address sanitizer, which is not stable: the
# crate has unsafe code in one file only, and none of it reads.
coverage='-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table
    -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing'

build() {
    [ -x "$built/tasting-cc" ] || cargo build --release --locked --bins
    # With --target the flags are not for build scripts and procedural macros.
    RUSTFLAGS=$(echo $coverage) cargo build --quiet --release --locked --bins --manifest-path fuzz/Cargo.toml \
        --target "$host" --target-dir "$work/build"
}

# Puts a file into the corpus of a target, under the hash of its content.
seed() {
    mkdir -p "$work/corpus/$1"
    cp "$2" "$work/corpus/$1/seed-$(cksum <"$2" | tr ' ' -)"
}

# Four bytes of length, then the file.
led_by_length() {
    for file; do
        size=$(wc -c <"$file")
        printf "$(printf '\\%03o\\%03o\\%03o\\%03o' $((size & 255)) $((size >> 8 & 255)) $((size >> 16 & 255)) 0)"
        cat "$file"
    done
}

sources() {
    cat >one.c <<'END'
extern int two(const char *, int); int counter, table[4] = {1, 2, 3}; static int zeroed[8];
__attribute__((constructor)) static void first(void) { counter = 1; }
__attribute__((section("my_set"))) int member = 5; extern int __start_my_set[];
static int (*const calls[])(const char *, int) = {two}; __thread int local;
int main(int count, char **words) {
  switch (count) { case 1: return 7; case 2: return 9; case 3: return 4; case 4: return 8; case 5: return 3; }
  return calls[0]("text", counter) + zeroed[count & 7] + __start_my_set[0] + local;
}
void _start(void) { main(0, 0); for (;;); }
END
    cat >two.c <<'END'
__attribute__((weak)) int weak(void) { return 1; } double half = 0.5; int common[20];
int two(const char *text, int number) { return number > 3 ? two(text, number - 1) + *text : weak() + common[1]; }
END
    cat >three.cc <<'END'
struct Base { virtual int f() { return 1; } virtual ~Base() {} };
struct Other : Base { int f() override { throw 5; } };
template <class T> T twice(T x) { return x + x; }
int three(Base *base) { try { return twice(base->f()); } catch (int x) { return x; } }
int (*four)(Base *) = three; Other other;
END
    printf '.text\n.globl f\nf: call g\n.long 5, f-.\n.section .rodata.str1.1,"aMS",@progbits,1\n.string "a"\n' >five.s
}

objects() {
    for compiler in gcc clang; do
        for flags in '-O0 -g' '-O2 -ffunction-sections -fdata-sections' '-O2 -fPIC -fcommon -g -ffunction-sections' \
            '-m32 -c' '-O1 -fno-asynchronous-unwind-tables'; do
            for source in one.c two.c three.cc five.s; do
                "$compiler" $flags -c "$source" -o object.o 2>/dev/null || continue
                for target in object append; do seed $target object.o; done
                TASTING_CC="$compiler" "$built/tasting-cc" $flags -c "$source" -o carried.o 2>/dev/null || continue
                seed object carried.o
                objcopy -O binary --only-section=.tasting --set-section-flags .tasting=alloc carried.o carried 2>/dev/null
                tail -c +29 carried >payload && seed record payload
                nm carried.o | sed -n 's/.* //p' | while read -r name; do printf %s "$name" >name; seed name name; done
                rm -f whole.a thin.a && ar qc whole.a object.o carried.o && ar qcT thin.a object.o carried.o
                seed archive whole.a && seed archive thin.a
            done
        done
    done
}

links() {
    for linker in bfd gold lld mold; do
        for flags in '-static -nostdlib' '-nostdlib -pie' '-nostdlib -shared -fPIC' '-nostdlib -static -Wl,-s'; do
            common="-O1 -ffunction-sections -fdata-sections -fno-asynchronous-unwind-tables $flags -fuse-ld=$linker"
            gcc $common -c one.c -o one.o && gcc $common -c two.c -o two.o
            TASTING_CC=gcc "$built/tasting-cc" $common -Wl,-Map=map,--build-id=none one.o two.o -o program 2>/dev/null ||
                continue
            seed map map
            seed binary program
            led_by_length program map one.o two.o >all && seed link all
            [ ! -f program.tasting ] || { tail -c +29 program.tasting >payload && seed manifest payload; }
        done
    done
    for map in "$root"/fixtures/maps/*; do seed map "$map"; done
}

options() {
    printf -- "-c -O2 'x y.c' -o x.o -MD -MF x.d -Wl,-Map=m -x c -DX=\"\\\\\"s\\\\\"\" @file" >words && seed options words
    printf -- '-fuse-ld=lld\n--ld-path=x\n-B/x\n-Xclang\n-emit-llvm\n-flto\n-shared\nx.o\n-lm' >words && seed options words
    printf -- '-o x -r --wrap=f --defsym=a=b -T s.ld -e main -z now -m elf_x86_64 --icf=all -Map m a.o -( -lc -)' >words
    seed options words
}

# Units as compilers see them: with linemarkers, and with all that headers say.
units() {
    printf '#include <stdio.h>\n#include <string.h>\n#include <math.h>\n#include <pthread.h>\n#include <stdatomic.h>\nint x;\n' >headers.c
    cat >constructs.c <<'END'
typedef struct node { struct node *next; unsigned bits : 3; char data[]; } node; enum e { A, B = A + 2, C };
#pragma pack(push, 1)
struct packed { char c; union { int i; float f; }; } __attribute__((aligned(4)));
#pragma pack(pop)
static inline int twice(int a) { return a + a; } int old(a, b) int a; char b; { return a - b; }
extern int w(void) __attribute__((weak, alias("old"))); int (*table[])(int) = { [1 ... 2] = twice, };
int f(node *n, int k) { static int s; __label__ out; int nested(int q) { return q + k; } typeof(k) y = ({ int z = k; z; });
  switch (k) { case 1 ... 3: goto out; default: y = _Generic(k, int: 1, default: 2); } asm volatile("nop" : "+r"(y) : : "memory");
  for (int i = 0; i < nested(3); i++) y += __builtin_offsetof(node, data) + sizeof(struct packed) + ((struct packed){ .c = 'x' }).c;
  do { if (n && n->next) return C; else y--; } while (y > 0 ? 1 : 0); out: return (int)(long)&&out + twice(y); }
END
    for compiler in gcc clang; do
        for source in one.c two.c headers.c constructs.c; do "$compiler" -E "$source" -o unit.i 2>/dev/null && seed ast unit.i; done
    done
}

seeds() {
    root=$PWD
    rm -rf "$work/seeds" && mkdir -p "$work/seeds"
    (cd "$work/seeds" && sources && objects && links && options && units)
    for file in fixtures/damaged/*; do
        for target in $targets; do [ ! -f "$file" ] || seed "$target" "$file"; done
    done
}

# Runs one target. Inputs are as large as small real files are; most objects of the seeds have less than 16 KB.
run() {
    mkdir -p "$work/corpus/$1" "$work/crashes"
    echo "$1: $seconds s"
    if ! "$work/build/$host/release/$1" -max_total_time="$seconds" -max_len=32768 -rss_limit_mb=512 -malloc_limit_mb=256 \
        -timeout=10 -print_final_stats=1 -artifact_prefix="$work/crashes/$1-" "$work/corpus/$1" >"$work/$1.log" 2>&1; then
        grep -a -E 'panicked|ERROR|SUMMARY|Test unit' -A1 "$work/$1.log" | tail -20
        echo "$1 fails: the input is in $work/crashes, the log is $work/$1.log"
        failed=1
    fi
    sed -n 's/^stat::number_of_executed_units: */  executions: /p; s/^stat::peak_rss_mb: */  peak memory, MB: /p' "$work/$1.log"
}

build
seeds
failed=0
for target in $targets; do run "$target"; done
exit $failed
