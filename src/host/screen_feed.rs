//! The lines for one screen. The row of a Pod that the screen does not follow waits for a moment, and a newer row of that Pod
//! takes its place: such a Pod may change often, and a person sees its last row only. No later event about the Pod comes
//! before its row.
//!
//! The pieces of a reply come many times a second, too, and a person reads them together. Those that follow one within a
//! moment wait until it is over, or until anything else comes.

use crate::host::subscribers::{Follows, Queue, Queued};
use crate::protocol::PodName;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long a row waits for a newer one.
const WAITS: Duration = Duration::from_millis(50);
/// How long a piece waits for further ones. With each of them a screen paints, and 15 times a second are enough to read.
const TOGETHER: Duration = Duration::from_millis(66);
/// How many pieces wait at most.
const PIECES: usize = 64;

/// What a line is about.
#[derive(Debug)]
pub(crate) enum About {
    /// The whole row of a Pod.
    Row(PodName),
    /// Something that happened in a Pod.
    Pod(PodName),
    /// A piece of what a model says or a command prints.
    Piece(PodName),
    All,
}

/// A line for screens.
#[derive(Debug)]
pub(crate) struct ScreenLine {
    pub(crate) line: Vec<u8>,
    pub(crate) about: About,
}

type Line = Queued<Arc<ScreenLine>>;

/// The lines for one screen.
#[derive(Debug)]
pub(crate) struct ScreenFeed {
    queue: Queue<Arc<ScreenLine>>,
    follows: Follows,
    /// The rows that wait, in the order of their Pods' first ones.
    rows: BTreeMap<u64, Line>,
    places: HashMap<PodName, u64>,
    /// From when on the rows are given out; `None` while none waits.
    due: Option<Instant>,
    /// The pieces that wait.
    pieces: VecDeque<Line>,
    /// From when on they are given out.
    pieces_due: Instant,
    /// The row that goes before `behind`, because both are about one Pod.
    before: Option<Line>,
    /// The line that is given out once no row is due.
    behind: Option<Line>,
}

impl ScreenFeed {
    pub(crate) fn new(queue: Queue<Arc<ScreenLine>>, follows: Follows) -> Self {
        let (rows, places, pieces) = (BTreeMap::new(), HashMap::new(), VecDeque::new());
        let (due, pieces_due) = (None, Instant::now());
        let (before, behind) = (None, None);
        Self { queue, follows, rows, places, due, pieces, pieces_due, before, behind }
    }

    /// The next line; `None` when this screen was cut off and has read everything. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<Line> {
        loop {
            if let Some(line) = self.ready() {
                return Some(line);
            }
            let pieces_due = (!self.pieces.is_empty()).then_some(self.pieces_due);
            tokio::select! {
                biased;
                line = self.queue.next() => match line {
                    Some(line) => self.sort(line),
                    None if self.pieces.is_empty() => return None,
                    None => self.pieces_due = Instant::now(),
                },
                () = until(self.due) => {}
                () = until(pieces_due) => {}
            }
        }
    }

    /// Everything that waits now, in order.
    pub(crate) fn waiting(&mut self) -> Vec<Line> {
        self.all_due();
        let mut lines: Vec<Line> = std::iter::from_fn(|| self.ready()).collect();
        lines.extend((0..self.queue.len()).map_while(|_| self.queue.try_next()));
        lines
    }

    /// Whether this screen was cut off and has read everything.
    pub(crate) fn is_over(&self) -> bool {
        self.queue.is_over()
    }

    /// The next line that need not wait.
    pub(crate) fn ready(&mut self) -> Option<Line> {
        let now = Instant::now();
        let rows_are_due = self.due.is_some_and(|due| due <= now);
        // A row never comes before the pieces that it follows.
        if (self.pieces_due <= now || rows_are_due)
            && let Some(piece) = self.pieces.pop_front()
        {
            if self.pieces.is_empty() {
                self.pieces_due = now + TOGETHER;
            }
            return Some(piece);
        }
        if let Some(row) = self.before.take() {
            return Some(row);
        }
        if rows_are_due {
            if let Some((_, row)) = self.rows.pop_first() {
                return Some(row);
            }
            self.due = None;
            self.places.clear();
        }
        self.behind.take()
    }

    fn sort(&mut self, line: Line) {
        match &line.line.about {
            About::Row(pod) if !self.follows.holds(pod) => {
                let next = self.rows.last_key_value().map_or(0, |(last, _)| last + 1);
                let place = *self.places.entry(pod.clone()).or_insert(next);
                self.rows.insert(place, line);
                self.due.get_or_insert_with(|| Instant::now() + WAITS);
                return;
            }
            About::Row(pod) => {
                let older = self.places.remove(pod);
                older.and_then(|place| self.rows.remove(&place));
            }
            About::Pod(pod) => {
                let place = self.places.remove(pod);
                self.before = place.and_then(|place| self.rows.remove(&place));
            }
            About::Piece(pod) => {
                let row = self.places.remove(pod).and_then(|place| self.rows.remove(&place));
                self.pieces.extend(row.into_iter().chain([line]));
                if self.pieces.len() >= PIECES {
                    self.pieces_due = Instant::now();
                }
                return;
            }
            About::All => self.all_due(),
        }
        self.pieces_due = Instant::now();
        self.behind = Some(line);
    }

    fn all_due(&mut self) {
        self.pieces_due = Instant::now();
        if self.due.is_some() {
            self.due = Some(Instant::now());
        }
    }
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::subscribers::{Limits, Subscribers};
    use tokio::sync::watch;

    struct Bench {
        all: Subscribers<Arc<ScreenLine>, Follows>,
        feed: ScreenFeed,
        follows: watch::Sender<Option<Vec<PodName>>>,
    }

    fn name(name: &str) -> PodName {
        PodName::parse(name).unwrap()
    }

    /// A screen that follows `shown`, or everything.
    fn screen(shown: Option<&str>) -> Bench {
        let (sender, follows) = Follows::new();
        sender.send_replace(shown.map(|shown| vec![name(shown)]));
        let mut all = Subscribers::new(Limits { lines: 64, bytes: 1 << 20 });
        let feed = ScreenFeed::new(all.subscribe_to(follows.clone()), follows);
        Bench { all, feed, follows: sender }
    }

    impl Bench {
        fn tell(&mut self, about: About, text: &str) {
            let line = Arc::new(ScreenLine { line: text.as_bytes().to_vec(), about });
            self.all.publish_to(&line, text.len(), |_| true);
        }

        fn row(&mut self, pod: &str, text: &str) {
            self.tell(About::Row(name(pod)), text);
        }

        /// The lines that come within so many milliseconds.
        async fn within(&mut self, millis: u64) -> Vec<String> {
            let end = Instant::now() + Duration::from_millis(millis);
            let mut lines = Vec::new();
            while let Ok(Some(line)) = tokio::time::timeout_at(end, self.feed.next()).await {
                lines.push(text(&line));
            }
            lines
        }
    }

    fn text(line: &Line) -> String {
        String::from_utf8(line.line.line.clone()).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn of_the_rows_of_a_pod_that_is_not_followed_the_last_one_comes_in_time() {
        let mut bench = screen(Some("shown"));
        bench.row("a", "a1");
        assert_eq!(bench.within(40).await, [""; 0]);
        bench.row("b", "b1");
        bench.row("a", "a2");
        assert_eq!(bench.within(10).await, ["a2", "b1"], "50 ms after the first");
        bench.row("a", "a3");
        assert_eq!(bench.within(49).await, [""; 0]);
        assert_eq!(bench.within(1).await, ["a3"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_pod_changes_twenty_times_a_second_at_most() {
        let mut bench = screen(Some("shown"));
        let mut came = 0;
        for n in 0..1_000 {
            bench.row("a", &format!("a{n}"));
            came += bench.within(1).await.len();
        }
        assert_eq!(came, 20);
    }

    #[tokio::test(start_paused = true)]
    async fn the_rows_that_are_followed_come_at_once_and_so_does_everything_without_a_choice() {
        let mut bench = screen(Some("shown"));
        bench.row("shown", "1");
        bench.row("shown", "2");
        assert_eq!(bench.within(0).await, ["1", "2"]);
        let mut bench = screen(None);
        bench.row("a", "1");
        bench.row("a", "2");
        assert_eq!(bench.within(0).await, ["1", "2"]);
    }

    #[tokio::test(start_paused = true)]
    async fn pieces_that_follow_one_come_together_and_before_whatever_follows_them() {
        let mut bench = screen(Some("shown"));
        let piece = |bench: &mut Bench, text: &str| bench.tell(About::Piece(name("shown")), text);
        piece(&mut bench, "1");
        assert_eq!(bench.within(0).await, ["1"], "the first one comes at once");
        for text in ["2", "3"] {
            piece(&mut bench, text);
            assert_eq!(bench.within(30).await, [""; 0]);
        }
        assert_eq!(bench.within(6).await, ["2", "3"]);
        piece(&mut bench, "4");
        bench.row("other", "row");
        assert_eq!(bench.within(10).await, [""; 0], "a row that waits makes no piece come");
        bench.tell(About::Pod(name("shown")), "end");
        assert_eq!(bench.within(0).await, ["4", "end"]);
        assert_eq!(bench.within(100).await, ["row"]);
        let texts: Vec<String> = (0..PIECES + 2).map(|at| at.to_string()).collect();
        let mut came = Vec::new();
        for text in &texts {
            piece(&mut bench, text);
            came.extend(bench.within(0).await);
        }
        assert_eq!(came, texts[..=PIECES], "no more than that wait");
        bench.all.clear();
        assert_eq!(bench.within(0).await, texts[PIECES + 1..]);
        assert!(bench.feed.next().await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_overtakes_a_row_that_it_follows() {
        let mut bench = screen(Some("shown"));
        bench.row("a", "a1");
        bench.tell(About::Pod(name("shown")), "text");
        assert_eq!(bench.within(0).await, ["text"], "another Pod");
        bench.tell(About::Pod(name("a")), "entry of a");
        assert_eq!(bench.within(0).await, ["a1", "entry of a"]);
        bench.row("a", "a2");
        bench.row("b", "b1");
        bench.tell(About::All, "b needs you");
        bench.row("a", "a3");
        assert_eq!(bench.within(0).await, ["a2", "b1", "b needs you"]);
        assert_eq!(bench.within(50).await, ["a3"]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_waits_is_given_out_in_order_before_a_reply() {
        let mut bench = screen(Some("shown"));
        bench.row("a", "a1");
        assert_eq!(bench.within(1).await, [""; 0]);
        bench.tell(About::Pod(name("a")), "entry of a");
        bench.row("a", "a2");
        let waiting: Vec<String> = bench.feed.waiting().iter().map(text).collect();
        assert_eq!(waiting, ["a1", "entry of a", "a2"]);
        assert_eq!(bench.within(100).await, [""; 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_screen_that_shows_the_pod_meanwhile_gets_no_older_row_behind_a_newer_one() {
        let mut bench = screen(Some("shown"));
        bench.row("a", "a1");
        assert_eq!(bench.within(1).await, [""; 0]);
        bench.follows.send_replace(Some(vec![name("a")]));
        bench.row("a", "a2");
        assert_eq!(bench.within(100).await, ["a2"]);
    }
}
