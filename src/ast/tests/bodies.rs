//! Every token of a body counts, for its own definition and no other.

use super::*;

const TEXT: &str = r#"
    struct s { int a, b[4]; unsigned bits : 3; };
    int printf(const char *, ...);
    static int count;
    int one(struct s *p, int n) {
        int i, *q = &p->b[1];
        for (i = 0; i < n; i++) { if (p->a > 3) continue; else if (p->bits) break; *q += i; }
        do n--; while (n > 0 && *q);
        switch (n) { case 1 ... 3: return 'a'; case 7: goto end; default: count++; }
        printf("%d\n", (int)sizeof(struct s));
    end:
        return n ? p->a : ({ int t = n; t << 2; });
    }
    int two(void) { return count; }
"#;

#[test]
fn every_token_counts() {
    let start = TEXT.find("int i,").expect("the body's first token");
    let end = TEXT.find("int two").expect("the function behind it");
    let mut tried = 0;
    for (at, token) in TEXT[start..end].match_indices(|letter: char| letter.is_ascii_alphanumeric())
    {
        let at = start + at;
        // Another letter or digit in its place is another token.
        let other = match token {
            "1" => "2",
            "z" => "y",
            _ if token.as_bytes()[0].is_ascii_digit() => "1",
            _ => "z",
        };
        let edited = format!("{}{other}{}", &TEXT[..at], &TEXT[at + 1..]);
        let Ok(edited_unit) = read(edited.as_bytes()) else { continue };
        let hash = |unit: &Unit, name: &str| {
            unit.definitions.iter().find(|found| found.name == name).map(|found| found.hash)
        };
        let plain = unit(TEXT);
        assert_ne!(hash(&edited_unit, "one"), hash(&plain, "one"), "{edited}");
        assert_eq!(hash(&edited_unit, "two"), hash(&plain, "two"), "{edited}");
        assert_ne!(edited_unit.meaning, plain.meaning);
        tried += 1;
    }
    assert!(tried > 70, "{tried}");
}

#[test]
fn operators_count() {
    for (before, after) in [
        ("i < n", "i <= n"),
        ("&& *q", "|| *q"),
        ("t << 2", "t >> 2"),
        ("i++", "i--"),
        ("*q += i", "*q -= i"),
        ("p->a > 3", "!p->a > 3"),
        ("int t = n;", "int t = -n;"),
        ("return n ?", "return !n ?"),
    ] {
        differ(TEXT, &TEXT.replacen(before, after, 1), &["one"]);
    }
}

#[test]
fn literals_count() {
    for (before, after) in [
        ("\"%d\\n\"", "\"%i\\n\""),
        ("'a'", "'b'"),
        ("'a'", "L'a'"),
        ("> 3", "> 3u"),
        ("> 3", "> 0x3"),
    ] {
        differ(TEXT, &TEXT.replacen(before, after, 1), &["one"]);
    }
    differ("char a[] = \"x\" \"y\";", "char a[] = \"xz\" \"y\";", &["a"]);
}

#[test]
fn initialisers_count_for_their_variable() {
    let text = "struct p { int x, y; }; struct p a = { .x = 1, .y = 2 }; struct p *b = &a; int c[4] = { [1 ... 2] = 7 };";
    differ(text, &text.replacen(".x = 1", ".x = 2", 1), &["a"]);
    differ(text, &text.replacen(".x = 1, .y = 2", ".y = 1, .x = 2", 1), &["a"]);
    differ(text, &text.replacen("1 ... 2", "1 ... 3", 1), &["c"]);
    assert_eq!(references(text, "b"), ["a"]);
}
