//! Languages in the manner of C, and others that are compiled.

use crate::screen::code::language::{
    BACKTICKS, BARE, C_LIKE, DOUBLE, Form, LONG_DOUBLE, Language, Quote, SINGLE, TRIPLE_DOUBLE,
    TRIPLE_SINGLE, quote,
};

pub const ALL: &[&Language] = &[
    &RUST,
    &C,
    &CPP,
    &CSHARP,
    &JAVA,
    &JAVASCRIPT,
    &TYPESCRIPT,
    &GO,
    &KOTLIN,
    &SWIFT,
    &SCALA,
    &DART,
    &ZIG,
    &HASKELL,
];

static RUST: Language = Language {
    names: &["rust", "rs"],
    words: "as async await break const continue crate dyn else enum extern false fn for if impl in let loop match \
            mod move mut pub ref return self Self static struct super trait true type union unsafe use where while \
            yield bool char f32 f64 i8 i16 i32 i64 i128 isize str u8 u16 u32 u64 u128 usize",
    nested: true,
    quotes: &[LONG_DOUBLE],
    forms: &[Form::Lifetimes, Form::RawStrings],
    ..C_LIKE
};

static C: Language = Language {
    names: &["c", "h"],
    words: "auto break case char const continue default do double else enum extern float for goto if inline int \
            long register restrict return short signed sizeof static struct switch typedef union unsigned void \
            volatile while _Bool bool true false NULL int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t \
            uint64_t size_t ssize_t ptrdiff_t intptr_t uintptr_t wchar_t",
    forms: &[Form::Preprocessor],
    ..C_LIKE
};

static CPP: Language = Language {
    names: &["cpp", "c++", "cc", "cxx", "hpp", "hh", "hxx"],
    words: "alignas alignof and asm auto bool break case catch char class co_await co_return co_yield concept const \
            consteval constexpr constinit const_cast continue decltype default delete do double dynamic_cast else \
            enum explicit export extern false final float for friend goto if inline int long mutable namespace new \
            noexcept not nullptr NULL operator or override private protected public register reinterpret_cast \
            requires return short signed sizeof static static_assert static_cast struct switch template this \
            thread_local throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t \
            while int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t size_t ssize_t ptrdiff_t \
            char8_t char16_t char32_t",
    quotes: &[Quote { open: "R\"(", close: ")\"", escapes: false, lines: true }, DOUBLE, SINGLE],
    forms: &[Form::Preprocessor],
    ..C_LIKE
};

static CSHARP: Language = Language {
    names: &["csharp", "c#", "cs"],
    words: "abstract as async await base bool break byte case catch char checked class const continue decimal \
            default delegate do double dynamic else enum event explicit extern false finally fixed float for foreach \
            get goto if implicit in init int interface internal is let lock long nameof namespace new null object \
            operator out override params partial private protected public readonly record ref return sbyte sealed \
            select set short sizeof stackalloc static string struct switch this throw true try typeof uint ulong \
            unchecked unsafe ushort using value var virtual void volatile when where while with yield",
    quotes: &[
        Quote { open: "@\"", close: "\"", escapes: false, lines: true },
        Quote { open: "$@\"", close: "\"", escapes: false, lines: true },
        Quote { open: "$\"", close: "\"", escapes: true, lines: false },
        TRIPLE_DOUBLE,
        DOUBLE,
        SINGLE,
    ],
    ..C_LIKE
};

static JAVA: Language = Language {
    names: &["java"],
    words: "abstract assert boolean break byte case catch char class const continue default do double else enum \
            extends false final finally float for goto if implements import instanceof int interface long native \
            new non-sealed null package permits private protected public record return sealed short static strictfp \
            super switch synchronized this throw throws transient true try var void volatile while yield",
    quotes: &[TRIPLE_DOUBLE, DOUBLE, SINGLE],
    ..C_LIKE
};

const SCRIPT_WORDS: &str = "as async await break case catch class const continue debugger default delete do else enum \
    export extends false finally for from function get if import in instanceof let new null of return set static super \
    switch this throw true try typeof undefined var void while with yield NaN Infinity";

static JAVASCRIPT: Language = Language {
    names: &["javascript", "js", "jsx", "mjs", "cjs", "node"],
    words: SCRIPT_WORDS,
    in_words: "$",
    quotes: &[DOUBLE, SINGLE, BACKTICKS],
    forms: &[Form::Regex],
    ..C_LIKE
};

static TYPESCRIPT: Language = Language {
    names: &["typescript", "ts", "tsx", "mts", "cts"],
    words: "abstract any as asserts async await bigint boolean break case catch class const continue debugger declare \
            default delete do else enum export extends false finally for from function get if implements import in \
            infer instanceof interface is keyof let module namespace never new null number object of override private \
            protected public readonly return satisfies set static string super switch symbol this throw true try type \
            typeof undefined unique unknown var void while with yield NaN Infinity",
    in_words: "$",
    quotes: &[DOUBLE, SINGLE, BACKTICKS],
    forms: &[Form::Regex],
    ..C_LIKE
};

static GO: Language = Language {
    names: &["go", "golang"],
    words: "any bool break byte case chan comparable complex64 complex128 const continue default defer else error \
            fallthrough false float32 float64 for func go goto if import int int8 int16 int32 int64 interface iota map \
            nil package range return rune select string struct switch true type uint uint8 uint16 uint32 uint64 \
            uintptr var",
    quotes: &[DOUBLE, SINGLE, quote("`", false, true)],
    ..C_LIKE
};

static KOTLIN: Language = Language {
    names: &["kotlin", "kt", "kts"],
    words: "abstract actual annotation as break by catch class companion const constructor continue crossinline data \
            do else enum expect external false final finally for fun get if import in infix init inline inner \
            interface internal is lateinit noinline null object open operator out override package private protected \
            public reified return sealed set super suspend tailrec this throw true try typealias val value var vararg \
            when where while",
    nested: true,
    quotes: &[Quote { escapes: false, ..TRIPLE_DOUBLE }, DOUBLE, SINGLE],
    ..C_LIKE
};

static SWIFT: Language = Language {
    names: &["swift"],
    words: "actor any as associatedtype async await break case catch class continue convenience default defer deinit \
            didSet do else enum extension fallthrough false fileprivate final for func get guard if import in indirect \
            infix init inout internal is lazy let mutating nil nonisolated nonmutating open operator optional override \
            postfix precedencegroup prefix private protocol public repeat required rethrows return self Self set some \
            static struct subscript super switch throw throws true try typealias unowned var weak where while willSet",
    nested: true,
    quotes: &[TRIPLE_DOUBLE, DOUBLE],
    ..C_LIKE
};

static SCALA: Language = Language {
    names: &["scala", "sc"],
    words: "abstract case catch class def derives do else end enum export extends extension false final finally for \
            given if implicit import inline lazy match new null object opaque open override package private protected \
            return sealed super then this throw trait transparent true try type using val var while with yield",
    nested: true,
    quotes: &[Quote { escapes: false, ..TRIPLE_DOUBLE }, DOUBLE],
    forms: &[Form::Lifetimes],
    ..C_LIKE
};

static DART: Language = Language {
    names: &["dart"],
    words: "abstract as assert async await base bool break case catch class const continue covariant default deferred \
            do double dynamic else enum export extends extension external factory false final finally for get hide if \
            implements import in int interface is late library mixin new null num on operator part required rethrow \
            return sealed set show static super switch sync this throw true try typedef var void when while with yield",
    nested: true,
    quotes: &[TRIPLE_DOUBLE, TRIPLE_SINGLE, DOUBLE, SINGLE],
    ..C_LIKE
};

static ZIG: Language = Language {
    names: &["zig"],
    words: "addrspace align allowzero and anyframe anytype asm async await bool break callconv catch comptime \
            comptime_int comptime_float const continue defer else enum errdefer error export extern f16 f32 f64 f128 \
            false fn for i8 i16 i32 i64 i128 if inline isize linksection noalias noreturn nosuspend null opaque or \
            orelse packed pub resume return struct suspend switch test threadlocal true try type u1 u8 u16 u32 u64 \
            u128 undefined union unreachable usingnamespace usize var void volatile while",
    block_comments: &[],
    quotes: &[Quote { open: "\\\\", close: "\n", escapes: false, lines: false }, DOUBLE, SINGLE],
    ..C_LIKE
};

static HASKELL: Language = Language {
    names: &["haskell", "hs"],
    words: "as case class data default deriving do else family forall foreign hiding if import in infix infixl infixr \
            instance let module newtype of qualified then type where",
    in_words: "'",
    line_comments: &["--"],
    block_comments: &[("{-", "-}")],
    nested: true,
    quotes: &[DOUBLE, SINGLE],
    ..BARE
};
