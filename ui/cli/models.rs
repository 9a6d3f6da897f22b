//! `yoi models`: the models that are known by name, with what they cost and take.

use crate::cli::commands::aligned;
use crate::console;
use crate::headless::{Exit, Failure};
use crate::start::Opening;
use crate::wording::model;
use serde_json::json;
use yoi::config::{Catalogue, Known, Settings};

/// Lists the models whose names hold all words of `text`.
pub fn list(opening: &Opening, text: &[String], json: bool) -> Result<(), Failure> {
    let (settings, _) = Settings::load(&opening.dirs.config);
    let all = Catalogue::with(&settings);
    let fits = |spec: &String| {
        let spec = spec.to_lowercase();
        text.iter().all(|word| spec.contains(&word.to_lowercase()))
    };
    let specs: Vec<String> = all.specs().into_iter().filter(fits).collect();
    if specs.is_empty() {
        let text = format!(
            "no known model has {} in its name; others work too: `:model provider/name`, with its window and price in \
             [models.\"provider/name\"] of config.toml",
            text.join(" ")
        );
        return Err(Failure::new(Exit::NotThere, text));
    }
    let rows = specs.iter().map(|spec| (spec, all.models.get(spec).cloned().unwrap_or_default()));
    match json {
        true => rows.for_each(|(spec, known)| console::out(&line(spec, &known))),
        false => console::out(table(rows).trim_end()),
    }
    Ok(())
}

fn line(spec: &str, known: &Known) -> String {
    json!({
        "model": spec, "window": known.window, "max_output": known.max_output, "images": known.images,
        "reasoning": known.reasoning, "price": known.price, "deprecated": known.deprecated,
    })
    .to_string()
}

fn table<'a>(rows: impl Iterator<Item = (&'a String, Known)>) -> String {
    let head = ["MODEL", "WINDOW", "REPLY", "DOLLARS FOR A MILLION IN / OUT", "TAKES"];
    let rows = rows.map(|(spec, known)| {
        let tokens = |count: Option<u64>| count.map(model::tokens).unwrap_or_default();
        let price = known.price.as_ref().map(model::price).unwrap_or_default();
        let (window, reply) = (tokens(known.window), tokens(known.max_output));
        [spec.clone(), window, reply, price, model::notes(&known)]
    });
    aligned(&std::iter::once(head.map(str::to_owned)).chain(rows).collect::<Vec<_>>())
}
