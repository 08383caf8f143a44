//! Programs in C: several units full of small functions that call each other over files, most of
//! them reached from `main`, most of those executed; and features of the compiler and linker in
//! between.

use super::expression::{self, Scope};
use super::{address_features, c_features};
use crate::dice::Dice;
use crate::program::{Language, Packaging, Program, Segment, Test, Unit};

/// What tells a program which of its tests to run, and how many there can be.
const ARGUMENTS: &[u8; 62] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

/// A program under construction, test by test.
pub struct Draft {
    /// The text of the test at hand, by unit.
    pub units: Vec<String>,
    /// What units see of each other.
    pub declarations: String,
    /// Functions `unsigned f(unsigned, unsigned)` of the test at hand that are visible everywhere.
    pub functions: Vec<String>,
    /// What the test does.
    pub main: String,
    /// Numbers what is made, so that names differ.
    pub count: usize,
    finished: Vec<Vec<Segment>>,
    tests: Vec<Test>,
}

/// Another unit than this one.
pub fn other(draft: &Draft, dice: &mut Dice, unit: usize) -> usize {
    (unit + dice.between(1, draft.units.len() - 1)) % draft.units.len()
}

impl Draft {
    pub fn new(units: usize) -> Draft {
        let (declarations, functions, main, tests) = Default::default();
        let (units, finished) = (vec![String::new(); units], vec![Vec::new(); units]);
        Draft { units, declarations, functions, main, count: 0, finished, tests }
    }

    /// What the names of the test at hand hold.
    fn mark(&self) -> String {
        format!("T{}x_", self.tests.len())
    }

    pub fn name(&mut self, sort: &str) -> String {
        self.count += 1;
        format!("{}{sort}_{}", self.mark(), self.count)
    }

    /// Ends a test: what comes next belongs to another one.
    pub fn end_test(&mut self) {
        let (mark, owner) = (self.mark(), Some(self.tests.len()));
        let entry = format!("{mark}main");
        self.declarations += &format!("int {entry}(int count);\n");
        self.units[0] += &format!(
            "int {entry}(int count)\n{{\n{}    note(\"count\", (unsigned)count);\n    return 0;\n}}\n\n",
            self.main
        );
        for (unit, finished) in self.units.iter_mut().zip(&mut self.finished) {
            finished.push(Segment { owner, text: std::mem::take(unit) });
        }
        self.main.clear();
        let argument = Some(char::from(ARGUMENTS[self.tests.len()]).to_string());
        self.tests.push(Test {
            argument,
            entry: Some(entry),
            mark,
            alike: std::mem::take(&mut self.functions),
        });
    }

    /// Makes a function known to all units, which do not call it of their own accord.
    pub fn declare_only(&mut self, name: &str) {
        self.declarations += &format!("unsigned {name}(unsigned a, unsigned b);\n");
    }

    /// Makes a function known to all units.
    pub fn declare(&mut self, name: &str) {
        self.declarations += &format!("unsigned {name}(unsigned a, unsigned b);\n");
        self.functions.push(name.to_owned());
    }

    /// Lets `main` call a function; or lets it look as if it did; or not.
    pub fn call(&mut self, dice: &mut Dice, name: &str) {
        let (a, b) = (dice.below(200), dice.below(200));
        let call = format!("note(\"{name}\", {name}({a}, {b}u));");
        self.main += &match dice.below(20) {
            0 => String::new(),
            1 => format!("    if (count > 5) {call}\n"),
            2..6 => format!("    {call}\n"),
            // With several numbers, so that it goes more than one way.
            _ => format!(
                "    for (unsigned i = 0; i < {}; i++) note(\"{name}\", {name}({a} + i * {}u, {b}u ^ i));\n",
                dice.between(2, 5),
                dice.between(1, 70)
            ),
        };
    }

    /// An ordinary function in a unit, that calls some of those before it.
    pub fn function(&mut self, dice: &mut Dice, unit: usize) -> String {
        let name = self.name("f");
        let helper = dice.percent(40).then(|| self.helper(dice, unit));
        let mut callees: Vec<String> = helper.into_iter().collect();
        // Those before it only: no recursion but the one that is meant.
        let earlier = self.functions.len();
        for _ in 0..earlier.min(3) {
            callees.push(dice.pick(&self.functions).clone());
        }
        let mut scope = Scope {
            read: ["a", "b", "x", "y"].map(str::to_owned).to_vec(),
            written: ["x", "y"].map(str::to_owned).to_vec(),
            callees: &callees,
            calls: 2,
        };
        let count = dice.between(2, 5);
        let body = expression::statements(dice, &mut scope, count, "    ");
        let result = expression::expression(dice, &mut scope, 2);
        self.units[unit] += &format!(
            "unsigned {name}(unsigned a, unsigned b)\n{{\n    unsigned x = a + {}, y = lab_scale(b);\n    TICK;\n{body}    return {result} + x * 3u + y;\n}}\n\n",
            dice.below(50)
        );
        self.declare(&name);
        name
    }

    /// A static function.
    fn helper(&mut self, dice: &mut Dice, unit: usize) -> String {
        let name = self.name("helper");
        let mut scope = Scope {
            read: vec!["p".to_owned(), "q".to_owned()],
            written: vec!["p".to_owned()],
            callees: &[],
            calls: 0,
        };
        let body = expression::statements(dice, &mut scope, 1, "    ");
        let result = expression::expression(dice, &mut scope, 2);
        self.units[unit] += &format!(
            "static unsigned {name}(unsigned p, unsigned q)\n{{\n{body}    return {result} + p;\n}}\n\n"
        );
        name
    }

    /// The unit with `main`, and the rest of the program.
    pub fn finish(
        mut self,
        dice: &mut Dice,
        sort: &'static str,
        language: Language,
        flags: &[&str],
    ) -> Program {
        let (linkage, ending) =
            if language == Language::Cxx { ("extern \"C\" ", "cc") } else { ("", "c") };
        // Called through a pointer that nobody can see through: inside of `main` a test would be a
        // part of all others, and its mutations would change what they execute.
        let mut main = format!(
            "unsigned lab_fuel = 100000;\n{linkage}void note(const char *what, unsigned value)\n{{\n    TICK;\n    printf(\"%s %u\\n\", what, value);\n}}\n\nint main(int count, char **words)\n{{\n    int (*volatile test)(int) = 0;\n    switch (count > 1 ? words[1][0] : 0) {{\n"
        );
        for Test { argument, entry, .. } in &self.tests {
            let (argument, entry) =
                (argument.as_deref().unwrap_or_default(), entry.as_deref().unwrap_or_default());
            main += &format!("    case '{argument}': test = {entry}; break;\n");
        }
        main += "    }\n    return test ? test(count) : 9;\n}\n";
        self.finished[0].push(Segment { owner: None, text: main });
        let places = super::places(dice, self.finished.len());
        let unit = |(index, (mut segments, place)): (usize, (Vec<Segment>, Packaging))| {
            segments.insert(
                0,
                Segment {
                    owner: None,
                    text: "#include \"lab.h\"\n#include \"knobs.h\"\n".to_owned(),
                },
            );
            Unit { name: format!("u{index}.{ending}"), segments, place }
        };
        Program {
            sort,
            language,
            headers: super::headers(&self.declarations),
            units: self.finished.into_iter().zip(places).enumerate().map(unit).collect(),
            tests: self.tests,
            flags: flags.iter().map(|flag| flag.to_string()).collect(),
            has_fuel: true,
        }
    }
}

pub fn program(dice: &mut Dice) -> Program {
    let count = dice.between(3, 4);
    let mut draft = Draft::new(count);
    // Starting compilers and linkers takes longer than compiling what a test is made of, and one
    // build answers for a mutation of each test.
    for _ in 0..dice.between(40, 50) {
        for _ in 0..dice.between(2, 4) {
            let unit = dice.below(count);
            match dice.below(100) {
                0..38 => {
                    let name = draft.function(dice, unit);
                    draft.call(dice, &name);
                }
                38..53 => dice.pick(&address_features::ALL)(&mut draft, dice, unit),
                _ => dice.pick(&c_features::ALL)(&mut draft, dice, unit),
            }
        }
        draft.end_test();
    }
    let flags: &[&str] = if dice.percent(25) { &["-fcommon"] } else { &[] };
    draft.finish(dice, "c", Language::C, flags)
}
