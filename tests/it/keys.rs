//! Keys are made of bytes with a meaning of their own: rewording a message, deriving `Debug` or
//! sorting the variants of an enum must not empty a store. Reads the sources with a parser.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use syn::visit::{self, Visit};
use syn::{Expr, Fields, Item, Type};

/// What feeds a hasher.
const FEEDING: &[&str] = &["bytes", "number", "numbers", "pair", "hash", "part_of_content"];

/// What makes texts for people.
const SHOWING: &[&str] = &["to_string", "display", "to_string_lossy"];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        match entry.extension() {
            None => sources(&entry, found),
            Some(_) if !entry.to_string_lossy().ends_with("tests.rs") => found.push(entry),
            Some(_) => {}
        }
    }
}

/// The enums without content, and the fields of such a type.
#[derive(Default)]
struct Enums {
    names: BTreeSet<String>,
    fields: Vec<(String, String)>,
}

impl<'a> Visit<'a> for Enums {
    fn visit_item_enum(&mut self, item: &'a syn::ItemEnum) {
        if item.variants.iter().all(|variant| matches!(variant.fields, Fields::Unit)) {
            self.names.insert(item.ident.to_string());
        }
    }

    fn visit_field(&mut self, field: &'a syn::Field) {
        if let (Some(name), Type::Path(path)) = (&field.ident, &field.ty) {
            let kind = path.path.segments.last().unwrap().ident.to_string();
            self.fields.push((name.to_string(), kind));
        }
    }
}

/// What is fed to hashers and should not be.
struct Fed<'e> {
    enum_fields: &'e BTreeSet<String>,
    inside: bool,
    wrong: Vec<String>,
}

impl Fed<'_> {
    fn inside<'a>(&mut self, arguments: impl Iterator<Item = &'a Expr>) {
        let before = std::mem::replace(&mut self.inside, true);
        arguments.for_each(|argument| self.visit_expr(argument));
        self.inside = before;
    }
}

impl<'a> Visit<'a> for Fed<'_> {
    fn visit_item(&mut self, item: &'a Item) {
        let is_test = matches!(item, Item::Mod(module) if module.ident == "tests");
        if !is_test {
            visit::visit_item(self, item);
        }
    }

    fn visit_expr_method_call(&mut self, call: &'a syn::ExprMethodCall) {
        let name = call.method.to_string();
        if self.inside && SHOWING.contains(&name.as_str()) {
            self.wrong.push(format!("{name}() in a key"));
        }
        self.visit_expr(&call.receiver);
        match FEEDING.contains(&name.as_str()) {
            true => self.inside(call.args.iter()),
            false => call.args.iter().for_each(|argument| self.visit_expr(argument)),
        }
    }

    fn visit_expr_call(&mut self, call: &'a syn::ExprCall) {
        let is_hash = matches!(&*call.func, Expr::Path(path) if {
            let names: Vec<String> = path.path.segments.iter().map(|part| part.ident.to_string()).collect();
            names.ends_with(&["Hash".to_owned(), "of".to_owned()])
        });
        match is_hash {
            true => self.inside(call.args.iter()),
            false => visit::visit_expr_call(self, call),
        }
    }

    fn visit_macro(&mut self, found: &'a syn::Macro) {
        if self.inside && found.path.is_ident("format") {
            self.wrong.push("format! in a key".to_owned());
        }
    }

    fn visit_expr_cast(&mut self, cast: &'a syn::ExprCast) {
        let is_index = matches!(&*cast.ty, Type::Path(path) if path.path.is_ident("usize"));
        if let (true, Expr::Field(field)) =
            (self.inside && !is_index, without_reference(&cast.expr))
            && let syn::Member::Named(name) = &field.member
            && self.enum_fields.contains(&name.to_string())
        {
            self.wrong.push(format!("the discriminant of {name} in a key"));
        }
        visit::visit_expr_cast(self, cast);
    }
}

fn without_reference(expression: &Expr) -> &Expr {
    match expression {
        Expr::Unary(unary) => without_reference(&unary.expr),
        Expr::Paren(paren) => without_reference(&paren.expr),
        other => other,
    }
}

fn wrong_in(text: &str, enum_fields: &BTreeSet<String>) -> Vec<String> {
    let mut fed = Fed { enum_fields, inside: false, wrong: Vec::new() };
    fed.visit_file(&syn::parse_file(text).unwrap());
    fed.wrong
}

#[test]
fn no_key_depends_on_texts_or_discriminants() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    sources(&root.join("src"), &mut files);
    let texts: Vec<(PathBuf, String)> = files
        .into_iter()
        .filter(|file| file.extension().is_some_and(|ending| ending == "rs"))
        .map(|file| {
            let text = fs::read_to_string(&file).unwrap();
            (file, text)
        })
        .collect();
    let mut enums = Enums::default();
    texts.iter().for_each(|(_, text)| enums.visit_file(&syn::parse_file(text).unwrap()));
    let is_enum = |(_, kind): &&(String, String)| enums.names.contains(kind);
    let fields: BTreeSet<String> =
        enums.fields.iter().filter(is_enum).map(|(name, _)| name.clone()).collect();
    let wrong = texts.iter().flat_map(|(file, text)| {
        wrong_in(text, &fields).into_iter().map(move |what| format!("{}: {what}", file.display()))
    });
    assert_eq!(wrong.collect::<Vec<_>>(), Vec::<String>::new());
}

#[test]
fn texts_and_discriminants_in_keys_are_found() {
    let fields = BTreeSet::from(["kind".to_owned()]);
    for (body, count) in [
        (r#"hasher.bytes(format!("{x:?}").as_bytes());"#, 1),
        ("hasher.hash(a).bytes(error.to_string().as_bytes());", 1),
        ("Hash::of(path.display().to_string().as_bytes());", 2),
        ("hasher.number(what.kind as u64);", 1),
        ("hasher.number(list.len() as u64).bytes(name.as_bytes());", 0),
        (r#"log(format!("{x}"));"#, 0),
    ] {
        assert_eq!(wrong_in(&format!("fn f() {{ {body} }}"), &fields).len(), count, "{body}");
    }
}
