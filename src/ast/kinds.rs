//! The kinds of tokens, and the table of C's words with all their spellings.

/// What a token is. Words that C gives a meaning have kinds of their own, one for all spellings of
/// a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TokenKind {
    End,
    Identifier,
    Number,
    Character,
    Text,
    // Brackets and separators.
    OpenParen,
    CloseParen,
    OpenBracket,
    CloseBracket,
    OpenBrace,
    CloseBrace,
    Semicolon,
    Comma,
    Colon,
    Question,
    Ellipsis,
    // Operators that a reader of names must tell apart.
    Dot,
    Arrow,
    Assign,
    Star,
    Caret,
    AndAnd,
    Step,
    /// Any other operator, of one operand or two.
    Operator,
    // Storage and functions.
    Typedef,
    Extern,
    Static,
    Auto,
    Register,
    Thread,
    Inline,
    Noreturn,
    Constexpr,
    // Types.
    Qualifier,
    BasicType,
    Atomic,
    BitInt,
    Struct,
    Union,
    Enum,
    Typeof,
    AutoType,
    Alignas,
    Attribute,
    Declspec,
    Extension,
    // Expressions.
    Sizeof,
    Alignof,
    Part,
    Generic,
    Offsetof,
    FunctionName,
    Position,
    // Statements.
    If,
    Else,
    While,
    Do,
    For,
    Switch,
    Case,
    Default,
    Goto,
    Continue,
    Break,
    Return,
    Asm,
    LabelDeclaration,
    StaticAssert,
}

use TokenKind::*;

/// The words that are never names.
#[rustfmt::skip]
pub const WORDS: &[(&str, TokenKind)] = &[
    ("typedef", Typedef), ("extern", Extern), ("static", Static), ("auto", Auto), ("register", Register),
    ("__thread", Thread), ("_Thread_local", Thread),
    ("inline", Inline), ("__inline", Inline), ("__inline__", Inline), ("_Noreturn", Noreturn),
    // `_Complex` is one of them: what follows can still be the name of a type.
    ("const", Qualifier), ("__const", Qualifier), ("__const__", Qualifier),
    ("volatile", Qualifier), ("__volatile", Qualifier), ("__volatile__", Qualifier),
    ("restrict", Qualifier), ("__restrict", Qualifier), ("__restrict__", Qualifier),
    ("_Nonnull", Qualifier), ("_Nullable", Qualifier), ("_Null_unspecified", Qualifier), ("_Nullable_result", Qualifier),
    ("__seg_fs", Qualifier), ("__seg_gs", Qualifier),
    ("void", BasicType), ("char", BasicType), ("short", BasicType), ("int", BasicType), ("long", BasicType),
    ("float", BasicType), ("double", BasicType), ("signed", BasicType), ("__signed", BasicType), ("__signed__", BasicType),
    ("unsigned", BasicType), ("_Bool", BasicType), ("_Complex", Qualifier), ("__complex", Qualifier), ("__complex__", Qualifier),
    ("_Imaginary", Qualifier), ("__int128", BasicType),
    ("_Decimal32", BasicType), ("_Decimal64", BasicType), ("_Decimal128", BasicType),
    ("_Fract", BasicType), ("_Accum", BasicType), ("_Sat", BasicType),
    ("_Atomic", Atomic), ("_BitInt", BitInt), ("struct", Struct), ("union", Union), ("enum", Enum),
    ("typeof", Typeof), ("__typeof", Typeof), ("__typeof__", Typeof), ("__typeof_unqual__", Typeof), ("__typeof_unqual", Typeof),
    ("__auto_type", AutoType), ("_Alignas", Alignas),
    ("__attribute__", Attribute), ("__attribute", Attribute), ("__declspec", Declspec), ("__extension__", Extension),
    ("sizeof", Sizeof), ("_Alignof", Alignof), ("__alignof", Alignof), ("__alignof__", Alignof),
    ("__real", Part), ("__real__", Part), ("__imag", Part), ("__imag__", Part),
    ("_Generic", Generic), ("__builtin_offsetof", Offsetof),
    ("__func__", FunctionName), ("__FUNCTION__", FunctionName), ("__PRETTY_FUNCTION__", FunctionName),
    ("__builtin_LINE", Position), ("__builtin_FILE", Position), ("__builtin_FUNCTION", Position),
    ("__builtin_FILE_NAME", Position),
    ("if", If), ("else", Else), ("while", While), ("do", Do), ("for", For), ("switch", Switch), ("case", Case),
    ("default", Default), ("goto", Goto), ("continue", Continue), ("break", Break), ("return", Return),
    ("asm", Asm), ("__asm", Asm), ("__asm__", Asm), ("__label__", LabelDeclaration), ("_Static_assert", StaticAssert),
];

/// What a name means before the unit declares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Predefined {
    /// A type.
    Type,
    /// A constant.
    Constant,
    /// A word of newer standards, which older programs use as a name.
    Word(TokenKind),
}

/// Names with a meaning that a declaration may take away.
#[rustfmt::skip]
pub const GIVEN: &[(&str, Predefined)] = &[
    ("bool", Predefined::Type), ("__builtin_va_list", Predefined::Type), ("__builtin_ms_va_list", Predefined::Type),
    ("__builtin_sysv_va_list", Predefined::Type), ("__int128_t", Predefined::Type), ("__uint128_t", Predefined::Type),
    ("_Float16", Predefined::Type), ("_Float32", Predefined::Type), ("_Float64", Predefined::Type), ("_Float128", Predefined::Type),
    ("_Float32x", Predefined::Type), ("_Float64x", Predefined::Type), ("_Float128x", Predefined::Type),
    ("__float128", Predefined::Type), ("__float80", Predefined::Type), ("__ibm128", Predefined::Type), ("__bf16", Predefined::Type),
    ("__fp16", Predefined::Type), ("__mfp8", Predefined::Type),
    ("true", Predefined::Constant), ("false", Predefined::Constant), ("nullptr", Predefined::Constant),
    ("thread_local", Predefined::Word(Thread)), ("constexpr", Predefined::Word(Constexpr)), ("alignas", Predefined::Word(Alignas)),
    ("alignof", Predefined::Word(Alignof)), ("static_assert", Predefined::Word(StaticAssert)), ("typeof_unqual", Predefined::Word(Typeof)),
];

/// The starts of the names of vector types that compilers for Arm know by themselves.
pub const VECTOR_TYPES: &[&str] = &[
    "__Int",
    "__Uint",
    "__Float",
    "__Poly",
    "__Bfloat",
    "__Mfloat",
    "__SVInt",
    "__SVUint",
    "__SVFloat",
    "__SVBool",
    "__clang_sv",
];
