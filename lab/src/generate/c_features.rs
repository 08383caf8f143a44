//! What compilers and linkers do besides compiling functions: tables, weak choices, constructors,
//! threads' variables, sets, aliases and the like. Each puts something into a unit and lets `main`
//! use it.

use super::c::{Draft, other};
use super::expression::constant;
use super::process_features::{child, long_jump, signal_handler, thread};
use crate::dice::Dice;

pub type Feature = fn(&mut Draft, &mut Dice, usize);

pub const ALL: [Feature; 26] = [
    table_of_functions,
    table_of_functions,
    table_of_items,
    table_of_numbers,
    clique,
    clique,
    weak_default,
    weak_twice,
    weak_missing,
    constructor,
    destructor,
    thread_local,
    static_local,
    zeroed_twins,
    text,
    floats,
    set,
    alias,
    computed_goto,
    varargs,
    common,
    bits_and_copies,
    long_jump,
    signal_handler,
    child,
    thread,
];

/// Those that C++ has too.
pub const IN_CXX: [Feature; 8] = [
    table_of_functions,
    clique,
    weak_default,
    weak_twice,
    constructor,
    static_local,
    zeroed_twins,
    text,
];

fn numbers(dice: &mut Dice, count: usize) -> String {
    (0..count).map(|_| constant(dice)).collect::<Vec<_>>().join(", ")
}

/// Functions that can be told apart by what they return.
fn entries(draft: &mut Draft, dice: &mut Dice, unit: usize, count: usize) -> Vec<String> {
    (0..count)
        .map(|_| {
            if !draft.functions.is_empty() && dice.percent(30) {
                return dice.pick(&draft.functions).clone();
            }
            let name = draft.name("entry");
            let (operator, number) = (*dice.pick(&["+", "-", "^", "*"]), dice.between(1, 99));
            draft.units[unit] +=
                &format!("static unsigned {name}(unsigned a, unsigned b) {{ return a {operator} b + {number}; }}\n");
            name
        })
        .collect()
}

fn table_of_functions(draft: &mut Draft, dice: &mut Dice, unit: usize) {
    let count = dice.between(3, 5);
    let list = entries(draft, dice, unit, count).join(", ");
    let (table, name) = (draft.name("table"), draft.name("dispatch"));
    let qualifier = dice.pick(&["static ", "static ", ""]);
    let constness = dice.pick(&["const ", ""]);
    let turns = dice.between(2, count + 1);
    draft.units[unit] += &format!(
        "{qualifier}unsigned (*{constness}{table}[{count}])(unsigned, unsigned) = {{{list}}};\nunsigned {name}(unsigned a, unsigned b)\n{{\n    unsigned sum = b;\n    for (unsigned i = 0; i < {turns}; i++) {{\n        TICK;\n        sum += {table}[(a + i) % {count}u](sum, i);\n    }}\n    return sum;\n}}\n\n"
    );
    draft.declare(&name);
    draft.call(dice, &name);
}

fn table_of_items(draft: &mut Draft, dice: &mut Dice, unit: usize) {
    let (table, name, count) = (draft.name("items"), draft.name("weigh"), dice.between(2, 5));
    let rows: Vec<String> = (0..count)
        .map(|_| {
            format!(
                "{{{}, {}, {}, \"label{}\"}}",
                dice.below(500),
                dice.below(90),
                dice.below(200),
                dice.below(50)
            )
        })
        .collect();
    let constness = dice.pick(&["static const ", "static ", "const ", ""]);
    draft.units[unit] += &format!(
        "{constness}struct item {table}[] = {{{}}};\nunsigned {name}(unsigned a, unsigned b)\n{{\n    unsigned sum = a;\n    for (unsigned i = 0; i < sizeof {table} / sizeof *{table}; i++) {{\n        TICK;\n        sum = MIX(sum, {table}[i].weight * {table}[i].kind + {table}[i].flags + {table}[i].label[5]);\n        note({table}[i].label, sum + b);\n    }}\n    return sum;\n}}\n\n",
        rows.join(", ")
    );
    draft.declare(&name);
    draft.call(dice, &name);
}

fn table_of_numbers(draft: &mut Draft, dice: &mut Dice, unit: usize) {
    let (table, pointer, name, count) =
        (draft.name("row"), draft.name("cursor"), draft.name("pick"), dice.between(4, 8));
    let kind = dice.pick(&["unsigned", "short", "unsigned char", "long"]);
    let (list, at) = (numbers(dice, count), dice.below(count));
    draft.units[unit] += &format!(
        "static {kind} {table}[{count}] = {{{list}}};\nstatic {kind} *{pointer} = {table} + {at};\nunsigned {name}(unsigned a, unsigned b)\n{{\n    {table}[a % {count}u] += b;\n    return (unsigned)({table}[b % {count}u] * 3 + *{pointer});\n}}\n\n"
    );
    draft.declare(&name);
    draft.call(dice, &name);
}

/// Functions that call each other in a ring, over two units, with something behind one of them.
fn clique(draft: &mut Draft, dice: &mut Dice, unit: usize) {
    let behind = draft.function(dice, unit);
    let count = dice.between(2, 4);
    let names: Vec<String> = (0..count).map(|_| draft.name("ring")).collect();
    let elsewhere = other(draft, dice, unit);
    for (index, name) in names.iter().enumerate() {
        let next = &names[(index + 1) % count];
        let extra = if index == count - 1 { format!(" + {behind}(a, 3u)") } else { String::new() };
        let home = if dice.percent(50) { unit } else { elsewhere };
        draft.units[home] += &format!(
            "unsigned {name}(unsigned a, unsigned b)\n{{\n    TICK;\n    if (b == 0 || b > 40) return a{extra};\n    return {next}(a * {}u + {}, b - 1){};\n}}\n\n",
            dice.between(2, 9),
            dice.below(99),
            dice.pick(&["", " + 1", " ^ 5u"])
        );
    }
    names.iter().for_each(|name| draft.declare(name));
    let (a, b) = (dice.below(99), dice.between(1, 12));
    draft.main += &format!("    note(\"ring\", {}({a}, {b}));\n", names[0]);
}

fn weak_default(draft: &mut Draft, dice: &mut Dice, unit: usize) {
    let name = draft.name("policy");
    let strong = other(draft, dice, unit);
    draft.units[unit] += &format!(
        "__attribute__((weak)) unsigned {name}(unsigned a, unsigned b) {{ return a + b * {}u; }}\n",
        dice.below(99)
    );
    if dice.percent(60) {
        draft.units[strong] += &format!(
            "unsigned {name}(unsigned a, unsigned b) {{ return a ^ b + {}u; }}\n",
            dice.below(99)
        );
    }
    draft.declare(&name);
    draft.call(dice, &name);
}

/// The first one in the order of the link counts.
fn weak_twice(draft: &mut Draft, dice: &mut Dice, unit: usize) {
    let (name, datum) = (draft.name("either"), draft.name("weak_number"));
    let second = other(draft, dice, unit);
    for home in [unit, second] {
        let number = dice.below(500);
        draft.units[home] += &format!(
            "__attribute__((weak)) unsigned {name}(unsigned a, unsigned b) {{ return a * b + {number}; }}\n__attribute__((weak)) unsigned {datum} = {};\n",
            number + 1
        );
    }
    draft.declarations += &format!("extern unsigned {datum};\n");
    draft.declare(&name);
    draft.main += &format!("    note(\"weak datum\", {datum});\n");
    draft.call(dice, &name);
}

fn weak_missing(draft: &mut Draft, dice: &mut Dice, unit: usize) {
    let (name, asking) = (draft.name("maybe"), draft.name("ask"));
    if dice.percent(50) {
        let home = other(draft, dice, unit);
        draft.units[home] += &format!(
            "unsigned {name}(unsigned a, unsigned b) {{ return a - b * {}u; }}\n",
            dice.below(99)
        );
    }
    draft.declarations +=
        &format!("__attribute__((weak)) unsigned {name}(unsigned a, unsigned b);\n");
    draft.units[unit] += &format!(
        "unsigned {asking}(unsigned a, unsigned b) {{ return {name} ? {name}(a, b) : a + {}; }}\n",
        dice.below(99)
    );
    draft.declare(&asking);
    draft.call(dice, &asking);
}

fn constructor(draft: &mut Draft, dice: &mut Dice, unit: usize) {
    let order = draft.name("order");
    draft.units[unit] += &format!("unsigned {order} = {};\n", dice.below(50));
    draft.declarations += &format!("extern unsigned {order};\n");
    for home in [unit, other(draft, dice, unit)] {
        let (name, number) = (draft.name("first"), dice.between(2, 40));
        let priority =
            if dice.percent(40) { format!("({})", dice.between(200, 210)) } else { String::new() };
        draft.units[home] += &format!(
            "__attribute__((constructor{priority})) static void {name}(void) {{ {order} = {order} * {number}u + {}; }}\n",
            dice.below(9)
        );
    }
    draft.main += &format!("    note(\"order\", {order});\n");
}

fn destructor(draft: &mut Draft, dice: &mut Dice, unit: usize) {
    let (last, at_exit) = (draft.name("last"), draft.name("leave"));
    draft.units[unit] += &format!(
        "unsigned {last}_armed;\n__attribute__((destructor)) static void {last}(void) {{ if ({last}_armed) printf(\"end %u\\n\", lab_scale({}u)); }}\nvoid {at_exit}(void) {{ printf(\"leave {}\\n\"); }}\n",
        dice.below(99),
        dice.below(99)
    );
    // Only this test is to hear of it: a mutation counts once.
    draft.declarations += &format!("extern unsigned {last}_armed;\nvoid {at_exit}(void);\n");
    draft.main += &format!("    {last}_armed = 1;\n    atexit({at_exit});\n");
}

fn thread_local(draft: &mut Draft, dice: &mut Dice, unit: usize) {
    let (one, two, name) = (draft.name("own"), draft.name("own"), draft.name("threads"));
    let home = other(draft, dice, unit);
    draft.declarations += &format!("extern __thread unsigned {one};\n");
    draft.units[home] += &format!("__thread unsigned {one} = {};\n", dice.below(999));
    draft.units[unit] += &format!(
        "static __thread unsigned {two}, {two}_b;\nunsigned {name}(unsigned a, unsigned b)\n{{\n    {two} += a;\n    {two}_b += b;\n    {one} ^= {two};\n    return {one} + {two}_b * 2u;\n}}\n\n"
    );
    draft.declare(&name);
    draft.call(dice, &name);
    draft.call(dice, &name);
}

fn static_local(draft: &mut Draft, dice: &mut Dice, unit: usize) {
    for _ in 0..2 {
        let name = draft.name("counted");
        draft.units[unit] += &format!(
            "unsigned {name}(unsigned a, unsigned b)\n{{\n    static unsigned calls, sum = {};\n    calls++;\n    sum += a;\n    return sum * calls + b;\n}}\n\n",
            dice.below(99)
        );
        draft.declare(&name);
        draft.call(dice, &name);
        draft.call(dice, &name);
    }
}

/// Two things of the same content: which one is used counts.
fn zeroed_twins(draft: &mut Draft, dice: &mut Dice, unit: usize) {
    let (one, two, up, name) =
        (draft.name("twin"), draft.name("twin"), draft.name("up"), draft.name("twins"));
    let storage = dice.pick(&["static ", ""]);
    draft.units[unit] += &format!(
        "{storage}unsigned {one}, {two};\nstatic void {up}(unsigned *which, unsigned by) {{ *which += by; }}\nunsigned {name}(unsigned a, unsigned b)\n{{\n    {up}(&{one}, a);\n    {up}(&{two}, b + {});\n    {one}++;\n    return {one} * 7u + {two};\n}}\n\n",
        dice.below(30)
    );
    draft.declare(&name);
    draft.call(dice, &name);
}

fn text(draft: &mut Draft, dice: &mut Dice, unit: usize) {
    let (list, name) = (draft.name("words"), draft.name("say"));
    let words: Vec<String> =
        (0..3).map(|_| format!("\"word{} of {}\"", dice.below(9), dice.below(30))).collect();
    draft.units[unit] += &format!(
        "static const char *{list}[] = {{{}, TITLE}};\nstatic char {list}_own[] = \"own text {}\";\nunsigned {name}(unsigned a, unsigned b)\n{{\n    const char *word = {list}[a % 4u];\n    unsigned sum = b;\n    for (unsigned i = 0; word[i]; i++) {{\n        TICK;\n        sum = MIX(sum, (unsigned)word[i]);\n    }}\n    {list}_own[b % 6u] += 1;\n    printf(\"say %s, %s {}\\n\", word, {list}_own);\n    return sum;\n}}\n\n",
        words.join(", "),
        dice.below(9),
        dice.below(99)
    );
    draft.declare(&name);
    draft.call(dice, &name);
}

fn floats(draft: &mut Draft, dice: &mut Dice, unit: usize) {
    let name = draft.name("measure");
    let number = |dice: &mut Dice| format!("{}.{}", dice.below(90), dice.between(1, 9));
    draft.units[unit] += &format!(
        "static double {name}_base = {};\nunsigned {name}(unsigned a, unsigned b)\n{{\n    double x = (a % 100u) * {} + {name}_base;\n    float y = (float)(b % 50u) / {}f;\n    return x > {} ? (unsigned)(x * 3.5) + (unsigned)(y * 8.0f) : (unsigned)y + {}u;\n}}\n\n",
        number(dice),
        number(dice),
        number(dice),
        number(dice),
        dice.below(99)
    );
    draft.declare(&name);
    draft.call(dice, &name);
}

/// Members of a section of the programmer's own, from two units, found between its start and its
/// end.
fn set(draft: &mut Draft, dice: &mut Dice, unit: usize) {
    let set = draft.name("set");
    for home in [unit, other(draft, dice, unit)] {
        for _ in 0..dice.between(1, 2) {
            let member = draft.name("member");
            draft.units[home] += &format!(
                "__attribute__((section(\"{set}\"), used)) static unsigned {member} = {};\n",
                dice.below(999)
            );
        }
    }
    // The code that walks over the set is in one module with the members; a library has a set of
    // its own.
    let name = draft.name("walk");
    draft.units[unit] += &format!(
        "extern unsigned __start_{set}[], __stop_{set}[];\nunsigned {name}(unsigned a, unsigned b)\n{{\n    unsigned sum = a;\n    for (unsigned *at = __start_{set}; at < __stop_{set}; at++) {{\n        TICK;\n        sum = MIX(sum, *at);\n    }}\n    return sum + b;\n}}\n\n"
    );
    draft.declare(&name);
    draft.call(dice, &name);
}

fn alias(draft: &mut Draft, dice: &mut Dice, unit: usize) {
    let (one, two, name) = (draft.name("real"), draft.name("real"), draft.name("called"));
    let target = if dice.percent(50) { &one } else { &two };
    draft.units[unit] += &format!(
        "unsigned {one}(unsigned a, unsigned b) {{ return a + b + {}; }}\nunsigned {two}(unsigned a, unsigned b) {{ return a * b + {}; }}\nunsigned {name}(unsigned a, unsigned b) __attribute__((alias(\"{target}\")));\n",
        dice.below(99),
        dice.below(99)
    );
    [&one, &two, &name].into_iter().for_each(|name| draft.declare(name));
    draft.call(dice, &name);
}

fn computed_goto(draft: &mut Draft, dice: &mut Dice, unit: usize) {
    let name = draft.name("machine");
    draft.units[unit] += &format!(
        "unsigned {name}(unsigned a, unsigned b)\n{{\n    static const void *const steps[] = {{&&add, &&turn, &&mix, &&done}};\n    unsigned at = a;\nnext:\n    TICK;\n    goto *steps[at++ % 4u];\nadd:\n    b += {};\n    goto next;\nturn:\n    b = lab_turn(b, {});\n    goto next;\nmix:\n    b = MIX(b, at);\n    goto next;\ndone:\n    return b;\n}}\n\n",
        dice.below(99),
        dice.between(1, 30)
    );
    draft.declare(&name);
    draft.call(dice, &name);
}

fn varargs(draft: &mut Draft, dice: &mut Dice, unit: usize) {
    let (sum, name, compare, sorted) =
        (draft.name("sum"), draft.name("spread"), draft.name("compare"), draft.name("sorted"));
    draft.units[unit] += &format!(
        "static unsigned {sum}(int count, ...)\n{{\n    __builtin_va_list list;\n    unsigned total = {};\n    __builtin_va_start(list, count);\n    for (int i = 0; i < count; i++) {{\n        TICK;\n        total = MIX(total, __builtin_va_arg(list, unsigned));\n    }}\n    __builtin_va_end(list);\n    return total;\n}}\nunsigned {name}(unsigned a, unsigned b) {{ return {sum}({}, a, b, a + b, {}u); }}\n",
        dice.below(99),
        dice.between(2, 4),
        dice.below(99)
    );
    let list = numbers(dice, 6);
    draft.units[unit] += &format!(
        "static int {compare}(const void *one, const void *two) {{ int a = *(const int *)one, b = *(const int *)two; return a < b ? -1 : a > b; }}\nunsigned {sorted}(unsigned a, unsigned b)\n{{\n    int row[6] = {{{list}}};\n    row[a % 6u] = (int)b;\n    qsort(row, 6, sizeof *row, {compare});\n    return (unsigned)(row[1] * 5 + row[4]);\n}}\n\n"
    );
    for name in [&name, &sorted] {
        draft.declare(name);
        draft.call(dice, name);
    }
}

fn common(draft: &mut Draft, dice: &mut Dice, unit: usize) {
    let (one, name) = (draft.name("shared"), draft.name("collect"));
    draft.declarations += &format!("extern unsigned {one}[];\n");
    draft.units[unit] += &format!(
        "unsigned {one}[{}];\nunsigned {name}(unsigned a, unsigned b)\n{{\n    {one}[a % 4u] += b;\n    return {one}[b % 4u] * {}u + {one}[1];\n}}\n\n",
        dice.between(4, 9),
        dice.between(2, 30)
    );
    draft.declare(&name);
    draft.call(dice, &name);
    draft.call(dice, &name);
}

fn bits_and_copies(draft: &mut Draft, dice: &mut Dice, unit: usize) {
    let name = draft.name("pack");
    let widths = [dice.between(3, 9), dice.between(3, 9)];
    draft.units[unit] += &format!(
        "struct {name}_bits {{ unsigned low : {}; unsigned high : {}; int rest; }};\nunion {name}_view {{ struct {name}_bits bits; unsigned words[2]; }};\nunsigned {name}(unsigned a, unsigned b)\n{{\n    union {name}_view view, copy;\n    view.words[0] = 0;\n    view.bits.rest = {};\n    view.bits.low = a;\n    view.bits.high = b;\n    memcpy(&copy, &view, sizeof copy);\n    return copy.words[0] * 3u + (unsigned)copy.bits.rest;\n}}\n\n",
        widths[0],
        widths[1],
        dice.below(999)
    );
    draft.declare(&name);
    draft.call(dice, &name);
}
