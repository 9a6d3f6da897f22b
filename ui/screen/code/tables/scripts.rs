//! Languages of scripts and shells.

use crate::screen::code::language::{
    BACKTICKS, BARE, C_LIKE, DOUBLE, Form, HASH, LONG_DOUBLE, LONG_SINGLE, Language, RAW_SINGLE,
    SINGLE, TRIPLE_DOUBLE, TRIPLE_SINGLE, quote,
};

pub const ALL: &[&Language] =
    &[&PYTHON, &SHELL, &FISH, &POWERSHELL, &RUBY, &PERL, &PHP, &LUA, &ELIXIR, &R, &VIM, &TCL, &AWK];

static PYTHON: Language = Language {
    names: &["python", "py", "python3", "pyi", "py3"],
    words: "and as assert async await break case class continue def del elif else except False finally for from \
            global if import in is lambda match None nonlocal not or pass raise return self cls True try while with \
            yield",
    quotes: &[TRIPLE_DOUBLE, TRIPLE_SINGLE, DOUBLE, SINGLE],
    ..HASH
};

static SHELL: Language = Language {
    names: &["sh", "bash", "shell", "zsh", "ksh", "dash", "shellscript"],
    words: "case do done elif else esac fi for function if in select then time until while alias break cd continue \
            declare echo eval exec exit export false getopts hash let local printf pwd read readonly return set shift \
            shopt source test trap true type typeset ulimit umask unset wait",
    in_words: "-",
    sigils: "$",
    quotes: &[LONG_DOUBLE, RAW_SINGLE, BACKTICKS],
    forms: &[Form::Heredoc("<<")],
    ..HASH
};

static FISH: Language = Language {
    names: &["fish"],
    words: "and argparse begin break builtin case cd command continue echo else end eval exec exit for function if in \
            not or printf read return set set_color source status string switch test time while",
    in_words: "-",
    sigils: "$",
    quotes: &[LONG_DOUBLE, LONG_SINGLE],
    ..HASH
};

static POWERSHELL: Language = Language {
    names: &["powershell", "ps1", "pwsh", "psm1"],
    words: "begin break catch class continue data do dynamicparam else elseif end enum exit filter finally for foreach \
            from function hidden if in param process return static switch throw trap try until using while",
    any_case: true,
    in_words: "-",
    sigils: "$",
    block_comments: &[("<#", "#>")],
    quotes: &[quote("\"", false, true), RAW_SINGLE],
    ..HASH
};

static RUBY: Language = Language {
    names: &["ruby", "rb", "gemspec", "rake"],
    words: "alias and attr_accessor attr_reader attr_writer begin break case class def defined? do else elsif end \
            ensure extend false for if in include loop module next nil not or prepend private protected public raise \
            redo require require_relative rescue retry return self super then true undef unless until when while yield",
    in_words: "?",
    sigils: "@$:",
    quotes: &[LONG_DOUBLE, LONG_SINGLE, BACKTICKS],
    forms: &[Form::Heredoc("<<"), Form::Regex, Form::Pod("=end")],
    ..HASH
};

static PERL: Language = Language {
    names: &["perl", "pl", "pm"],
    words: "and chomp close cmp defined delete die do each else elsif eq exists for foreach ge goto grep gt if join \
            keys last le length local lt map my ne next no not open or our package pop print printf push redo ref \
            require return reverse scalar shift sort splice split sprintf sub substr undef unless unshift until use \
            values wantarray warn while xor bless",
    sigils: "$@%&",
    quotes: &[LONG_DOUBLE, LONG_SINGLE, BACKTICKS],
    forms: &[Form::Heredoc("<<"), Form::QuoteWords, Form::Regex, Form::Pod("=cut")],
    ..HASH
};

static PHP: Language = Language {
    names: &["php"],
    words: "abstract and array as bool break callable case catch class clone const continue declare default do echo \
            else elseif empty enum exit extends false final finally float fn for foreach function global if implements \
            include include_once instanceof int interface isset iterable list match mixed namespace new null object or \
            parent print private protected public readonly require require_once return self static string switch \
            this throw trait true try unset use var void while yield php",
    any_case: true,
    sigils: "$",
    line_comments: &["//", "#"],
    quotes: &[LONG_DOUBLE, LONG_SINGLE, BACKTICKS],
    forms: &[Form::Heredoc("<<<")],
    ..C_LIKE
};

static LUA: Language = Language {
    names: &["lua"],
    words: "and break do else elseif end false for function goto if in local nil not or repeat return self then true \
            until while",
    line_comments: &["--"],
    forms: &[Form::LongBrackets],
    ..BARE
};

static ELIXIR: Language = Language {
    names: &["elixir", "ex", "exs"],
    words: "after alias and case catch cond def defdelegate defexception defguard defimpl defmacro defmacrop defmodule \
            defp defprotocol defstruct do else end false fn for if import in nil not or quote raise receive require \
            rescue reraise super throw true try unless unquote use when with",
    in_words: "?!",
    sigils: "@:",
    quotes: &[TRIPLE_DOUBLE, TRIPLE_SINGLE, LONG_DOUBLE, LONG_SINGLE],
    ..HASH
};

static R: Language = Language {
    names: &["r", "rscript"],
    words: "break else FALSE for function if in Inf NA NaN next NULL repeat TRUE while",
    in_words: ".",
    quotes: &[LONG_DOUBLE, LONG_SINGLE, BACKTICKS],
    ..HASH
};

static VIM: Language = Language {
    names: &["vim", "viml", "vimscript"],
    words: "abort au augroup autocmd break call catch command continue echo echom else elseif endfor endfunction \
            endif endtry endwhile execute exists finally finish for function highlight hi if in inoremap let map \
            nnoremap nmap noremap normal range return runtime set setlocal silent source syn syntax throw try unlet \
            vnoremap while",
    in_words: "!",
    quotes: &[DOUBLE, SINGLE],
    line_comments: &["\""],
    ..BARE
};

static TCL: Language = Language {
    names: &["tcl", "tk"],
    words: "append array break catch concat continue else elseif error eval exec exit expr for foreach format global \
            if incr info interp join lappend lindex list llength lrange lreplace lsearch lsort namespace package proc \
            puts regexp regsub rename return set source split string switch then trace unset uplevel upvar variable \
            while",
    sigils: "$",
    quotes: &[LONG_DOUBLE],
    ..HASH
};

static AWK: Language = Language {
    names: &["awk", "gawk"],
    words: "BEGIN END break continue delete do else exit for function getline gsub if in index length match next print \
            printf return split sprintf sub substr tolower toupper while NF NR FS OFS ORS RS FILENAME FNR",
    sigils: "$",
    quotes: &[DOUBLE],
    forms: &[Form::Regex],
    ..HASH
};
