//! Every key that a text tells a person to press, pressed on the dashboard: what the text promises is looked
//! at. The texts are read here, so a key or a verb in them without a row fails, and so does a row without its
//! text.

use super::*;
use crate::screen::keys::{CONTEXTS, default_keymap, label, with_default_keys};
use crate::verb::{self, LIST};
use std::collections::BTreeSet;

mod players;
mod verbs;
mod vim;

use players::*;

/// Does what a piece of a text says, and looks at the result.
type Player = fn();

/// Texts for a person who uses the program, besides the pages of `:help`.
const TEXTS: [(&str, &str); 13] = [
    ("README.md", include_str!("../../../../README.md")),
    ("docs/config.md", include_str!("../../../../docs/config.md")),
    ("docs/dashboard.md", include_str!("../../../../docs/dashboard.md")),
    ("docs/durability.md", include_str!("../../../../docs/durability.md")),
    ("docs/headless.md", include_str!("../../../../docs/headless.md")),
    ("docs/mcp.md", include_str!("../../../../docs/mcp.md")),
    ("docs/mesh.md", include_str!("../../../../docs/mesh.md")),
    ("docs/verbs.md", include_str!("../../../../docs/verbs.md")),
    ("docs/policy.md", include_str!("../../../../docs/policy.md")),
    ("docs/rehearsal.md", include_str!("../../../../docs/rehearsal.md")),
    ("docs/diagnostics.md", include_str!("../../../../docs/diagnostics.md")),
    ("prompts/no-model.md", include_str!("../../../../prompts/no-model.md")),
    ("prompts/tour.toml", include_str!("../../../../prompts/tour.toml")),
];

/// The pieces of these texts that name keys.
const PLAYS: &[(&str, Player)] = &[
    ("Type a message and press Enter: yoi makes a Pod", enter_makes_a_pod_and_sends),
    ("Ctrl+N goes to it; the card names the keys that answer", a_request_is_gone_to),
    ("Ctrl+D leaves; no Pod stops", leaving_stops_no_pod),
    ("| Ctrl+N | go to what needs you |", a_request_is_gone_to),
    ("| Ctrl+P, F1 | find anything, explain what is in focus |", lists_are_opened),
    (
        "| Tab on an empty line | move between the input line, the tree and the transcript |",
        tab_walks,
    ),
    ("| Esc, then Enter | pause the run, continue it |", a_run_is_paused_and_continued),
    ("wait until you press Enter once", the_first_message_waits_for_enter),
    (
        "While no model is connected, Enter on the empty line of the first screen does the same",
        said::enter_on_the_empty_first_screen_connects_a_model_only_where_there_is_none,
    ),
    (
        "that does not answer after 10 seconds, or when you press Esc",
        said::a_key_is_on_no_frame_and_in_no_history_and_esc_forgets_it,
    ),
    ("Enter sends your next message into the run", enter_sends_into_the_run),
    ("Tab at the end of the text, or `:queue`, keeps it for the end of the run", tab_queues),
    ("Enter on an empty line sends the first queued message into the run", enter_steers),
    ("or Enter on an empty line, continues all of them", enter_continues_what_was_interrupted),
    ("Esc pauses, Enter continues, `:cancel` drops the run", a_run_is_paused_and_continued),
    ("searched (`/`) and copied (`y`) whole", a_text_is_found_and_copied),
    ("**Leaving** (`:quit`, Ctrl+D) stops no Pod", leaving_stops_no_pod),
    ("`:` opens the command line, Ctrl+P the palette, F1 the help", lists_are_opened),
    ("**The palette** (Ctrl+P) finds verbs", the_palette_has_every_verb),
    ("`@` in the line completes the name of a file", a_file_is_completed),
    ("In the tree Space marks Pods", pods_are_marked),
    ("`m` and a digit pins one", a_pod_is_pinned),
    ("`v` shows its transcript beside the current one", a_pod_is_shown_beside),
    ("The rule appears in the line first, where you can make it wider", the_rule_is_edited),
    ("`Ctrl+X` then `u` leaves the mouse to the terminal", the_mouse_is_left_to_the_terminal),
    ("`o` in the transcript opens the file of a call", open_target::a_file_is_opened),
    (
        "`Tab` on the empty line goes to the tree, `↓` shows the next Pod, `Esc` comes back here",
        the_tree_is_looked_through,
    ),
    ("`Ctrl+C` clears it, and `↑` brings it back", a_draft_is_cleared_and_brought_back),
    ("**Key: `Tab`**", tab_walks),
    (
        "`Ctrl+N` goes to its request. Read it; then `a` allows it once, `D` denies it with a reason",
        a_request_is_decided,
    ),
    ("`Enter` never allows", nothing_else_decides),
    ("**Key: `Ctrl+N`, then `a`**", a_request_is_decided),
    ("`Ctrl+N` goes from one to the next", a_request_is_gone_to),
    (
        "A card takes keys only after `Ctrl+N`, so no letter that you type answers",
        nothing_else_decides,
    ),
    ("**Key: `Ctrl+N`, again and again**", the_last_answer_comes_back),
    ("`Ctrl+D` on the empty line closes the screen", leaving_stops_no_pod),
    ("(`Ctrl+C` empties it)", a_draft_is_cleared_and_brought_back),
    ("`Ctrl+X` then `h` opens it at any time", what_pods_did_is_looked_up),
    ("**Key: `Ctrl+D`, then `Ctrl+X` `h`**", what_pods_did_is_looked_up),
    (
        "**Key: `:stop tester`, then `:restore tester`**",
        the_pod_of_the_tour_is_stopped_and_restored,
    ),
    ("`Tab` goes up to the Pod above", a_rule_is_written_for_a_family),
    ("| Ctrl+D Ctrl+U | half a page down, up; in lists a page |", vim::pages_and_rows_are_scrolled),
    ("| Ctrl+F Ctrl+B | a page down, up |", vim::pages_and_rows_are_scrolled),
    ("| Ctrl+E Ctrl+Y | a row down, up |", vim::pages_and_rows_are_scrolled),
    ("| `h` `l` `z` | fold, unfold, toggle |", vim::rows_are_folded),
    ("| `o` in a list | go there |", vim::a_list_is_walked),
    (
        "| Ctrl+W | as Ctrl+X; then `w` next pane, `W` previous pane, `j` `k` next and previous Pod |",
        vim::the_leader_has_a_second_key,
    ),
    (
        "(arrows, `j` `k`, `g` `G`, `/` `n` `N`, `y`, `i`, `:`) do the same with `vim`",
        vim::a_list_is_walked,
    ),
];

/// The keys in the pages of `:help`, by verb; those about marks are in the pages of several verbs.
const HELP: &[(&str, &str, Player)] = &[
    ("stop", "{tree mark}", pods_are_marked),
    ("restore", "{tree mark}", pods_are_marked),
    ("resume", "{tree mark}", pods_are_marked),
    ("stop", "{everywhere back}", a_run_is_only_paused_and_marks_are_removed),
    ("restore", "{everywhere back}", a_run_is_only_paused_and_marks_are_removed),
    ("stop", "{everywhere interrupt}", a_run_is_only_paused_and_marks_are_removed),
    ("restore", "{line choose}", the_plan_waits_for_enter),
    ("since", "{leader since}", page::the_page_gets_the_keys_and_leaves_them),
    ("since", "{everywhere back}", page::the_page_gets_the_keys_and_leaves_them),
    ("since", "{page choose}", page::a_row_leads_to_the_end_of_a_run),
    ("since", "{page seen}", page::a_row_is_marked_as_seen),
    ("fork", "{transcript :fork}", the_fork_names_the_message),
    ("inbox", "{inbox allow-once}", a_request_is_decided),
    ("inbox", "{inbox allow-each}", equal_requests_are_allowed_together),
    ("inbox", "{inbox allow-pod}", a_rule_is_written),
    ("inbox", "{inbox allow-tree}", a_rule_is_written),
    ("inbox", "{inbox deny}", a_request_is_decided),
    ("inbox", "{inbox look-inside}", nothing_else_decides),
    ("inbox", "{line choose}", questions::a_choice_is_sent),
    ("inbox", "{everywhere next-needs-you}", a_request_is_gone_to),
    ("allow", "{everywhere next-needs-you}", a_request_is_gone_to),
    ("answer", "{everywhere next-needs-you}", a_request_is_gone_to),
    ("deny", "{everywhere next-needs-you}", a_request_is_gone_to),
    ("inbox", "{page choose}", the_list_leads_to_the_card),
    ("queue", "{composer queue}", tab_queues),
    ("pin", "{tree pin}", a_pod_is_pinned),
    ("split", "{everywhere next-pane}", both_transcripts_are_reached),
];

/// The placeholders of keys in a text: `{tree mark}`.
fn placeholders(text: &str) -> Vec<String> {
    let braces = text.split('{').skip(1).filter_map(|rest| rest.split_once('}'));
    braces.map(|(key, _)| format!("{{{key}}}")).filter(|key| key.contains(' ')).collect()
}

/// What is left of a text without its code blocks and without the pieces that are played.
fn not_played(text: &str) -> String {
    let outside: Vec<&str> = text.split("```").step_by(2).collect();
    PLAYS.iter().fold(outside.join("\n"), |text, (piece, _)| text.replace(piece, ""))
}

/// The keys that a text names: long names anywhere, letters and signs as code.
fn keys_named(text: &str) -> Vec<String> {
    let keymap = default_keymap();
    let keys =
        CONTEXTS.iter().flat_map(|(_, context)| keymap.list(*context).map(|(key, _)| label(key)));
    let keys: BTreeSet<String> = keys.collect();
    let is_chord =
        |word: &str| ["Ctrl+", "Alt+", "Shift+"].iter().any(|with| word.starts_with(with));
    let words = text.split(|c: char| c.is_whitespace() || ",.;:()*`".contains(c));
    let long = words.filter(|word| is_chord(word) || word.len() > 2 && keys.contains(*word));
    let code = text.split('`').skip(1).step_by(2);
    let short =
        code.filter(|span| span.chars().count() == 1 && keys.contains(*span) && *span != ":");
    long.chain(short).map(str::to_owned).collect()
}

/// Signs that mean something else in a text.
const NO_KEYS: [(&str, &[&str]); 3] =
    [("docs/config.md", &["?", "G"]), ("docs/policy.md", &["?"]), ("docs/rehearsal.md", &[])];

#[test]
fn every_key_that_a_text_names_is_pressed_in_a_test() {
    for (name, text) in TEXTS {
        let signs = NO_KEYS.iter().find(|(of, _)| *of == name).map_or(&[][..], |(_, signs)| *signs);
        let mut left = keys_named(&not_played(text));
        left.retain(|key| !signs.contains(&key.as_str()));
        assert!(left.is_empty(), "{name}: no row of ui/screen/app/tests/plays.rs presses {left:?}");
    }
    for (piece, _) in PLAYS {
        let is_there = TEXTS.iter().any(|(_, text)| text.contains(piece));
        assert!(is_there, "no text says this any more: {piece}");
    }
}

#[test]
fn every_key_of_a_help_page_is_bound_and_pressed_in_a_test() {
    let mut found = BTreeSet::new();
    for verb in LIST {
        for key in verb.more.iter().flat_map(|text| placeholders(text)) {
            let named = with_default_keys(&key);
            assert!(
                named != key && !named.contains("(no key)"),
                ":help {} names {named}",
                verb.name
            );
            found.insert((verb.name, key));
        }
    }
    let is_played = |(verb, key): &(&str, String)| {
        // The sentence about marks is in the page of each verb that takes several Pods.
        let marks = verb::find(verb).is_some_and(verb::Verb::takes_several);
        HELP.iter().any(|(of, row, _)| row == key && (of == verb || marks && *of == "stop"))
    };
    let left: Vec<_> = found.iter().filter(|row| !is_played(row)).collect();
    assert!(left.is_empty(), "no row of ui/screen/app/tests/plays.rs presses {left:?}");
    for (verb, key, _) in HELP {
        assert!(found.contains(&(*verb, (*key).to_owned())), ":help {verb} has no {key} any more");
    }
}

#[test]
fn each_key_that_a_text_names_does_what_it_says() {
    PLAYS.iter().for_each(|(_, play)| play());
}

#[test]
fn each_key_of_a_help_page_does_what_it_says() {
    HELP.iter().for_each(|(_, _, play)| play());
}
