//! Commands of the shell that are no verbs: `yoi ls`, `yoi send --socket` and `yoi host`.

use crate::console;
use crate::headless::{Exit, Failure, Form, LineClient, Printer, close};
use crate::rows;
use crate::start::{self, Opening, Stopped};
use crate::verb::spell;
use crate::verb::targets::list;
use crate::wording::duration::in_words;
use crate::wording::moved;
use crate::wording::state;
use crate::wording::why::why_and_way_on;
use std::path::Path;
use yoi::client::family::Family;
use yoi::client::pod_socket::{PodSocket, SocketError};
use yoi::protocol::{ClientKind, Event, Method, PodInfo, PodName, Segment, State};
use yoi::text::SafeText;

/// Ends the conversation and turns its exit into a result; its sentence has been printed.
async fn done(client: LineClient, result: Result<(), Failure>) -> Result<(), Failure> {
    match close(client, result).await {
        Exit::Finished => Ok(()),
        exit => Err(Failure::new(exit, String::new())),
    }
}

/// `yoi ls`: a table of the Pods, or one a line as JSON; with `all` also those that are ephemeral and
/// stopped.
pub async fn ls(opening: &Opening, all: bool, json: bool) -> Result<(), Failure> {
    let client = LineClient::open_to_read(opening, Printer::new(Form::Plain)).await?;
    let (mut pods, others): (Vec<PodInfo>, Vec<PodInfo>) =
        client.family.all().iter().cloned().partition(|info| all || info.is_listed());
    pods.sort_by_key(|info| numbered(info.name.as_str()));
    if json {
        for info in &pods {
            let line = serde_json::to_string(info);
            let line = line.map_err(|e| Failure::new(Exit::Failed, e.to_string()))?;
            console::out(&SafeText::json(line));
        }
    } else if pods.is_empty() {
        console::err(&nothing_listed(others.len()));
    } else {
        console::out(table(&pods, &opening.cwd, yoi::protocol::now_ms()).trim_end());
    }
    done(client, Ok(())).await
}

/// The parts of a name by which it is sorted: texts, each with the number behind it, so that `p-2` stands before
/// `p-10`.
fn numbered(name: &str) -> Vec<(String, u64)> {
    let mut parts: Vec<(String, u64)> = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let (text, behind) = rest.split_at(digits);
        let end = behind.find(|c: char| !c.is_ascii_digit()).unwrap_or(behind.len());
        // A part without digits, or with too many for a number, sorts as zero.
        parts.push((text.to_owned(), behind[..end].parse().unwrap_or(0)));
        rest = &behind[end..];
    }
    parts
}

fn nothing_listed(others: usize) -> String {
    match others {
        0 => "no pods yet: `yoi`, or `yoi -p <message>`, makes one".to_owned(),
        1 => "no pods but one of `yoi -p`: `yoi ls --all` lists it".to_owned(),
        n => format!("no pods but {n} of `yoi -p`: `yoi ls --all` lists them"),
    }
}

/// The widest cell of a state; longer sentences stand below their row.
const STATE_COLUMNS: usize = 40;

/// The state of a Pod, and when it is deleted.
fn state_cell(info: &PodInfo, here: &Path, now: u64) -> String {
    let mut notes: Vec<String> = Vec::new();
    let why = why_and_way_on(info, "");
    let why = why.trim_start_matches("; ");
    if !why.is_empty() {
        notes.push(spell::for_shell(why, &Family::default(), Some(&info.name)));
    }
    if let Some(met) = &info.limit {
        notes.push(format!("met a limit: {}", met.kind));
    }
    notes.extend(state::in_background(info));
    if let Some(dir) = moved::around(info, here) {
        let (dir, name) = (dir.display(), &info.name);
        notes.push(format!("its directory was moved to {dir}: `yoi restore {name}` follows it"));
    }
    if info.ephemeral {
        // The time counts from its last use.
        notes.push(match info.state {
            State::Running | State::NeedsYou => "ephemeral".to_owned(),
            _ => format!("ephemeral, {} left", in_words(info.deleted_at().saturating_sub(now))),
        });
    }
    match notes.is_empty() {
        true => state::of_pod(info).to_owned(),
        false => format!("{} ({})", state::of_pod(info), notes.join(" · ")),
    }
}

fn table(pods: &[PodInfo], here: &Path, now: u64) -> String {
    let rows = pods.iter().map(|info| {
        let (state, _) = state_cells(info, here, now);
        let model = if info.model.is_empty() { "no model" } else { &info.model };
        [
            info.name.to_string(),
            state,
            in_words(now.saturating_sub(info.since)),
            model.to_owned(),
            info.cwd.display().to_string(),
        ]
    });
    let head = ["POD", "STATE", "SINCE", "MODEL", "DIRECTORY"].map(str::to_owned);
    let rows = rows.map(|row| row.map(|cell| SafeText::line(cell).into_string()));
    let table = aligned(&std::iter::once(head).chain(rows).collect::<Vec<_>>());
    let below = pods.iter().map(|info| state_cells(info, here, now).1);
    let below = std::iter::once(None).chain(below);
    let lines = table.lines().zip(below).map(|(line, note)| match note {
        Some(note) => format!("{line}\n  {}\n", SafeText::line(note)),
        None => format!("{line}\n"),
    });
    lines.collect()
}

/// The cell of the state, and what is too long for it and stands below the row.
fn state_cells(info: &PodInfo, here: &Path, now: u64) -> (String, Option<String>) {
    let cell = state_cell(info, here, now);
    if rows::width(&cell) <= STATE_COLUMNS {
        return (cell, None);
    }
    (state::of_pod(info).to_owned(), Some(cell))
}

/// The cells under each other, with two blanks between the columns.
pub fn aligned<const N: usize>(table: &[[String; N]]) -> String {
    let mut text = String::new();
    let mut widths = [0; N];
    for row in table {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = rows::width(cell).max(*width);
        }
    }
    for row in table {
        for (column, cell) in row.iter().enumerate() {
            text.push_str(cell);
            if column + 1 < row.len() {
                text.push_str(&" ".repeat(widths[column] - rows::width(cell) + 2));
            }
        }
        text.push('\n');
    }
    text
}

/// `yoi send --socket`: over the Pod's own socket, whichever program it belongs to.
pub async fn send_to_socket(socket: &Path, pod: &str, input: Vec<Segment>) -> Result<(), Failure> {
    let failed = |error: SocketError| Failure::new(Exit::Failed, error.to_string());
    let mut there = PodSocket::open(socket).await.map_err(failed)?;
    if there.greeting.pod_name != pod {
        let message =
            format!("{} is the socket of `{}`", socket.display(), there.greeting.pod_name);
        return Err(Failure::new(Exit::NotThere, message));
    }
    there.send(input).await.map_err(failed)?;
    console::err(&format!("sent to {pod}"));
    Ok(())
}

/// `yoi host`: prints the host of this data directory.
pub async fn host(opening: &Opening) -> Result<(), Failure> {
    let Some((client, mut events)) = start::attach(opening, ClientKind::Brief).await? else {
        console::out(&format!("no host runs for {}", opening.dirs.data.display()));
        return Ok(());
    };
    let reply = client.call(None, Method::HostStatus);
    let reply = tokio::select! {
        reply = reply => reply?,
        () = async { while events.recv().await.is_some() {} } => return Err(ended()),
    };
    if let Event::Host { version, pid, data_dir, runtime_dir } = reply {
        let (data, sockets) = (data_dir.display(), runtime_dir.display());
        console::out(&format!("version    {version}\nprocess    {pid}"));
        console::out(&format!("data       {data}\nsockets    {sockets}"));
    }
    Ok(())
}

/// `yoi host stop`: ends the host; its live Pods are live again at the next start. On a terminal it asks first where that
/// interrupts runs, unless `yes`.
pub async fn stop_host(opening: &Opening, yes: bool) -> Result<(), Failure> {
    let agrees = |running: &[PodName]| {
        if yes || !console::is_interactive() {
            return Ok(true);
        }
        console::confirms(&format!("this interrupts the runs of {}: go on?", list(running)))
    };
    match start::stop(opening, agrees).await? {
        Stopped::Kept => return Err(Failure::new(Exit::StoppedShort, "not done")),
        Stopped::NoHost => {
            console::err(&format!("no host runs for {}", opening.dirs.data.display()));
        }
        Stopped::Ended(running) if running.is_empty() => {
            console::err("the host ended; its live pods are live again at the next start");
        }
        Stopped::Ended(running) => console::err(&format!(
            "the host ended and interrupted the runs of {}; its live pods are live again at the next start, and \
             `yoi resume --all` goes on with the runs",
            list(&running)
        )),
    }
    Ok(())
}

fn ended() -> Failure {
    Failure::new(Exit::Failed, "the connection to the host ended")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_reason_stands_below_its_row_and_widens_no_column() {
        use crate::screen::app::tests::{NOON, pod};
        use yoi::protocol::State;
        let why = "its record in the database is damaged (no such column: configuration)";
        let damaged = PodInfo { why: Some(why.into()), ..pod("bob", State::Damaged) };
        let text = table(&[pod("alice", State::Idle), damaged], Path::new("/"), NOON);
        let lines: Vec<&str> = text.lines().collect();
        let [_, alice, bob, below] = lines[..] else { panic!("{text}") };
        assert!(alice.len() < 80 && bob.len() < 80, "{text}");
        assert!(bob.starts_with("bob    damaged  ") && below.contains(why), "{text}");
    }

    #[test]
    fn numbers_in_names_are_sorted_as_numbers() {
        let mut names = ["p-10", "p", "q1", "p-2", "p-2-1", "10", "9"];
        names.sort_by_key(|name| numbered(name));
        assert_eq!(names, ["9", "10", "p", "p-2", "p-2-1", "p-10", "q1"]);
    }

    #[test]
    fn the_state_of_a_pod_has_the_word_that_the_tree_shows() {
        let idle = crate::screen::app::tests::pod("alice", yoi::protocol::State::Idle);
        for unseen in [true, false] {
            let info = PodInfo { unseen, ..idle.clone() };
            let word = crate::screen::pane::glyph::Glyphs::default().state_sign(&info).word;
            assert_eq!(state_cell(&info, Path::new("/"), info.since), word);
        }
    }

    #[test]
    fn the_time_of_an_ephemeral_pod_is_named_while_it_runs_out() {
        let idle = PodInfo { ephemeral: true, ..crate::screen::app::tests::pod("a", State::Idle) };
        let now = idle.since + 3_600_000;
        assert!(state_cell(&idle, Path::new("/"), now).ends_with("(ephemeral, 23 h left)"));
        let running = PodInfo { state: State::Running, ..idle };
        assert!(state_cell(&running, Path::new("/"), now).ends_with("(ephemeral)"));
    }

    #[test]
    fn columns_are_aligned_and_no_line_ends_in_blanks() {
        let row = |cells: [&str; 5]| cells.map(str::to_owned);
        let text = aligned(&[row(["a", "b", "c", "d", "e"]), row(["long", "b", "c", "d", "/w"])]);
        assert_eq!(text, "a     b  c  d  e\nlong  b  c  d  /w\n");
        let text = aligned(&[row(["日本", "b", "c", "d", "e"]), row(["a", "b", "c", "d", "e"])]);
        assert_eq!(text, "日本  b  c  d  e\na     b  c  d  e\n");
    }
}
