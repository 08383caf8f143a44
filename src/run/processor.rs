//! A name for the processor's features. Libraries choose other code where the processor offers
//! more, and their query for features cannot be observed.

use crate::model::Hasher;

/// A name for all processors that can do the same.
pub fn name() -> String {
    name_of(&features())
}

fn name_of(features: &[(&str, bool)]) -> String {
    let mut hasher = Hasher::new("processor");
    for (feature, _) in features.iter().filter(|(_, is_there)| *is_there) {
        hasher.bytes(feature.as_bytes());
    }
    format!("{}-{}", std::env::consts::ARCH, &hasher.finish().to_string()[..8])
}

#[cfg(target_arch = "x86_64")]
fn features() -> Vec<(&'static str, bool)> {
    macro_rules! detected {
        ($($name:tt)*) => { vec![$(($name, std::arch::is_x86_feature_detected!($name))),*] };
    }
    detected!(
        "sse3" "ssse3" "sse4.1" "sse4.2" "sse4a" "popcnt" "aes" "pclmulqdq" "rdrand" "rdseed" "tbm" "sha" "avx" "avx2" "fma" "f16c"
        "bmi1" "bmi2" "lzcnt" "movbe" "adx" "gfni" "vaes" "vpclmulqdq" "avx512f" "avx512cd" "avx512bw" "avx512dq" "avx512vl"
        "avx512ifma" "avx512vbmi" "avx512vbmi2" "avx512vnni" "avx512bitalg" "avx512vpopcntdq" "avx512bf16"
    )
}

#[cfg(target_arch = "aarch64")]
fn features() -> Vec<(&'static str, bool)> {
    macro_rules! detected {
        ($($name:tt)*) => { vec![$(($name, std::arch::is_aarch64_feature_detected!($name))),*] };
    }
    detected!(
        "neon" "pmull" "fp16" "sve" "crc" "lse" "lse2" "rdm" "rcpc" "dotprod" "fhm" "fcma" "jsconv" "frintts" "aes" "sha2" "sha3" "sm4"
        "bf16" "i8mm" "f32mm" "f64mm" "sve2" "bti" "mte" "paca" "rand"
    )
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn features() -> Vec<(&'static str, bool)> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_features_make_the_name() {
        assert_eq!(name(), name());
        assert!(name().starts_with(std::env::consts::ARCH));
        let name = |features: &[(&'static str, bool)]| name_of(features);
        assert_eq!(name(&[("a", true), ("b", false)]), name(&[("a", true)]));
        assert_ne!(name(&[("a", true), ("b", true)]), name(&[("a", true), ("b", false)]));
    }
}
