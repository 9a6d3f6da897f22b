//! `:rewind`: goes back to before one of your messages.

use crate::verb::dialogue::or_end;
use crate::verb::several::confirm;
use crate::verb::{Dialogue, End, Known, Next, Pick, Reply, Request, Safety, Verb, Why, of, verb};
use clap::Args;
use yoi::protocol::{Event, Method, PodName, RewindTarget};
use yoi::text::SafeText;

pub static VERB: Verb = of::<Rewind>(Verb {
    safety: Safety::TypedOnly,
    more: &[
        "Without a number it lists your messages, the last one first. What came after the message leaves the \
         history, after a confirmation; what tools did to files stays done.",
    ],
    ..verb("rewind", "go back to before one of your messages")
});

#[derive(Args)]
struct Rewind {
    /// The number of the message
    #[arg(value_name = "TURN", value_parser = number)]
    turn: Option<usize>,
    #[arg(skip)]
    pod: Option<PodName>,
    /// Newest first, as the host lists them.
    #[arg(skip)]
    targets: Vec<RewindTarget>,
    #[arg(skip)]
    chosen: Option<RewindTarget>,
}

fn number(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| format!("`{text}` is no turn: turns have numbers"))
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
            Some(Reply::Confirmed) => self.go(),
            Some(reply) if self.chosen.is_some() => {
                or_end(reply.single().map(|_| Next::End(End::done(self.sentence()))))
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
        let Event::RewindTargets { head_entries, targets, .. } = event else {
            return Next::End(End::refused(Why::Failed, "the host did not list the messages"));
        };
        self.targets = targets;
        let Some(turn) = self.turn else { return self.list(head_entries) };
        match self.targets.iter().find(|target| target.turn_index == turn).cloned() {
            Some(target) => self.choose(target),
            None => {
                let text = {
                    let list = known.spell_for("rewind", self.pod.as_slice());
                    format!("{} has no turn {turn}; {list} lists them", self.name())
                };
                Next::End(End::refused(Why::Usage, text))
            }
        }
    }

    fn list(&self, head: usize) -> Next {
        if self.targets.is_empty() {
            let text = format!("{} has nothing to go back to", self.name());
            return Next::End(End::shown(text));
        }
        let row = |target: &RewindTarget| {
            let dropped = head.saturating_sub(target.truncate_entries);
            let help = match &target.disabled_reason {
                Some(reason) if !target.eligible => reason.clone(),
                _ => format!("drops {dropped} entries"),
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
        if !target.eligible {
            let why = target.disabled_reason;
            let why = why.unwrap_or_else(|| "the Pod cannot go back there".into());
            return Next::End(End::refused(Why::Failed, why));
        }
        let loses = target.warning.as_deref().unwrap_or("what came after it leaves the history");
        let question =
            format!("go back to before “{}”? {loses}", SafeText::line(target.preview.as_str()));
        self.chosen = Some(target);
        confirm(self.pod.as_slice(), question, "rewind")
    }

    fn go(&self) -> Next {
        match (&self.pod, &self.chosen) {
            (Some(pod), Some(target)) => {
                let expected_head_entries = target.expected_head_entries;
                let method = Method::Rewind { target: target.id, expected_head_entries };
                Next::call(Request::to(pod.clone(), method))
            }
            _ => Next::End(End::default()),
        }
    }

    fn sentence(&self) -> String {
        let preview = self.chosen.as_ref().map_or("", |target| target.preview.as_str());
        format!("rewound {} to before: {}", self.name(), SafeText::line(preview))
    }
}
