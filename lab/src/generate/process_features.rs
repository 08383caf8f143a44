//! What processes do, as parts of generated programs: signals, children, threads, jumps between
//! stacks.

use super::c::{Draft, other};
use crate::dice::Dice;

pub fn long_jump(draft: &mut Draft, dice: &mut Dice, unit: usize) {
    let (place, thrower, name) = (draft.name("place"), draft.name("leap"), draft.name("landing"));
    draft.units[unit] += &format!(
        "static void *{place}[5];\n__attribute__((noinline)) static void {thrower}(unsigned depth)\n{{\n    TICK;\n    if (depth > {}) __builtin_longjmp({place}, 1);\n    {thrower}(depth + 1);\n    note(\"unreached\", depth);\n}}\n__attribute__((noinline)) unsigned {name}(unsigned a, unsigned b)\n{{\n    volatile unsigned sum = a;\n    if (__builtin_setjmp({place}) == 0) {{\n        sum += b;\n        {thrower}(b % 4u);\n    }} else {{\n        sum = sum * 3u + {};\n    }}\n    return sum;\n}}\n\n",
        dice.between(4, 9),
        dice.below(99)
    );
    draft.declare(&name);
    draft.call(dice, &name);
}

pub fn signal_handler(draft: &mut Draft, dice: &mut Dice, unit: usize) {
    let (count, handler, name) = (draft.name("signals"), draft.name("handle"), draft.name("raise"));
    draft.units[unit] += &format!(
        "static volatile unsigned {count} = {};\nstatic void {handler}(int number) {{ {count} += (unsigned)number * {}u; }}\nunsigned {name}(unsigned a, unsigned b)\n{{\n    signal({}, {handler});\n    raise({});\n    return {count} * a + b;\n}}\n\n",
        dice.below(50),
        dice.between(2, 9),
        10,
        10
    );
    draft.declare(&name);
    draft.call(dice, &name);
}

/// What a child executes counts as well.
pub fn child(draft: &mut Draft, dice: &mut Dice, unit: usize) {
    let (work, name) = (draft.name("work"), draft.name("fork"));
    let home = other(draft, dice, unit);
    draft.units[home] += &format!(
        "unsigned {work}(unsigned a, unsigned b) {{ return MIX(a, b * {}u) % 200u; }}\n",
        dice.between(2, 99)
    );
    draft.declare(&work);
    draft.units[unit] += &format!(
        "unsigned {name}(unsigned a, unsigned b)\n{{\n    int status = 0;\n    int child = fork();\n    if (child == 0) _exit((int)({work}(a, b) & 127u));\n    waitpid(child, &status, 0);\n    return (unsigned)status + a * {}u;\n}}\n\n",
        dice.between(2, 9)
    );
    // A program that calls itself by chance would fork for ever; only the test calls it.
    draft.declare_only(&name);
    draft.main +=
        &format!("    note(\"{name}\", {name}({}, {}));\n", dice.below(99), dice.below(99));
}

pub fn thread(draft: &mut Draft, dice: &mut Dice, unit: usize) {
    let (slot, body, name) = (draft.name("slot"), draft.name("body"), draft.name("spawn"));
    draft.units[unit] += &format!(
        "static __thread unsigned {slot} = {};\nstatic void *{body}(void *given)\n{{\n    {slot} += *(unsigned *)given;\n    *(unsigned *)given = {slot} * {}u;\n    return 0;\n}}\nunsigned {name}(unsigned a, unsigned b)\n{{\n    unsigned long thread;\n    unsigned value = a;\n    if (pthread_create(&thread, 0, {body}, &value)) return 0;\n    pthread_join(thread, 0);\n    return value + {slot} * b;\n}}\n\n",
        dice.below(99),
        dice.between(2, 9)
    );
    draft.declare_only(&name);
    draft.main +=
        &format!("    note(\"{name}\", {name}({}, {}));\n", dice.below(99), dice.below(99));
}
