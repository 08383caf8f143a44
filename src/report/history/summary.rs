//! The sums over a range of commits: what would have been reused, what that would have saved, what
//! would have been missed.
//!
//! In: commits with their tests. Out: sums, and a row for each granularity.

use super::{Commit, Test};
use crate::model::{Audit, Granularities, Verdict};
use crate::report::units::{counted, duration, share};
use serde::{Deserialize, Serialize};

/// What building and testing one commit takes, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overhead {
    pub plain_build_ms: u64,
    pub build_ms: u64,
    pub plain_test_ms: u64,
    pub test_ms: u64,
}

/// The sums.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Summary {
    pub commits: u64,
    pub not_built: u64,
    pub executions: u64,
    pub failures: u64,
    pub reused: Granularities<u64>,
    pub total_ms: u64,
    pub saved_ms: Granularities<u64>,
    /// Results that would have been reused, and would have been wrong.
    pub missed: u64,
    pub misses: Vec<Miss>,
    /// Tests that end this way and that by themselves.
    pub unstable: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overhead: Option<Overhead>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<Times>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ast: Option<AstSums>,
}

/// What testing takes without Tasting, and with results reused as far as they can be, in
/// milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times {
    pub plain_ms: u64,
    pub reusing_ms: u64,
    /// Processor time, of all processes.
    pub plain_cpu_ms: u64,
    pub reusing_cpu_ms: u64,
    /// Commits whose tests together ended with success in one of the two ways only.
    pub other_ends: u64,
}

/// What would have been reused in builds at the AST level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AstSums {
    pub executions: u64,
    pub reused: u64,
    pub total_ms: u64,
    pub saved_ms: u64,
}

/// One granularity, as it is shown.
pub struct Row {
    pub name: &'static str,
    /// The share of executions that would have run, and the share of the time that would have been
    /// saved.
    pub ran: String,
    pub saved: String,
    /// The time that would have been left.
    pub left: String,
    /// What would have run, of 100.
    pub percent: f64,
}

/// A test whose result would have been wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Miss {
    pub sha: String,
    pub name: String,
    pub exit_code: i32,
    /// The level of the build, where it is not that of the granularities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
}

impl Summary {
    /// Sums up commits.
    pub fn of(commits: &[Commit]) -> Self {
        let mut sums = Summary { commits: commits.len() as u64, ..Summary::default() };
        for commit in commits {
            sums.not_built += u64::from(!commit.built);
            sums.overhead = sums.overhead.or(commit.overhead);
            if let Some(times) = &commit.times {
                sums.times.get_or_insert_default().add(times);
            }
            commit.tests.iter().for_each(|test| sums.count(&commit.sha, test));
        }
        sums
    }

    fn count(&mut self, sha: &str, test: &Test) {
        self.executions += 1;
        self.failures += u64::from(test.has_failed());
        self.total_ms += test.duration_ms;
        self.unstable += u64::from(test.audit == Some(Audit::Unstable));
        self.count_miss(sha, test, test.exit_code, test.audit, None);
        let sums = self.reused.values_mut().into_iter().zip(self.saved_ms.values_mut());
        for ((reused, saved), verdict) in sums.zip(test.decision.values()) {
            if *verdict == Verdict::Reused {
                *reused += 1;
                *saved += test.duration_ms;
            }
        }
        if let Some(ast) = test.ast {
            self.count_miss(sha, test, ast.exit_code, ast.audit, Some("ast"));
            self.ast.get_or_insert_default().count(ast.decision, test.duration_ms);
        }
    }

    fn count_miss(
        &mut self,
        sha: &str,
        test: &Test,
        exit_code: i32,
        audit: Option<Audit>,
        level: Option<&str>,
    ) {
        if audit == Some(Audit::Missed) {
            self.missed += 1;
            let (sha, name, level) =
                (sha.to_owned(), test.name.to_string(), level.map(str::to_owned));
            self.misses.push(Miss { sha, name, exit_code, level });
        }
    }

    /// One row for each granularity, and one for the AST level where that was asked for.
    pub fn rows(&self) -> Vec<Row> {
        let (reused, saved) = (self.reused.values(), self.saved_ms.values());
        let names = Granularities::<u64>::NAMES.into_iter().zip(reused).zip(saved);
        let row = |((name, reused), saved): ((_, &u64), &u64)| {
            Row::new(name, (*reused, self.executions), (*saved, self.total_ms))
        };
        let ast = |ast: AstSums| {
            Row::new("ast", (ast.reused, ast.executions), (ast.saved_ms, ast.total_ms))
        };
        names.map(row).chain(self.ast.map(ast)).collect()
    }
}

impl Row {
    /// What was reused of all executions; what was saved of all time.
    fn new(
        name: &'static str,
        (reused, executions): (u64, u64),
        (saved, total): (u64, u64),
    ) -> Row {
        let ran = share(executions.saturating_sub(reused), executions);
        let percent = |share: Option<f64>| {
            share.map_or("–".to_owned(), |share| format!("{:.1}%", share * 100.0))
        };
        Row {
            name,
            ran: percent(ran),
            saved: percent(share(saved, total)),
            left: duration(total.saturating_sub(saved)),
            percent: ran.unwrap_or(1.0) * 100.0,
        }
    }
}

impl AstSums {
    fn count(&mut self, decision: Verdict, duration_ms: u64) {
        let is_reused = decision == Verdict::Reused;
        self.executions += 1;
        self.reused += u64::from(is_reused);
        self.total_ms += duration_ms;
        self.saved_ms += if is_reused { duration_ms } else { 0 };
    }
}

impl Overhead {
    /// For people, without the full stop.
    pub fn sentence(&self) -> String {
        let with = |with, without| format!("{} instead of {}", duration(with), duration(without));
        let Overhead { plain_build_ms, build_ms, plain_test_ms, test_ms } = *self;
        format!(
            "building takes {}, watching all tests {}",
            with(build_ms, plain_build_ms),
            with(test_ms, plain_test_ms)
        )
    }
}

impl Times {
    fn add(&mut self, other: &Times) {
        self.plain_ms += other.plain_ms;
        self.reusing_ms += other.reusing_ms;
        self.plain_cpu_ms += other.plain_cpu_ms;
        self.reusing_cpu_ms += other.reusing_cpu_ms;
        self.other_ends += other.other_ends;
    }

    /// For people, without the full stop.
    pub fn sentence(&self) -> String {
        let with = |with, without| format!("{} instead of {}", duration(with), duration(without));
        let ends = match self.other_ends {
            0 => String::new(),
            count => format!("; {} ended otherwise with results reused", counted(count, "commit")),
        };
        format!(
            "testing with results reused takes {}, of processor time {}{ends}",
            with(self.reusing_ms, self.plain_ms),
            with(self.reusing_cpu_ms, self.plain_cpu_ms)
        )
    }
}
