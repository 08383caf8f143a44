//! The soundness laboratory: hunts for changes that Tasting misses. See docs/lab.md.
//!
//! `generate` (programs) → `mutate` → `bench` (built with the shims) → `trial` (the oracle: `process`, `objects`) → `sums`.

mod bench;
mod dice;
mod generate;
mod mutate;
mod objects;
mod process;
mod program;
mod setup;
mod sums;
mod trial;

fn main() -> anyhow::Result<()> {
    let mut words = std::env::args().skip(1);
    let seed: u64 = words.next().unwrap().parse()?;
    let first: u64 = words.next().unwrap().parse()?;
    let last: u64 = words.next().unwrap().parse()?;
    let built = std::env::current_exe()?;
    let built = std::env::var_os("BUILT").map_or(built.parent().unwrap().to_owned(), Into::into);
    let plan = trial::Plan {
        tools: setup::Tools::in_folder(&built)?,
        seed,
        level: "mixed".to_owned(),
        mutants: 40,
        scratch: "/dev/shm/tasting-lab".into(),
        misses: "/tmp/lab-misses".into(),
        blind: std::env::var_os("BLIND").is_some(),
    };
    let mut sums = sums::Sums::default();
    for number in first..last {
        let start = std::time::Instant::now();
        let one = trial::run(&plan, number)?;
        eprintln!("{number}: {} mutants, {} changing, refused {}, left out {}, {:?}", one.mutants, one.changing, one.refused, one.programs_left_out, start.elapsed());
        sums.add(&one);
    }
    println!("{}", serde_json::to_string_pretty(&sums)?);
    Ok(())
}
