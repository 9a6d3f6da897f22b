//! `:jobs`: lists the commands that run in the background, or ends one.

use crate::verb::dialogue::or_end;
use crate::verb::targets::Target;
use crate::verb::{Dialogue, End, Known, Next, Reply, Request, Said, Verb, of, verb};
use crate::wording::duration::in_words;
use crate::wording::lines::Line;
use clap::{Args, Subcommand};
use yoi::protocol::{Event, JobInfo, Method};
use yoi::text::SafeText;

pub static VERB: Verb = of::<Jobs>(Verb {
    more: &[
        "A model starts a command in the background with the argument background of Bash, such as a development server, a \
         watcher or a long build. It has no time limit, and goes on when the screen is closed. It is confined as every command is, \
         and more: it reads the scope, and writes only below /tmp and in the directories that its call names (writes). \
         Meanwhile the other commands of its Pod only read those, and they are not lent. It ends \
         by itself, by BashStop of the model, by :jobs stop, with :stop of its Pod, and with the host. It is never \
         started again. The model is told once that it ended.",
        "Lists those of all Pods, and those that ended lately: the id, how long each has run or how it ended, its last \
         line, and the command.",
    ],
    ..verb("jobs", "list the commands that run in the background, or end one")
});

#[derive(Args)]
struct Jobs {
    #[command(subcommand)]
    change: Option<Change>,
}

#[derive(Subcommand)]
enum Change {
    /// End one, with everything that it started
    Stop {
        /// Its id, as it is listed: job-1
        id: String,
        /// Its Pod; without it, the selected one
        pod: Option<Target>,
    },
}

impl Dialogue for Jobs {
    fn next(&mut self, known: &Known<'_>, last: Option<Reply>) -> Next {
        let Some(reply) = last else { return or_end(self.begin(known)) };
        or_end(reply.single().map(|event| {
            Next::End(match (&self.change, event) {
                (None, Event::Jobs { jobs }) => sheet(&jobs, known.now),
                (Some(_), Event::Jobs { jobs }) => {
                    End::done(jobs.iter().map(ended).collect::<Vec<_>>().join(", "))
                }
                _ => End::shown("the host did not say what runs in the background"),
            })
        }))
    }
}

impl Jobs {
    fn begin(&self, known: &Known<'_>) -> Result<Next, End> {
        let Some(Change::Stop { id, pod }) = &self.change else {
            return Ok(Next::call(Request::host(Method::ListJobs)));
        };
        let target = known.target(pod.as_ref())?;
        Ok(Next::call(Request::to(target, Method::StopJob { id: id.clone() })))
    }
}

fn sheet(jobs: &[JobInfo], now: u64) -> End {
    if jobs.is_empty() {
        return End::answer("nothing runs in the background");
    }
    let mut lines: Vec<Line> = Vec::new();
    for job in jobs {
        lines.push(("job", headline(job, now)).into());
        lines.push(("  command", SafeText::line(&job.command).into_string()).into());
        if !job.writes.is_empty() {
            let dirs = job
                .writes
                .iter()
                .map(|dir| SafeText::line(dir.display().to_string()).into_string());
            lines.push(("  writes", dirs.collect::<Vec<_>>().join(", ")).into());
        }
        if let Some(line) = &job.last_line {
            lines.push(("  last line", SafeText::line(line).into_string()).into());
        }
    }
    End { said: Said::Text { title: "commands in the background".into(), lines }, ..End::default() }
}

fn headline(job: &JobInfo, now: u64) -> String {
    let JobInfo { pod, id, since, ended_at, outcome, .. } = job;
    let state = match (outcome, ended_at) {
        (Some(outcome), Some(at)) => {
            let ago = in_words(now.saturating_sub(*at));
            format!("ended {ago} ago: {}", SafeText::line(outcome))
        }
        _ => format!("runs, for {} so far", in_words(now.saturating_sub(*since))),
    };
    format!("{id} of {pod}: {state}")
}

fn ended(job: &JobInfo) -> String {
    let outcome = job.outcome.as_deref().map(|outcome| format!(": {}", SafeText::line(outcome)));
    format!("{} of {} has ended{}", job.id, job.pod, outcome.unwrap_or_default())
}
