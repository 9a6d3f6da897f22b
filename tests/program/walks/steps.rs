//! The steps of a walk: each carries out a verb and says what the history is after it.

use crate::walks::history::History;
use crate::walks::life::Life;
use crate::walks::provider::file_of;
use crate::walks::reading::same;
use crate::walks::words::{is_message, of_entry};
use yoi::protocol::event::Line;
use yoi::protocol::{Event, Method, PodName, State, flatten};

/// What a step did.
pub enum Step {
    Done(History),
    /// The host is to be killed now; the history is one of these then.
    Kill(Vec<History>),
}

impl Life<'_> {
    /// One random step.
    pub async fn step(&mut self, model: &History, n: usize) -> Result<Step, String> {
        let (compacts, goes_back) =
            (!model.paused && !model.context.is_empty(), !model.messages.is_empty());
        let now = match self.walk.dice.below(18) {
            4 | 5 => self.message(format!("tool {n}"), model).await?,
            6 => self.pause(n, model).await?,
            7 => self.cancel(n, model).await?,
            8 | 9 => return self.kill(model, n).await.map(Step::Kill),
            10 if model.paused => self.resume(model).await?,
            11 if compacts => self.compact(model).await?,
            12 => self.fork(n, model).await?,
            13 | 14 if goes_back => {
                let at = self.walk.dice.below(model.messages.len());
                let method = self.rewind(at).await;
                let rewound = self.call(method).await;
                let Event::RewindApplied { input, .. } = rewound else { panic!("{rewound:?}") };
                let (message, _) = &model.messages[model.messages.len() - 1 - at];
                same("taken back", &[flatten(&input)], std::slice::from_ref(message))?;
                model.rewound(at)
            }
            15 | 16 if !model.undo.is_empty() => {
                let method = self.take_back("undo").await;
                self.call(method).await;
                model.undone()
            }
            17 if !model.redo.is_empty() => {
                let method = self.take_back("redo").await;
                self.call(method).await;
                model.redone()
            }
            _ => self.message(format!("say {n}"), model).await?,
        };
        Ok(Step::Done(now))
    }

    fn did(&mut self, what: impl Into<String>) {
        self.walk.done.push(what.into());
    }

    /// Sends a message and compares the model request.
    async fn send(&mut self, text: &str, model: &History) -> Result<History, String> {
        self.did(text);
        let mut now = model.clone();
        now.message(text);
        self.call(Method::say(text)).await;
        self.requested(&now).await?;
        Ok(now)
    }

    async fn message(&mut self, text: String, model: &History) -> Result<History, String> {
        let mut now = self.send(&text, model).await?;
        if text.starts_with("tool ") {
            now.says("call");
            now.says("result");
            self.requested(&now).await?;
            self.walk.files.insert(file_of(&text), text.clone());
        }
        self.until_end(State::Idle).await;
        Ok(now.with(&format!("re {text}")))
    }

    async fn pause(&mut self, n: usize, model: &History) -> Result<History, String> {
        let now = self.begun(n, model).await?;
        self.did("pause");
        self.call(Method::Pause).await;
        self.until_end(State::Paused).await;
        Ok(now)
    }

    /// A message whose answer does not end; the history once it is paused.
    async fn begun(&mut self, n: usize, model: &History) -> Result<History, String> {
        let begun = format!("begun half {n}");
        let now = self.send(&format!("half {n}"), model).await?;
        self.until(|event| matches!(event, Event::TextDelta { text } if *text == begun)).await;
        Ok(now.with(&begun).paused())
    }

    async fn cancel(&mut self, n: usize, model: &History) -> Result<History, String> {
        self.send(&format!("stall {n}"), model).await?;
        self.did("cancel");
        self.call(Method::Cancel).await;
        self.until_end(State::Idle).await;
        Ok(History { paused: false, ..model.clone() })
    }

    async fn resume(&mut self, model: &History) -> Result<History, String> {
        self.did("resume");
        self.call(Method::Resume).await;
        self.requested(model).await?;
        let message = model.context.iter().rev().find(|words| is_message(words)).cloned();
        self.until_end(State::Idle).await;
        let now = model.with(&format!("re {}", message.unwrap_or_default()));
        Ok(History { paused: false, ..now })
    }

    async fn compact(&mut self, model: &History) -> Result<History, String> {
        self.did("compact");
        self.call(Method::Compact).await;
        self.requested(model).await?;
        let is_end = |event: &Event| {
            matches!(event, Event::CompactDone { .. } | Event::CompactFailed { .. })
        };
        if let Event::CompactFailed { error } = self.until(is_end).await {
            return Err(error);
        }
        self.until_state(State::Idle).await;
        Ok(model.compacted())
    }

    /// The request for a rewind; 0 is the newest message.
    async fn rewind(&mut self, at: usize) -> Method {
        let listed = self.call(Method::ListRewindTargets).await;
        let Event::RewindTargets { targets, head_entries, .. } = listed else {
            panic!("{listed:?}")
        };
        self.did(format!("rewind to before {}", targets[at].preview));
        Method::Rewind { target: targets[at].id, expected_head_entries: head_entries }
    }

    async fn take_back(&mut self, what: &str) -> Method {
        self.did(what);
        let listed = self.call(Method::ListRewindTargets).await;
        let Event::RewindTargets { head_entries, undo, redo, .. } = listed else {
            panic!("{listed:?}")
        };
        let of = if what == "undo" { undo } else { redo }.expect("one that can be taken back");
        Method::UndoRewind { entry: of.entry, expected_head_entries: head_entries }
    }

    /// Forks at a random entry or at the end, and compares. From a fork at the end the walk goes on.
    async fn fork(&mut self, n: usize, model: &History) -> Result<History, String> {
        if self.info().segment.is_none() {
            self.did("no fork of nothing");
            return Ok(model.clone());
        }
        let page = self.call(Method::Page { before: None, max_bytes: 1 << 20 }).await;
        let Event::Page { entries, .. } = page else { panic!("{page:?}") };
        let entries = entries.into_iter().filter_map(|line| match line {
            Line::Whole(entry) => of_entry(&entry).map(|_| entry.id),
            Line::Cut { .. } | Line::Damaged { .. } => None,
        });
        let entries: Vec<_> = entries.collect();
        let at = self.walk.dice.below(entries.len() + 1);
        self.did(format!("fork at {at} of {}", entries.len()));
        let name = PodName::parse(&format!("f{n}")).expect("a name");
        let (id, expected) = match entries.get(at) {
            Some(id) => (*id, &model.shown[..=at]),
            None => (None, &model.shown[..]),
        };
        self.call(Method::Fork { name: Some(name.clone()), at: id }).await;
        same("fork", &self.pages(&name, 1 << 20).await, expected)?;
        let other = if id.is_none() { self.walk.pod.clone() } else { name.clone() };
        if id.is_none() {
            self.follow(name.clone()).await;
            let listed = format!(" {name} ");
            self.screen().shows(|text| text.contains(&listed))?;
            // The leader, for the composer may hold what a rewind took back.
            self.screen().press(&format!("\x18:open {name}\r"));
            let title = format!("│ {name} ");
            self.screen().shows(|text| text.contains(&title))?;
        }
        self.call_to(&other, Method::StopPods { tree: false, unless_busy: false, silent: false })
            .await;
        self.call_to(&other, Method::Remove).await;
        Ok(model.clone())
    }

    /// Begins something in which the host is to be killed; the histories that may be there then.
    async fn kill(&mut self, model: &History, n: usize) -> Result<Vec<History>, String> {
        let candidates = match self.walk.dice.below(7) {
            1 => vec![self.send(&format!("stall {n}"), model).await?.paused()],
            2 => {
                let now = self.begun(n, model).await?;
                let without = self.walk_back(&now);
                vec![now, without]
            }
            3 => {
                let text = format!("say {n}");
                let sent = self.send(&text, model).await?;
                let answered = sent.with(&format!("re {text}"));
                vec![sent.paused(), answered.paused(), answered]
            }
            4 if !model.paused && !model.context.is_empty() => {
                self.did("compact");
                self.call(Method::Compact).await;
                self.requested(model).await?;
                vec![model.clone(), model.compacted()]
            }
            5 if !model.messages.is_empty() => {
                let at = self.walk.dice.below(model.messages.len());
                let method = self.rewind(at).await;
                self.one_of(method, model, model.rewound(at)).await
            }
            6 if !model.undo.is_empty() => {
                let method = self.take_back("undo").await;
                self.one_of(method, model, model.undone()).await
            }
            _ => vec![model.clone()],
        };
        self.did("kill -9");
        Ok(candidates)
    }

    /// The same without the text that streamed, which is kept from time to time only.
    fn walk_back(&self, now: &History) -> History {
        let mut before = now.clone();
        before.shown.pop();
        before.context.pop();
        before
    }

    /// Sends a request; whether its reply is waited for is left to the dice.
    async fn one_of(&mut self, method: Method, before: &History, after: History) -> Vec<History> {
        if self.walk.dice.below(2) == 0 {
            self.call(method).await;
            return vec![after];
        }
        let (client, pod) = (self.client.clone(), self.walk.pod.clone());
        let call = tokio::spawn(async move { client.call(Some(&pod), method).await });
        tokio::task::yield_now().await;
        drop(call);
        vec![before.clone(), after]
    }
}
