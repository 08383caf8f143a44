//! Times, durations, sizes, shares and commands as people read them.

use crate::model::{Origin, calendar};
use std::fmt::Write;

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// A duration: `31 ms`, `1.2 s`, `3 min 5 s`, `2 h 10 min`.
pub fn duration(milliseconds: u64) -> String {
    match milliseconds {
        0..1000 => format!("{milliseconds} ms"),
        // What would round to 60.0 s is a minute.
        1000..59_950 => format!("{:.1} s", milliseconds as f64 / 1000.0),
        59_950..HOUR => format!(
            "{} min {} s",
            (milliseconds + 50) / MINUTE,
            (milliseconds + 50) % MINUTE / 1000
        ),
        _ => format!("{} h {} min", milliseconds / HOUR, milliseconds % HOUR / MINUTE),
    }
}

/// A size: `512 B`, `1.5 KiB`, `3.2 GiB`.
pub fn size(bytes: u64) -> String {
    let mut number = bytes as f64;
    let mut unit = "B";
    for larger in ["KiB", "MiB", "GiB", "TiB"] {
        if number < 1023.95 {
            break;
        }
        (number, unit) = (number / 1024.0, larger);
    }
    if unit == "B" { format!("{bytes} B") } else { format!("{number:.1} {unit}") }
}

/// A share: `80.0%`. `None` of nothing.
pub fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// A moment: `2025-06-01 10:47:01Z`, from milliseconds since 1970.
pub fn time(milliseconds: u64) -> String {
    let (days, rest) = (milliseconds / DAY, milliseconds % DAY);
    let (year, month, day) = calendar::date(days);
    let (hours, minutes, seconds) = (rest / HOUR, rest % HOUR / MINUTE, rest % MINUTE / 1000);
    format!("{year:04}-{month:02}-{day:02} {hours:02}:{minutes:02}:{seconds:02}Z")
}

/// How long ago something was.
pub fn age(then: u64, now: u64) -> String {
    let ago = now.saturating_sub(then);
    let (count, unit) = match ago {
        0..MINUTE => return "just now".to_owned(),
        MINUTE..HOUR => (ago / MINUTE, "minute"),
        HOUR..DAY => (ago / HOUR, "hour"),
        _ => (ago / DAY, "day"),
    };
    format!("{} ago", counted(count, unit))
}

/// `1 test`, `2 tests`.
pub fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Which run it was.
pub fn origin(origin: &Origin, now: u64) -> String {
    let root = String::from_utf8_lossy(&origin.root);
    let place =
        if origin.is_shared() { " (shared)".to_owned() } else { format!(" in {}", visible(&root)) };
    let mut text = format!(
        "{} ({}) on {}{place}",
        time(origin.time),
        age(origin.time, now),
        visible(&origin.host)
    );
    if let Some(commit) = &origin.commit {
        let _ = write!(text, ", commit {}", visible(commit.get(..12).unwrap_or(commit)));
    }
    text
}

/// A command as it could be typed: what a shell would not leave as it is stands in quotes.
pub fn command(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "_-./=:,+@%^".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    if word.chars().any(char::is_control) {
        return format!("$'{}'", word.escape_default());
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A text without what would play tricks on a terminal.
pub fn visible(text: &str) -> String {
    text.chars()
        .flat_map(|letter| {
            if letter.is_control() { letter.escape_default().collect() } else { vec![letter] }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_sizes() {
        assert_eq!(duration(0), "0 ms");
        assert_eq!(duration(999), "999 ms");
        assert_eq!(duration(1234), "1.2 s");
        assert_eq!(duration(59_949), "59.9 s");
        assert_eq!(duration(59_960), "1 min 0 s");
        assert_eq!(duration(185_000), "3 min 5 s");
        assert_eq!(duration(2 * HOUR + 10 * MINUTE), "2 h 10 min");
        assert_eq!(
            (size(0), size(1023), size(1024)),
            ("0 B".into(), "1023 B".into(), "1.0 KiB".into())
        );
        assert_eq!((size((1 << 20) - 1), size(5 << 30)), ("1.0 MiB".into(), "5.0 GiB".into()));
        assert_eq!((share(1, 4), share(0, 0)), (Some(0.25), None));
    }

    #[test]
    fn moments() {
        assert_eq!(time(0), "1970-01-01 00:00:00Z");
        assert_eq!(time(951_827_696_000), "2000-02-29 12:34:56Z");
        assert_eq!(time(1_709_251_199_999), "2024-02-29 23:59:59Z");
        assert_eq!(time(4_107_542_400_000), "2100-03-01 00:00:00Z");
        assert_eq!((age(5, 6), age(0, 90_000)), ("just now".into(), "1 minute ago".into()));
        assert_eq!(
            (age(0, 3 * HOUR), age(0, 49 * HOUR)),
            ("3 hours ago".into(), "2 days ago".into())
        );
    }

    #[test]
    fn commands_can_be_typed() {
        let words = ["./t", "--name=a b", "it's", "", "\u{1b}[2J", "é"].map(str::to_owned);
        assert_eq!(command(&words), r"./t '--name=a b' 'it'\''s' '' $'\u{1b}[2J' é");
        assert_eq!(visible("a\u{7}b"), r"a\u{7}b");
    }
}
