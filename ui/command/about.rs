//! What `:help <verb>` says beyond the one sentence of the table.

use crate::command::Row;

/// Which verbs mean the marks.
const MARKS: &str = "Space marks a row of the tree. There, a verb that takes several Pods (stop, restore, \
    pause, resume, cancel, compact, rm) and names none means those that are marked, after it has named \
    them; every other key means the row. Space again or Esc takes marks back.";

/// Paragraphs about a verb.
const MORE: &[(&str, &[&str])] = &[
    (
        "peer",
        &[
            "Makes the selected Pod and another one peers of each other, at any time, also while they run.",
            "The other side is not asked, and need not be live: messages to a stopped Pod need :restore first.",
            "Peers see each other and may send each other messages. A peer edge gives nothing else: no \
             scope, no reading of what the other says, no news of its ends, and no say over it.",
            ":unpeer takes it back.",
        ],
    ),
    (
        "stop",
        &[
            "Stops the Pod: it has 5 s to finish, then everything it started is ended. What it was lent \
             goes back at once. :restore brings it back.",
            "With --tree everything below it is stopped too, after it was named. Several Pods are stopped \
             after one question; each is told of that could not be.",
            MARKS,
            "Esc and Ctrl+C only pause a turn; :cancel drops it.",
        ],
    ),
    (
        "restore",
        &[
            "Brings a stopped Pod back with its history, configuration, scope and peers. Nothing is run or \
             sent: a turn that was cut off waits for :resume, and a tool call that was cut off is not repeated.",
            "When something is to be known first, the plan is shown and waits for Enter. --plan only shows \
             it. --tree brings back everything below it, too. Of several Pods one plan is shown.",
            MARKS,
        ],
    ),
    (
        "lend",
        &[
            "Lends write on a path from one Pod to another, which must both be live; the lender cannot write \
             there until it comes back. --read lends reading only.",
            ":reclaim takes it back, :who says who has it, and it comes back by itself when the borrower stops.",
        ],
    ),
    (
        "policy",
        &[
            "Lists every rule that decides what Pods may do, in the order in which they are tried; the first \
             that fits counts. Rules with a number come from your answers: :policy revoke <n> ends one, and \
             so does :stop of its Pod.",
        ],
    ),
    (
        "inbox",
        &[
            "Goes to what waits for you. a allows once, A from now on for that Pod, T for everything below it \
             too, D denies with a reason that the model reads.",
            "A key counts only after the request has been in front of you, unchanged, for a moment. Enter \
             never allows, and the mouse never answers.",
        ],
    ),
    (
        "pin",
        &[
            "Keeps a Pod under a digit: 1 to 9 in the tree, and after the leader, go to it. The same digit again \
             ends it. m and a digit in the tree do the same for the row.",
            "A digit under which no Pod is kept goes to that row of the tree. Pins are this screen's own: they \
             last until it is left.",
        ],
    ),
    (
        "split",
        &[
            "Shows two transcripts side by side: the current Pod's, and that of the Pod named or, without a \
             name, of the one that was current before. Again, or with the same name, it is one.",
            "The composer speaks to the current Pod. Tab goes through both; a verb that names no Pod is about \
             the one in focus. Where the screen is too narrow, it says how wide it has to be; :zoom makes room.",
        ],
    ),
    (
        "fork",
        &[
            "Makes a new Pod with the history of the selected one, up to the message where f was pressed or \
           all of it. The one it comes from stays as it is.",
        ],
    ),
];

/// Everything there is to say about a verb, in paragraphs.
pub fn about(row: &Row) -> Vec<String> {
    let usage = format!(":{} {}", row.name, row.usage);
    let mut text = vec![usage.trim_end().to_owned(), format!("{}.", row.help)];
    let more = MORE.iter().find(|(name, _)| *name == row.name);
    text.extend(more.into_iter().flat_map(|(_, lines)| lines.iter()).map(ToString::to_string));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::find;

    #[test]
    fn every_verb_that_is_told_more_about_is_in_the_table() {
        for (name, _) in MORE {
            assert!(find(name).is_some(), "{name}");
        }
    }

    #[test]
    fn help_on_peer_says_that_nobody_is_asked_and_what_it_gives() {
        let text = about(find("peer").expect("a verb")).join(" ");
        for said in
            ["is not asked", "need not be live", "may send each other messages", "nothing else"]
        {
            assert!(text.contains(said), "{said}: {text}");
        }
    }
}
