//! Languages of data, of queries, of pages and of builds.

use crate::screen::code::language::{
    BARE, C_LIKE, DOUBLE, Form, HASH, LONG_DOUBLE, LONG_SINGLE, Language, Quote, RAW_SINGLE,
    SINGLE, TRIPLE_DOUBLE, TRIPLE_SINGLE, quote,
};

pub const ALL: &[&Language] = &[
    &JSON,
    &YAML,
    &TOML,
    &INI,
    &SQL,
    &CSS,
    &HTML,
    &XML,
    &MAKE,
    &DOCKERFILE,
    &CMAKE,
    &NIX,
    &PROTOBUF,
    &HCL,
    &PATCH,
];

static JSON: Language = Language {
    names: &["json", "jsonc", "json5", "jsonl", "ndjson"],
    words: "true false null",
    quotes: &[DOUBLE],
    ..C_LIKE
};

static YAML: Language = Language {
    names: &["yaml", "yml"],
    words: "true false null yes no on off",
    in_words: "-./",
    quotes: &[LONG_DOUBLE, RAW_SINGLE],
    forms: &[Form::Keys(":"), Form::Indented],
    ..HASH
};

static TOML: Language = Language {
    names: &["toml"],
    words: "true false inf nan",
    in_words: "-",
    quotes: &[
        TRIPLE_DOUBLE,
        Quote { escapes: false, ..TRIPLE_SINGLE },
        DOUBLE,
        quote("'", false, false),
    ],
    forms: &[Form::Keys("=")],
    ..HASH
};

static INI: Language = Language {
    names: &["ini", "conf", "cfg", "properties", "editorconfig", "gitconfig", "service", "desktop"],
    line_comments: &[";", "#"],
    quotes: &[DOUBLE],
    forms: &[Form::Keys("=")],
    ..BARE
};

static SQL: Language = Language {
    names: &["sql", "sqlite", "mysql", "postgres", "postgresql", "psql"],
    words: "abort action add after all alter analyze and any as asc attach autoincrement before begin between bigint \
            blob boolean both by cascade case cast char check collate column commit conflict constraint create cross \
            current_date current_time current_timestamp database date datetime decimal default deferrable deferred \
            delete desc distinct double drop each else end escape except exists explain false fetch filter float for \
            foreign from full function glob grant group having if ignore immediate in index indexed inner insert int \
            integer intersect interval into is isnull join key language left like limit match natural not notnull null \
            numeric of offset on or order outer over partition plan pragma precision primary procedure query raise real \
            recursive references regexp reindex release rename replace restrict returning returns right rollback row \
            rows savepoint schema select serial set smallint table temp temporary text then time timestamp to \
            transaction trigger true truncate union unique unsigned update using uuid vacuum values varchar view \
            virtual when where window with without",
    any_case: true,
    line_comments: &["--"],
    quotes: &[quote("'", false, true), quote("\"", false, false), quote("`", false, false)],
    ..C_LIKE
};

static CSS: Language = Language {
    names: &["css", "scss", "less", "sass"],
    words: "media import charset keyframes supports font-face page namespace layer container important include mixin \
            extend if else for each while function return use forward",
    in_words: "-",
    sigils: "#.",
    line_comments: &[],
    forms: &[Form::Properties],
    ..C_LIKE
};

static HTML: Language = Language {
    names: &["html", "htm", "xhtml", "vue", "svelte"],
    in_words: "-:",
    block_comments: &[("<!--", "-->")],
    forms: &[Form::Markup],
    ..BARE
};

static XML: Language = Language {
    names: &["xml", "svg", "xsd", "xsl", "plist", "rss"],
    in_words: "-:.",
    block_comments: &[("<!--", "-->")],
    forms: &[Form::Markup],
    ..BARE
};

static MAKE: Language = Language {
    names: &["make", "makefile", "mk", "mak"],
    words: "define else endef endif export ifdef ifeq ifndef ifneq include override undefine unexport vpath",
    in_words: "-",
    sigils: "$",
    forms: &[Form::FirstWord],
    ..HASH
};

static DOCKERFILE: Language = Language {
    names: &["dockerfile", "docker", "containerfile"],
    words: "ADD ARG CMD COPY ENTRYPOINT ENV EXPOSE FROM HEALTHCHECK LABEL MAINTAINER ONBUILD RUN SHELL STOPSIGNAL \
            USER VOLUME WORKDIR",
    any_case: true,
    quotes: &[DOUBLE, SINGLE],
    forms: &[Form::FirstWord],
    ..HASH
};

static CMAKE: Language = Language {
    names: &["cmake"],
    words: "add_custom_command add_custom_target add_definitions add_dependencies add_executable add_library \
            add_subdirectory add_test break cmake_minimum_required configure_file continue else elseif enable_testing \
            endforeach endfunction endif endmacro endwhile execute_process export file find_library find_package \
            find_path find_program foreach function get_filename_component get_property if include include_directories \
            install link_directories link_libraries list macro message option project return set set_property \
            set_target_properties string target_compile_definitions target_compile_options target_include_directories \
            target_link_libraries unset while",
    any_case: true,
    block_comments: &[("#[[", "]]")],
    quotes: &[LONG_DOUBLE],
    ..HASH
};

static NIX: Language = Language {
    names: &["nix"],
    words: "assert builtins else false if import in inherit let null or rec then true with",
    in_words: "-'",
    block_comments: &[("/*", "*/")],
    quotes: &[quote("''", false, true), LONG_DOUBLE],
    ..HASH
};

static PROTOBUF: Language = Language {
    names: &["protobuf", "proto"],
    words: "bool bytes double enum extend extensions false fixed32 fixed64 float import int32 int64 map message oneof \
            option optional package public repeated required reserved returns rpc service sfixed32 sfixed64 sint32 \
            sint64 stream string syntax to true uint32 uint64 weak",
    ..C_LIKE
};

static HCL: Language = Language {
    names: &["hcl", "terraform", "tf", "tfvars"],
    words: "true false null for in if else endif endfor variable resource module provider output data locals terraform",
    in_words: "-",
    line_comments: &["#", "//"],
    quotes: &[DOUBLE, LONG_SINGLE],
    forms: &[Form::Heredoc("<<")],
    ..C_LIKE
};

static PATCH: Language = Language { names: &["diff", "patch"], forms: &[Form::Patch], ..BARE };
