use std::path::Path;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let map = std::fs::read(&a[2]).unwrap();
    let t = std::time::Instant::now();
    let m = tasting::link::describe::manifest(Path::new(&a[1]), Ok(&map), &Default::default()).unwrap();
    eprintln!("{:?} {} bytes", t.elapsed(), m.len());
    std::fs::write(format!("{}.tasting", a[1]), m).unwrap();
}
