//! What was counted. Everything here adds up, over workers, programs and interrupted runs.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Random programs and their mutants.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sums {
    pub programs: u64,
    /// Programs that were not built, or that run too long or unsteadily.
    pub programs_left_out: u64,
    /// Builds of changed programs; one holds a mutation of each of its tests.
    pub builds: u64,
    /// Mutants that were built.
    pub mutants: u64,
    /// Mutants that the compiler or linker refused.
    pub refused: u64,
    pub refused_kinds: BTreeMap<String, u64>,
    /// Mutants that end differently, in the same way each time.
    pub changing: u64,
    pub changing_by_compiler: BTreeMap<String, u64>,
    pub changing_by_level: BTreeMap<String, u64>,
    /// Of each kind of mutation: built, and behaviour-changing.
    pub kinds: BTreeMap<String, (u64, u64)>,
    /// Of each kind of program: programs, and behaviour-changing mutants.
    pub sorts: BTreeMap<String, (u64, u64)>,
    pub linkers: BTreeMap<String, u64>,
    /// Mutants that end this way and that.
    pub unsteady: u64,
    /// Mutants that were stopped after their time.
    pub hangs: u64,
    /// Tests of changed programs that were asked about.
    pub judged: u64,
    /// … and end as before.
    pub equal: u64,
    /// … and have another fingerprint.
    pub equal_selected_by_fingerprint: u64,
    /// … and would be run by `tasting run`, of those that were asked about.
    pub equal_asked: u64,
    pub equal_selected_by_execution: u64,
    /// Mutants in which nothing that the linker kept differs.
    pub untouched: u64,
    /// … and which have another fingerprint all the same.
    pub untouched_selected: u64,
    /// Mutants of which the object code differs for certain where the linker kept it.
    pub touched: u64,
    /// Two behaviours with one fingerprint.
    pub static_misses: u64,
    /// A result that was reused wrongly.
    pub executed_misses: u64,
    /// Other object code with the same fingerprint.
    pub object_misses: u64,
    /// `tasting run` ended differently from the program itself, though it ran it.
    pub disturbed: u64,
    /// Copies with everything destroyed that was not executed.
    pub scorched: u64,
    /// Bytes destroyed in them, and bytes of code and data in all.
    pub scorched_bytes: (u64, u64),
    pub scorched_differ: u64,
    /// Runs that counted by all that can be reached, so that there was less to destroy.
    pub not_traced: u64,
    pub seconds: u64,
}

impl Sums {
    pub fn misses(&self) -> u64 {
        self.static_misses + self.executed_misses + self.object_misses + self.scorched_differ
    }

    pub fn add(&mut self, other: &Sums) {
        macro_rules! add {
            ($($field:ident)*) => { $( self.$field += other.$field; )* };
        }
        add!(programs programs_left_out builds mutants refused changing unsteady hangs judged equal equal_selected_by_fingerprint equal_asked
            equal_selected_by_execution untouched untouched_selected touched static_misses executed_misses object_misses
            disturbed scorched scorched_differ not_traced seconds);
        self.scorched_bytes.0 += other.scorched_bytes.0;
        self.scorched_bytes.1 += other.scorched_bytes.1;
        for (mine, others) in [(&mut self.kinds, &other.kinds), (&mut self.sorts, &other.sorts)] {
            for (name, (one, two)) in others {
                let sum = mine.entry(name.clone()).or_default();
                sum.0 += one;
                sum.1 += two;
            }
        }
        for (mine, others) in [
            (&mut self.changing_by_compiler, &other.changing_by_compiler),
            (&mut self.changing_by_level, &other.changing_by_level),
            (&mut self.linkers, &other.linkers),
            (&mut self.refused_kinds, &other.refused_kinds),
        ] {
            others.iter().for_each(|(name, count)| *mine.entry(name.clone()).or_default() += count);
        }
    }
}

pub fn share(part: u64, whole: u64) -> String {
    if whole == 0 { "-".to_owned() } else { format!("{:.1} %", 100.0 * part as f64 / whole as f64) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_add_up_and_come_back() {
        let mut one = Sums { programs: 1, scorched_bytes: (1, 2), ..Sums::default() };
        one.kinds.insert("constant".to_owned(), (3, 2));
        let mut two = one.clone();
        two.add(&one);
        assert_eq!((two.programs, two.kinds["constant"], two.scorched_bytes), (2, (6, 4), (2, 4)));
        assert_eq!(
            serde_json::from_str::<Sums>(&serde_json::to_string(&two).unwrap()).unwrap(),
            two
        );
    }
}
