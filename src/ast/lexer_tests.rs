use super::*;

fn spellings(text: &str) -> Vec<String> {
    let all = tokens(text.as_bytes()).expect("the text is understood");
    all.tokens
        .iter()
        .map(|token| readable(all.spelling(token)))
        .filter(|spelling| !spelling.is_empty())
        .collect()
}

fn reason(text: &str) -> String {
    tokens(text.as_bytes()).err().expect("the text is refused").reason
}

#[test]
fn tokens_are_as_long_as_they_can_be() {
    assert_eq!(spellings("a+++b->c<<=2...x"), ["a", "++", "+", "b", "->", "c", "<<=", "2...x"]);
    assert_eq!(spellings("1.5e-3f .5 0x1p+3 1'000u"), ["1.5e-3f", ".5", "0x1p+3", "1'000u"]);
    assert_eq!(spellings("L\"a\\\"b\" u8'c' x\"d\""), ["L\"a\\\"b\"", "u8'c'", "x", "\"d\""]);
    assert_eq!(
        spellings("a<:1:>; f(void) <% %>"),
        ["a", "<:", "1", ":>", ";", "f", "(", "void", ")", "<%", "%>"]
    );
    assert_eq!(spellings("na\\u00efve größe $x"), ["na\\u00efve", "größe", "$x"]);
}

#[test]
fn comments_and_layout_are_left_out() {
    assert_eq!(spellings("a /* x\n y */ b // c\n\t\x0c d"), ["a", "b", "d"]);
}

#[test]
fn linemarkers_say_where_a_token_stands() {
    let all = tokens(b"# 7 \"one.c\"\na\n# 3 \"two.h\" 1 3 4\n\nb\n#line 9\nc")
        .expect("the text is understood");
    let places: Vec<_> = (0..3).map(|index| (all.file(index), all.tokens[index].line)).collect();
    assert_eq!(places, [(&b"one.c"[..], 7), (b"two.h", 4), (b"two.h", 9)]);
}

#[test]
fn pragmas_stand_beside_the_tokens() {
    let all = tokens(b"int\n  # pragma pack(1)  \nx;").expect("the text is understood");
    assert_eq!(all.pragmas.len(), 1);
    assert_eq!((all.pragmas[0].before, all.pragmas[0].text), (1, &b"pragma pack(1)"[..]));
}

#[test]
fn other_languages_are_refused() {
    assert_eq!(reason("# 3 \"a.c\"\nint x = @;"), "a character that C does not have");
    assert_eq!(reason("\"abc\nd\""), "a literal that does not end on its line");
    assert_eq!(reason("R\"(x)\""), "a raw string");
    assert_eq!(
        reason("#define X 1\n"),
        "a directive that the preprocessor should have carried out"
    );
    assert_eq!(reason("/* x"), "a comment that does not end");
    assert_eq!(reason("\\x"), "a backslash outside of a literal");
    let problem = tokens(b"# 3 \"a.c\"\nint x = `;").err().expect("the text is refused");
    assert_eq!(problem.to_string(), "a.c:3: a character that C does not have");
}
