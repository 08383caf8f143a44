//! What only C++ has: virtual functions and bases, exceptions, lambdas, templates, inline
//! variables, initialisation at the start of the program. What headers define is in several units,
//! and the linker takes one of them.

use super::c::{Draft, other};
use super::c_features::Feature;
use crate::dice::Dice;

pub const ALL: [Feature; 10] = [
    virtual_methods,
    virtual_bases,
    exceptions,
    exceptions,
    lambdas,
    templates,
    comdat_choice,
    inline_variable,
    initialisers,
    run_time_types,
];

/// Behind the block in which the header declares C functions: what has C++ linkage.
fn in_header(draft: &mut Draft, text: &str) {
    draft.declarations += &format!("}}\n{text}extern \"C\" {{\n");
}

fn virtual_methods(draft: &mut Draft, dice: &mut Dice, unit: usize) {
    let (shape, name) = (draft.name("Shape"), draft.name("areas"));
    let elsewhere = other(draft, dice, unit);
    in_header(
        draft,
        &format!(
            "struct {shape} {{ virtual unsigned area(unsigned x) const {{ return x + {}; }} virtual unsigned edge(unsigned x) const; virtual ~{shape}() {{}} }};\nstruct {shape}Round : {shape} {{ unsigned radius = {}; unsigned area(unsigned x) const override; }};\n",
            dice.below(99),
            dice.below(50)
        ),
    );
    draft.units[elsewhere] += &format!(
        "unsigned {shape}::edge(unsigned x) const {{ return x * {}u; }}\nunsigned {shape}Round::area(unsigned x) const {{ return x * radius + {}; }}\n",
        dice.between(2, 30),
        dice.below(99)
    );
    draft.units[unit] += &format!(
        "namespace {{ struct {shape}Square final : {shape} {{ unsigned area(unsigned x) const override {{ return x * x; }} unsigned edge(unsigned x) const override {{ return x ^ {}u; }} }}; }}\nunsigned {name}(unsigned a, unsigned b)\n{{\n    {shape} plain;\n    {shape}Round round;\n    {shape}Square square;\n    const {shape} *all[] = {{&plain, &round, &square}};\n    unsigned sum = b;\n    for (unsigned i = 0; i < 3; i++) {{\n        TICK;\n        sum = MIX(sum, all[(a + i) % 3u]->area(i + 2) + all[i]->edge(a));\n    }}\n    return sum;\n}}\n\n",
        dice.below(99)
    );
    draft.declare(&name);
    draft.call(dice, &name);
}

fn virtual_bases(draft: &mut Draft, dice: &mut Dice, unit: usize) {
    let (base, name) = (draft.name("Base"), draft.name("diamond"));
    in_header(
        draft,
        &format!(
            "struct {base} {{ unsigned value; explicit {base}(unsigned v) : value(v) {{}} virtual unsigned get() {{ return value; }} virtual ~{base}() {{ printf(\"~base %u\\n\", value); }} }};\nstruct {base}Left : virtual {base} {{ unsigned left = {}; {base}Left() : {base}({}) {{}} unsigned get() override {{ return value + left; }} }};\nstruct {base}Right : virtual {base} {{ unsigned right = {}; {base}Right() : {base}({}) {{}} virtual unsigned more() {{ return right * value; }} }};\n",
            dice.below(99),
            dice.below(99),
            dice.below(99),
            dice.below(99)
        ),
    );
    draft.units[unit] += &format!(
        "namespace {{ struct {base}Both : {base}Left, {base}Right {{ {base}Both(unsigned v) : {base}(v) {{}} unsigned more() override {{ return get() * 2u + right; }} }}; }}\nunsigned {name}(unsigned a, unsigned b)\n{{\n    {base}Both both(a + {});\n    {base}Right *right = &both;\n    {base} *base = right;\n    return MIX(base->get(), right->more()) + b;\n}}\n\n",
        dice.below(50)
    );
    draft.declare(&name);
    draft.call(dice, &name);
}

fn exceptions(draft: &mut Draft, dice: &mut Dice, unit: usize) {
    let (error, thrower, name) = (draft.name("Error"), draft.name("risky"), draft.name("guarded"));
    let elsewhere = other(draft, dice, unit);
    in_header(
        draft,
        &format!(
            "struct {error} {{ unsigned code; }};\nstruct {error}Worse : {error} {{ {error}Worse(unsigned c) : {error}{{c + {}}} {{}} }};\nstruct {error}Guard {{ unsigned number; ~{error}Guard() {{ note(\"guard\", number); }} }};\n",
            dice.below(99)
        ),
    );
    draft.units[elsewhere] += &format!(
        "unsigned {thrower}(unsigned a, unsigned b)\n{{\n    {error}Guard guard{{b}};\n    TICK;\n    switch (a % 5u) {{\n    case 0: throw {error}{{a + {}}};\n    case 1: throw {error}Worse(b);\n    case 2: throw (int)b;\n    case 3: throw \"text\";\n    }}\n    return a * b + {};\n}}\n\n",
        dice.below(99),
        dice.below(99)
    );
    draft.declare_only(&thrower);
    let mut catches = [
        format!("catch (const {error}Worse &e) {{ sum += e.code * {}u; }}", dice.between(2, 20)),
        format!("catch (const {error} &e) {{ sum ^= e.code + {}; }}", dice.below(99)),
        format!("catch (int n) {{ sum += (unsigned)n * {}u; }}", dice.between(2, 20)),
    ];
    if dice.percent(30) {
        catches.swap(0, 1);
    }
    let noexcept = if dice.percent(20) { "noexcept " } else { "" };
    draft.units[unit] += &format!(
        "static unsigned {name}_inner(unsigned a, unsigned b) {noexcept}\n{{\n    {error}Guard guard{{a + {}}};\n    unsigned sum = b;\n    try {{ sum += {thrower}(a, b); }} {} catch (...) {{ sum -= {}; }}\n    return sum;\n}}\nunsigned {name}(unsigned a, unsigned b)\n{{\n    unsigned sum = b;\n    for (unsigned i = 0; i < 5; i++) {{\n        TICK;\n        sum = MIX(sum, {name}_inner(a + i, b));\n    }}\n    return sum;\n}}\n\n",
        dice.below(99),
        catches.join(" "),
        dice.between(1, 99)
    );
    draft.declare(&name);
    draft.call(dice, &name);
}

fn lambdas(draft: &mut Draft, dice: &mut Dice, unit: usize) {
    let name = draft.name("closures");
    draft.units[unit] += &format!(
        "template <class F> static unsigned {name}_twice(F f, unsigned x) {{ return f(f(x)); }}\nunsigned {name}(unsigned a, unsigned b)\n{{\n    unsigned count = 0;\n    auto add = [&count, b](unsigned x) {{ count++; return x + b + {}; }};\n    auto scale = [=](unsigned x) mutable {{ a += {}; return x * a; }};\n    unsigned (*plain)(unsigned) = [](unsigned x) {{ return x ^ {}u; }};\n    unsigned sum = {name}_twice(add, a) + {name}_twice(scale, b) + {name}_twice(plain, a);\n    return sum + count * {}u;\n}}\n\n",
        dice.below(99),
        dice.between(1, 9),
        dice.below(99),
        dice.between(1, 9)
    );
    draft.declare(&name);
    draft.call(dice, &name);
}

fn templates(draft: &mut Draft, dice: &mut Dice, unit: usize) {
    let base = draft.name("Stack");
    in_header(
        draft,
        &format!(
            "template <class T, unsigned N> struct {base} {{ T items[N]; unsigned used = 0; static unsigned made; {base}() {{ made++; }} void push(T item) {{ items[used++ % N] = item; }} T sum() const {{ T total = {}; for (unsigned i = 0; i < used && i < N; i++) total = total * 3 + items[i]; return total; }} }};\ntemplate <class T, unsigned N> unsigned {base}<T, N>::made = {};\ntemplate <unsigned N> struct {base}Power {{ static constexpr unsigned value = {base}Power<N - 1>::value * {}; }};\ntemplate <> struct {base}Power<0> {{ static constexpr unsigned value = {}; }};\n",
            dice.below(9),
            dice.below(30),
            dice.between(2, 5),
            dice.between(1, 5)
        ),
    );
    for home in [unit, other(draft, dice, unit)] {
        let name = draft.name("stacked");
        let kind = dice.pick(&["unsigned", "short", "int", "unsigned char"]);
        draft.units[home] += &format!(
            "unsigned {name}(unsigned a, unsigned b)\n{{\n    {base}<{kind}, {}> stack;\n    for (unsigned i = 0; i < {}; i++) {{\n        TICK;\n        stack.push(({kind})(a * i + b));\n    }}\n    return (unsigned)stack.sum() + stack.made + {base}Power<{}>::value;\n}}\n\n",
            dice.between(3, 6),
            dice.between(2, 9),
            dice.between(1, 6)
        );
        draft.declare(&name);
        draft.call(dice, &name);
    }
}

/// Two units define the same inline function differently, which nobody may do and many do: the
/// first one is taken.
fn comdat_choice(draft: &mut Draft, dice: &mut Dice, unit: usize) {
    let chosen = draft.name("chosen");
    for home in [unit, other(draft, dice, unit)] {
        let name = draft.name("chooser");
        let number = dice.below(999);
        draft.units[home] += &format!(
            "__attribute__((noinline)) inline unsigned {chosen}(unsigned x) {{ static unsigned times = {}; return x * {number}u + times++; }}\nunsigned {name}(unsigned a, unsigned b) {{ return {chosen}(a) + b; }}\n",
            number % 50
        );
        draft.declare(&name);
        draft.call(dice, &name);
    }
}

fn inline_variable(draft: &mut Draft, dice: &mut Dice, unit: usize) {
    let number = draft.name("knob");
    in_header(
        draft,
        &format!(
            "inline unsigned {number} = {};\ninline const char *const {number}_name = \"{number} {}\";\n",
            dice.below(999),
            dice.below(9)
        ),
    );
    for home in [unit, other(draft, dice, unit)] {
        let name = draft.name("knobs");
        draft.units[home] += &format!(
            "unsigned {name}(unsigned a, unsigned b) {{ {number} += a; note({number}_name, b); return {number} * {}u; }}\n",
            dice.between(2, 9)
        );
        draft.declare(&name);
        draft.call(dice, &name);
    }
}

fn initialisers(draft: &mut Draft, dice: &mut Dice, unit: usize) {
    let order = draft.name("Start");
    in_header(
        draft,
        &format!(
            "struct {order} {{ unsigned value; {order}(unsigned v); ~{order}(); }};\nextern unsigned {order}_sum, {order}_armed;\n"
        ),
    );
    draft.units[unit] += &format!(
        "unsigned {order}_sum = {}, {order}_armed;\n{order}::~{order}() {{ if ({order}_armed) printf(\"stop %u\\n\", value); }}\n{order}::{order}(unsigned v) : value(v) {{ {order}_sum = MIX({order}_sum, v * {}u); }}\nstatic {order} {order}_one({});\nstatic {order} {order}_two({});\n",
        dice.below(99),
        dice.between(2, 9),
        dice.below(99),
        dice.below(99)
    );
    let elsewhere = other(draft, dice, unit);
    draft.units[elsewhere] += &format!(
        "{order} {order}_three({});\nstatic unsigned {order}_late = lab_scale({order}_sum);\n",
        dice.below(99)
    );
    // Only this test is to hear of the ends: a mutation counts once.
    draft.main += &format!("    {order}_armed = 1;\n");
    let name = draft.name("started");
    draft.units[elsewhere] += &format!(
        "unsigned {name}(unsigned a, unsigned b) {{ return {order}_sum * a + {order}_late + b; }}\n"
    );
    draft.declare(&name);
    draft.call(dice, &name);
}

fn run_time_types(draft: &mut Draft, dice: &mut Dice, unit: usize) {
    let (animal, name) = (draft.name("Animal"), draft.name("kinds"));
    in_header(
        draft,
        &format!(
            "struct {animal} {{ virtual ~{animal}() {{}} }};\nstruct {animal}Cat : {animal} {{ unsigned lives = {}; }};\nstruct {animal}Dog : {animal} {{ unsigned age = {}; }};\n{animal} *{animal}_make(unsigned which);\n",
            dice.below(20),
            dice.below(20)
        ),
    );
    let elsewhere = other(draft, dice, unit);
    draft.units[elsewhere] += &format!(
        "static {animal}Cat {animal}_cat;\nstatic {animal}Dog {animal}_dog;\nstatic {animal} {animal}_plain;\n{animal} *{animal}_make(unsigned which) {{ if (which % 3u == 0) return &{animal}_cat; return which % 3u == 1 ? ({animal} *)&{animal}_dog : &{animal}_plain; }}\n"
    );
    draft.units[unit] += &format!(
        "unsigned {name}(unsigned a, unsigned b)\n{{\n    unsigned sum = b;\n    for (unsigned i = 0; i < 3; i++) {{\n        TICK;\n        {animal} *it = {animal}_make(a + i);\n        if (auto *cat = dynamic_cast<{animal}Cat *>(it)) sum = MIX(sum, cat->lives + {});\n        else if (auto *dog = dynamic_cast<{animal}Dog *>(it)) sum = MIX(sum, dog->age * {}u);\n        else sum += {};\n    }}\n    return sum;\n}}\n\n",
        dice.below(99),
        dice.between(2, 9),
        dice.between(1, 99)
    );
    draft.declare(&name);
    draft.call(dice, &name);
}
