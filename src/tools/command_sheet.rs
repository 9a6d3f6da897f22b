//! Describes the access of a Pod's next command, from the view that Bash passes to its helper.

use crate::protocol::CommandSheet;
use crate::sandbox::{Delegated, overview};
use crate::tools::Context;
use crate::tools::bash;
use crate::tools::outside::CommandNeeds;

/// The access of a command without needs. Reads the disk.
pub fn command_sheet(ctx: &Context) -> CommandSheet {
    let view = bash::view(ctx, &CommandNeeds::default());
    let limits = view.limits.sentences(view.isolation, Delegated::find().is_some());
    let time = &ctx.command_time;
    let (default, max) = (time.default.as_secs(), time.max.as_secs());
    let time =
        format!("a command takes at most {default} s, or up to {max} s when the call says so");
    let running = ctx.jobs.named().into_iter().map(|job| format!("{job} runs in the background"));
    let limits = [time].into_iter().chain(limits).chain(ctx.pod_world.cost()).chain(running);
    let limits = limits.chain(ctx.credentials.sentences()).collect();
    CommandSheet { limits, ..overview(view, &ctx.cwd, &ctx.env) }
}
