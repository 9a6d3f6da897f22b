//! `:rewind`: goes back to before one of your messages, and takes that back.

use crate::verb::dialogue::or_end;
use crate::verb::several::confirm;
use crate::verb::targets::list;
use crate::verb::{
    Dialogue, End, Known, Next, Pick, Reply, Request, Safety, Verb, Way, Why, of, verb,
};
use crate::wording::losses;
use clap::Args;
use yoi::protocol::{Comeback, Event, Losses, Method, PodName, Refusal, RewindTarget};
use yoi::text::SafeText;

pub static VERB: Verb = of::<Rewind>(Verb {
    safety: Safety::TypedOnly,
    more: &[
        "Without a number it lists your messages, the last one first. After a confirmation, the message and \
         everything after it leave the history. What tools did to files stays done, and Pods that were spawned there \
         go on, unless --stop stops them.",
        "--undo takes back the last rewind; used again, the one before it. --redo takes back an undo. Nothing is \
         deleted: the log keeps what left the history.",
    ],
    ..verb("rewind", "take back one of your messages and everything after it")
});

#[derive(Args)]
struct Rewind {
    /// The number of the message; without it, all are listed
    #[arg(value_name = "MESSAGE", value_parser = number)]
    message: Option<usize>,
    /// Also stop the Pods that were spawned after the message, with all below them
    #[arg(long, conflicts_with_all = ["undo", "redo"])]
    stop: bool,
    /// Bring back what the last rewind dropped
    #[arg(long, conflicts_with_all = ["message", "redo"])]
    undo: bool,
    /// Drop again what --undo brought back
    #[arg(long, conflicts_with = "message")]
    redo: bool,
    #[arg(skip)]
    pod: Option<PodName>,
    /// Newest first, as the host lists them.
    #[arg(skip)]
    targets: Vec<RewindTarget>,
    #[arg(skip)]
    chosen: Option<Chosen>,
    /// The Pods that are stopped before the history changes.
    #[arg(skip)]
    stopping: Vec<PodName>,
}

/// What is done once it is confirmed.
#[derive(Clone)]
enum Chosen {
    Back(Box<RewindTarget>),
    Undo { comeback: Box<Comeback>, expected_head_entries: usize },
}

fn number(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| format!("`{text}` is no message: messages have numbers"))
}

impl Dialogue for Rewind {
    fn next(&mut self, known: &Known<'_>, last: Option<Reply>) -> Next {
        match last {
            None => or_end(known.current().map(|pod| {
                self.pod = Some(pod.clone());
                Next::call(Request::to(pod, Method::ListRewindTargets))
            })),
            Some(Reply::Picked(at)) => match self.targets.get(at).cloned() {
                Some(target) => self.choose(target),
                None => Next::End(End::default()),
            },
            Some(Reply::Confirmed) => self.stop_or_go(),
            Some(Reply::Results(results)) if !self.stopping.is_empty() => self.stopped(results),
            Some(reply) if self.chosen.is_some() => {
                or_end(reply.single().map(|_| Next::End(End::done(self.sentence(known)))))
            }
            Some(reply) => or_end(reply.single().map(|event| self.listed(known, event))),
        }
    }
}

impl Rewind {
    fn name(&self) -> &str {
        self.pod.as_ref().map_or("the Pod", PodName::as_str)
    }

    /// The messages are known: one of them was named, or one is to be chosen.
    fn listed(&mut self, known: &Known<'_>, event: Event) -> Next {
        let Event::RewindTargets { targets, undo, redo, head_entries } = event else {
            return Next::End(End::refused(Why::Failed, "the host did not list the messages"));
        };
        if self.undo || self.redo {
            return self.take_back(if self.undo { undo } else { redo }, head_entries);
        }
        self.targets = targets;
        let Some(message) = self.message else { return self.list() };
        match self.targets.iter().find(|target| target.turn_index == message).cloned() {
            Some(target) => self.choose(target),
            None => {
                let list = known.spell_for("rewind", self.pod.as_slice());
                let text = format!("{} has no message {message}; {list} lists them", self.name());
                Next::End(End::refused(Why::Usage, text))
            }
        }
    }

    fn list(&self) -> Next {
        if self.targets.is_empty() {
            let text = format!("{} has nothing to go back to", self.name());
            return Next::End(End::shown(text));
        }
        let row = |target: &RewindTarget| {
            let help = match &target.drops {
                Some(drops) => format!("drops {}", losses::count(drops)),
                None => "drops it and what came after it".into(),
            };
            let help = match target.drops.as_ref().map(|drops| drops.pods.as_slice()) {
                None | Some([]) => help,
                Some(pods) => format!("{help}; {} live", list(pods)),
            };
            (format!("{}  {}", target.turn_index, SafeText::line(target.preview.as_str())), help)
        };
        let rows = self.targets.iter().map(row).collect();
        Next::Pick(Pick {
            title: format!("rewind {} to before", self.name()),
            about: self.pod.clone(),
            rows,
        })
    }

    /// Goes back, after a confirmation.
    fn choose(&mut self, target: RewindTarget) -> Next {
        let preview = SafeText::line(target.preview.as_str());
        let dropped = match &target.drops {
            Some(drops) => format!("{} leave{}", losses::count(drops), s(drops)),
            None => "what came after it leaves".into(),
        };
        let files = target.drops.as_ref().and_then(losses::files);
        let files = files.map(|files| format!("; {files}")).unwrap_or_default();
        let pods = target.drops.as_ref().map(|drops| drops.pods.as_slice()).unwrap_or_default();
        let children = self.children(pods);
        let question =
            format!("go back to before “{preview}”? {dropped} the history{files}{children}");
        self.chosen = Some(Chosen::Back(Box::new(target)));
        confirm(self.pod.as_slice(), question, "rewind")
    }

    /// What becomes of the Pods that were spawned in what leaves the history, for the end of a question.
    fn children(&self, pods: &[PodName]) -> String {
        if pods.is_empty() {
            return String::new();
        }
        let names = list(pods);
        let one = pods.len() == 1;
        match (self.stop, one) {
            (true, true) => format!("; {names} is stopped"),
            (true, false) => format!("; {names} are stopped"),
            (false, true) => format!("; {names} goes on (--stop stops it)"),
            (false, false) => format!("; {names} go on (--stop stops them)"),
        }
    }

    /// Stops the Pods that are to be stopped. Their parent is not notified: it knows of them no more.
    fn stop_or_go(&mut self) -> Next {
        if let (true, Some(Chosen::Back(target))) = (self.stop, &self.chosen) {
            self.stopping = target.drops.iter().flat_map(|drops| drops.pods.clone()).collect();
        }
        if self.stopping.is_empty() {
            return self.go();
        }
        let stop = Method::StopPods { tree: true, unless_busy: false, silent: true };
        let stop = |pod: &PodName| Request::to(pod.clone(), stop.clone());
        Next::Call(self.stopping.iter().map(stop).collect())
    }

    fn stopped(&mut self, results: Vec<Result<Event, Refusal>>) -> Next {
        let stopping = std::mem::take(&mut self.stopping);
        let failed: Vec<String> = stopping
            .iter()
            .zip(results)
            .filter_map(|(pod, result)| Some(format!("{pod}: {}", result.err()?.message)))
            .collect();
        if failed.is_empty() {
            return self.go();
        }
        let text =
            format!("not rewound, because a pod could not be stopped: {}", failed.join(" · "));
        Next::End(End::refused(Why::Failed, text))
    }

    /// Takes a rewind or its undo back, after a confirmation.
    fn take_back(&mut self, of: Option<Box<Comeback>>, expected_head_entries: usize) -> Next {
        let Some(comeback) = of else {
            let what = if self.undo { "no rewind" } else { "no undo of a rewind" };
            let text = format!("{} has {what} to take back", self.name());
            return Next::End(End::shown(text));
        };
        let (returns, drops) = (&comeback.returns, &comeback.drops);
        let begins = SafeText::line(comeback.preview.as_str());
        let back = match (is_none(returns), is_none(drops)) {
            (true, true) => "nothing was said that comes back or goes".into(),
            (false, true) => format!("{} from “{begins}” on come back", losses::count(returns)),
            (true, false) => {
                format!("{} from “{begins}” on leave the history", losses::count(drops))
            }
            (false, false) => format!(
                "{} from “{begins}” on come back; {} that came since leave the history",
                losses::count(returns),
                losses::count(drops)
            ),
        };
        let files = losses::files(drops).map(|files| format!("; {files}")).unwrap_or_default();
        let children = match drops.pods.as_slice() {
            [] => String::new(),
            [one] => format!("; {one} goes on"),
            several => format!("; {} go on", list(several)),
        };
        let (what, enter) =
            if self.undo { ("undo the rewind", "undo") } else { ("rewind again", "rewind") };
        self.chosen = Some(Chosen::Undo { comeback, expected_head_entries });
        confirm(self.pod.as_slice(), format!("{what}? {back}{files}{children}"), enter)
    }

    fn go(&self) -> Next {
        let method = match self.chosen.clone() {
            Some(Chosen::Back(target)) => {
                let expected_head_entries = target.expected_head_entries;
                Method::Rewind { target: target.id, expected_head_entries }
            }
            Some(Chosen::Undo { comeback, expected_head_entries }) => {
                Method::UndoRewind { entry: comeback.entry, expected_head_entries }
            }
            None => return Next::End(End::default()),
        };
        match &self.pod {
            Some(pod) => Next::call(Request::to(pod.clone(), method)),
            None => Next::End(End::default()),
        }
    }

    fn sentence(&self, known: &Known<'_>) -> String {
        let name = self.name();
        match &self.chosen {
            Some(Chosen::Back(target)) => {
                let preview = SafeText::line(target.preview.as_str());
                let undo = self.spell(known, "--undo");
                let pods = target.drops.as_ref().map(|drops| drops.pods.as_slice());
                let on = match (self.stop, pods.unwrap_or_default()) {
                    (true, _) | (_, []) => String::new(),
                    (false, pods) => {
                        let stop = known.spell(&format!("stop {}", list(pods).replace(',', "")));
                        format!(" · {stop} stops what was spawned there")
                    }
                };
                format!("{undo} brings it back · rewound {name} to before: {preview}{on}")
            }
            Some(Chosen::Undo { .. }) if self.undo => {
                let redo = self.spell(known, "--redo");
                format!("{redo} takes that back · undid the rewind of {name}")
            }
            Some(Chosen::Undo { .. }) | None => {
                let undo = self.spell(known, "--undo");
                format!("{undo} brings it back · rewound {name} again")
            }
        }
    }

    /// This verb with a flag, as a person types it here.
    fn spell(&self, known: &Known<'_>, flag: &str) -> String {
        match (known.way, &self.pod) {
            (Way::Shell, Some(pod)) => known.spell(&format!("rewind {flag} --pod {pod}")),
            _ => known.spell(&format!("rewind {flag}")),
        }
    }
}

fn is_none(losses: &Losses) -> bool {
    losses.messages == 0 && losses.tool_calls == 0
}

/// The ending of a verb after one message.
fn s(losses: &Losses) -> &'static str {
    if losses.messages == 1 && losses.tool_calls == 0 { "s" } else { "" }
}
