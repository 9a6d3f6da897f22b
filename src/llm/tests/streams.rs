//! Replies as twelve servers stream them: read whole, in pieces, cut and damaged. Each file names its sources in its first
//! lines, which are comments of the stream.

use crate::config::models::Wire;
use crate::llm::bench::model;
use crate::llm::http::Who;
use crate::llm::http::answer::Answer;
use crate::llm::sse::{Decoder, Event};
use crate::llm::{Delta, Failure, Stop, Usage, json, provider};
use crate::protocol::Item;
use serde_json::{Map, Value, json};
use std::time::{Duration, Instant};

/// A server, its wire, its stream, and what it counts.
struct Server {
    name: &'static str,
    wire: Wire,
    stream: &'static str,
    /// Whether its reply begins with a thought.
    thinks: bool,
    cache_read: Option<u64>,
}

macro_rules! server {
    ($name:literal, $wire:ident, $thinks:literal, $cache_read:expr) => {
        Server {
            name: $name,
            wire: Wire::$wire,
            stream: include_str!(concat!("streams/", $name, ".sse")),
            thinks: $thinks,
            cache_read: $cache_read,
        }
    };
}

const SERVERS: [Server; 12] = [
    server!("openai", Responses, true, Some(64)),
    server!("anthropic", Anthropic, true, Some(64)),
    server!("gemini", Gemini, true, Some(64)),
    server!("azure", Chat, false, Some(64)),
    server!("openrouter", Chat, true, Some(64)),
    server!("vllm", Chat, true, None),
    server!("llama-cpp", Chat, true, None),
    server!("ollama", Chat, true, None),
    server!("deepseek", Chat, true, Some(64)),
    server!("mistral", Chat, true, None),
    server!("moonshot", Chat, true, Some(64)),
    server!("glm", Chat, true, Some(64)),
];

/// The seconds of mutation for each decoder; without it a small number of mutations is made.
const SECONDS: &str = "YOI_MUTATE_SECONDS";
const MUTATIONS: u32 = 150;

/// What became of a reply, without ids, which servers and decoders choose.
#[derive(Clone, Debug, PartialEq)]
struct Outcome {
    said: Vec<Said>,
    usage: Option<Usage>,
    end: Result<Stop, Failure>,
}

#[derive(Clone, Debug, PartialEq)]
enum Said {
    Thought(String),
    Text(String),
    Call { name: String, arguments: String, runs: bool },
    Other,
}

impl Server {
    fn answer(&self) -> Answer {
        let who = Who {
            provider: "p".into(),
            host: "h".into(),
            url: "u".into(),
            key: "k".into(),
            remedy: None,
            secret: None,
        };
        Answer::new(who, provider::decoder(&model(self.wire)))
    }

    /// What comes of these pieces of a stream.
    fn read<'a>(&self, pieces: impl IntoIterator<Item = &'a [u8]>) -> Outcome {
        let mut answer = self.answer();
        pieces.into_iter().for_each(|piece| answer.feed(piece));
        answer.finish();
        let (mut blocks, mut usage, mut end) = (Vec::new(), None, None);
        while let Some(delta) = answer.next() {
            match delta {
                Ok(Delta::Unended(failure)) => {
                    end = Some(Err(failure));
                    break;
                }
                Ok(Delta::Block { item, cut, .. }) => blocks.push((item, cut)),
                Ok(Delta::Usage(count)) => usage = Some(merged(usage, count)),
                Ok(Delta::End(stop)) => end = Some(Ok(stop)),
                Err(failure) => end = Some(Err(failure)),
                Ok(_) => {}
            }
        }
        let end = end.expect("each reply ends");
        let said = blocks.into_iter().map(|(item, cut)| said(item, cut, &end)).collect();
        Outcome { said, usage, end }
    }

    fn expected(&self) -> Outcome {
        let call = |name: &str, arguments: Value| Said::Call {
            name: name.into(),
            arguments: arguments.to_string(),
            runs: true,
        };
        let thought = self.thinks.then(|| Said::Thought("Let me see.".into()));
        let rest = [
            Said::Text("Grüße 👋".into()),
            call("Read", json!({"path": "ä"})),
            call("Bash", json!({"command": "ls"})),
        ];
        let said = thought.into_iter().chain(rest).collect();
        let is_anthropic = self.wire == Wire::Anthropic;
        let usage = self.read([self.stream.as_bytes()]).usage;
        let counts = usage.map(|usage| (usage.input, usage.output, usage.cache_read));
        assert_eq!(counts, Some((Some(90), Some(30), self.cache_read)), "{}", self.name);
        assert_eq!(usage.and_then(|usage| usage.cache_write), is_anthropic.then_some(6));
        Outcome { said, usage, end: Ok(Stop::ToolUse) }
    }

    /// The events of its stream, each with its end.
    fn events(&self) -> Vec<String> {
        self.stream.split_inclusive("\n\n").map(str::to_owned).collect()
    }
}

fn merged(before: Option<Usage>, now: Usage) -> Usage {
    let before = before.unwrap_or_default();
    Usage {
        input: now.input.or(before.input),
        output: now.output.or(before.output),
        cache_read: now.cache_read.or(before.cache_read),
        cache_write: now.cache_write.or(before.cache_write),
        reasoning: now.reasoning.or(before.reasoning),
    }
}

fn said(item: Item, cut: bool, end: &Result<Stop, Failure>) -> Said {
    match item {
        Item::Reasoning { text, .. } => Said::Thought(text),
        Item::ToolCall { name, arguments, .. } => {
            let object = serde_json::from_str::<Map<String, Value>>(&arguments).ok();
            // A call without a name is answered and runs nothing.
            let runs = end.is_ok() && !name.is_empty() && object.is_some() && !cut;
            let arguments = object.map_or(arguments, |object| Value::Object(object).to_string());
            Said::Call { name, arguments, runs }
        }
        item => item.text().map_or(Said::Other, Said::Text),
    }
}

#[test]
fn the_streams_of_twelve_servers_are_read_alike_cut_at_every_byte_and_with_each_line_end() {
    std::thread::scope(|scope| {
        for server in &SERVERS {
            scope.spawn(move || {
                let (expected, name) = (server.expected(), server.name);
                assert!(server.stream.starts_with(": https://"), "{name} names its source");
                for end in ["\n", "\r\n", "\r"] {
                    let stream = server.stream.replace('\n', end).into_bytes();
                    assert_eq!(server.read(stream.chunks(1)), expected, "{name} {end:?}");
                    for cut in 0..=stream.len() {
                        let (first, rest) = stream.split_at(cut);
                        assert_eq!(server.read([first, rest]), expected, "{name} {end:?} {cut}");
                    }
                }
            });
        }
    });
}

#[test]
fn a_stream_that_ends_at_any_byte_is_whole_or_cut_and_runs_no_call_that_did_not_come_whole() {
    for server in &SERVERS {
        let (expected, name) = (server.expected(), server.name);
        let whole = runs(&expected);
        for cut in 0..server.stream.len() {
            let read = server.read([&server.stream.as_bytes()[..cut]]);
            match &read.end {
                Ok(_) => assert_eq!(read.said, expected.said, "{name} {cut}"),
                Err(Failure::Cut(_)) => {}
                Err(other) => panic!("{name} {cut}: {other:?}"),
            }
            assert!(runs(&read).iter().all(|call| whole.contains(call)), "{name} {cut}: {read:?}");
        }
    }
}

#[test]
fn no_call_of_a_damaged_event_is_lost_without_a_word() {
    for server in &SERVERS {
        let (events, whole) = (server.events(), server.expected());
        for place in 0..events.len() {
            let mut events = events.clone();
            events[place] = events[place].trim_end().trim_end_matches('}').to_owned() + "\n\n";
            let read = server.read([events.concat().as_bytes()]);
            let has_all = || runs(&read) == runs(&whole);
            assert!(read.end.is_err() || has_all(), "{} {place}: {read:?}", server.name);
        }
    }
}

#[test]
fn a_call_without_a_name_is_a_call_that_does_not_run() {
    const NAME: &str = "\"name\":\"Bash\"";
    for server in &SERVERS {
        let mut expected = server.expected();
        let Some(Said::Call { name, runs, .. }) = expected.said.last_mut() else { panic!() };
        name.clear();
        *runs = false;
        for unnamed in [
            server.stream.replace(NAME, "\"name\":\"\""),
            server.stream.replace(NAME, "\"name\":null"),
            server.stream.replace(&format!("{NAME},"), "").replace(&format!(",{NAME}"), ""),
        ] {
            assert_ne!(unnamed, server.stream, "{}", server.name);
            assert_eq!(server.read([unnamed.as_bytes()]), expected, "{}", server.name);
        }
    }
}

/// The reply of Gemini that these pieces hold: its words and its end.
fn words<'a>(pieces: impl IntoIterator<Item = &'a str>) -> (String, Option<Stop>) {
    let mut answer = SERVERS[2].answer();
    pieces.into_iter().for_each(|piece| answer.feed(piece.as_bytes()));
    let shown = std::iter::from_fn(|| answer.next()).collect::<Vec<_>>();
    answer.finish();
    let rest: Vec<_> = std::iter::from_fn(|| answer.next()).collect();
    let text = |delta: &Result<Delta, Failure>| match delta {
        Ok(Delta::Text(text)) => text.clone(),
        _ => String::new(),
    };
    let end = rest.iter().find_map(|delta| match delta {
        Ok(Delta::End(stop)) => Some(stop.clone()),
        _ => None,
    });
    (shown.iter().map(text).collect::<String>(), end)
}

#[test]
fn rows_are_shown_as_they_come_however_many_values_they_have_together() {
    let row = "{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"}]}}]}";
    let last = "\n{\"candidates\":[{\"finishReason\":\"STOP\"}]}\n";
    for end in ["\n", "\r\n", "\n\n"] {
        assert_eq!(words(["\u{feff}", row, end, row, end]).0, "aa", "{end:?}");
    }
    for blank in ["\n", "\r\n\r\n", "\u{feff} \n"] {
        let first = format!("{blank}{row}\n{row}\n");
        assert_eq!(words([first.as_str()]).0, "aa", "{blank:?}");
        assert_eq!(words([blank, row, "\n", row, "\n"]).0, "aa", "{blank:?}");
    }
    let rows = format!("{row}\n").repeat(40_000);
    let all = ("a".repeat(40_000), Some(Stop::EndTurn));
    assert_eq!(words(rows.split_inclusive('\n').chain([last])), all);
    assert_eq!(words([rows.as_str(), last]), all);
    let list = format!("[{}{last}]", rows.replace('\n', ",\n"));
    let read = SERVERS[2].read([list.as_bytes()]);
    assert_eq!((read.said, read.end), (vec![Said::Text("a".repeat(40_000))], Ok(Stop::EndTurn)));
    let cut = SERVERS[2].read([format!("[{row},\n{row},").as_bytes()]);
    assert!(matches!(cut.end, Err(Failure::Cut(_))), "{:?}", cut.end);
}

#[test]
fn strings_are_read_alike_in_events_and_in_one_piece() {
    let object = "{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\nb\"}]},\"finishReason\":\"STOP\"}]}";
    for reply in [
        object.to_owned(),
        format!("[{object}]"),
        format!("data: {}\n\n", object.replace('\n', "\ndata: ")),
    ] {
        let read = SERVERS[2].read([reply.as_bytes()]);
        assert_eq!(
            (read.said, read.end),
            (vec![Said::Text("a\nb".into())], Ok(Stop::EndTurn)),
            "{reply}"
        );
    }
}

/// The calls that a run would make.
fn runs(outcome: &Outcome) -> Vec<&Said> {
    outcome.said.iter().filter(|said| matches!(said, Said::Call { runs: true, .. })).collect()
}

/// Pseudo-random numbers, the same for the same seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(end.max(1)).unwrap()).unwrap()
    }
}

/// A change of a stream.
#[derive(Debug)]
enum Mutation {
    /// What the reply holds came whole.
    Harmless,
    /// Events were lost, came twice or in another order.
    Events,
    /// Bytes were; whether what came is what was sent cannot be told where each event is still JSON.
    Bytes,
}

fn mutated(server: &Server, random: &mut Random) -> (Mutation, Vec<u8>) {
    let mut events = server.events();
    let place = random.below(events.len());
    let after = (place + 1).min(events.len() - 1);
    let kind = match random.below(3) {
        0 => {
            harmless(server.wire, &mut events, place, random);
            Mutation::Harmless
        }
        1 => {
            match random.below(4) {
                0 => drop(events.remove(place)),
                1 => events.insert(place, events[place].clone()),
                2 => events.swap(place, after),
                _ => events.truncate(place),
            }
            Mutation::Events
        }
        _ => {
            let mut bytes = events.concat().into_bytes();
            let place = random.below(bytes.len() - 1);
            match random.below(5) {
                0 => drop(bytes.remove(place)),
                1 => bytes.insert(place, bytes[place]),
                2 => bytes.swap(place, place + 1),
                3 => bytes.truncate(place),
                _ => bytes[place] ^= 1 << random.below(8),
            }
            return (Mutation::Bytes, bytes);
        }
    };
    (kind, events.concat().into_bytes())
}

/// Adds what means nothing, repeats what says the same twice, or drops one of two ends.
fn harmless(wire: Wire, events: &mut Vec<String>, place: usize, random: &mut Random) {
    let holds = |event: &String, words: &[&str]| words.iter().any(|word| event.contains(word));
    let noise = [
        ": x\n\n",
        "data: ping\n\n",
        "data:\n\n",
        "id: 7\nretry: 9\n\n",
        "data: {\"type\":\"new\"}\n\n",
        "\n",
    ];
    match random.below(3) {
        0 => events.insert(place, noise[random.below(noise.len())].to_owned()),
        1 => {
            let is_piece: &[&str] = match wire {
                Wire::Anthropic => &["content_block_delta"],
                // The final form of an item counts.
                Wire::Responses => &[],
                Wire::Gemini => &["functionCall", "\"text\":\"G", "👋", "Let", "see"],
                Wire::Chat | Wire::Rehearsal => &["arguments", "Let", "see", "Gr", "👋"],
            };
            if !holds(&events[place], is_piece) {
                events.insert(place, events[place].clone());
            }
        }
        _ => {
            let ends: &[&str] = match wire {
                Wire::Anthropic => &["message_stop", "\"stop_reason\":\"tool_use\""],
                Wire::Responses => {
                    &["response.output_item.added", ".delta\"", "_text.done\"", "arguments.done"]
                }
                Wire::Gemini => &[],
                Wire::Chat | Wire::Rehearsal => &["[DONE]"],
            };
            let dropped: Vec<usize> =
                (0..events.len()).filter(|place| holds(&events[*place], ends)).collect();
            if !dropped.is_empty() {
                events.remove(dropped[random.below(dropped.len())]);
            }
        }
    }
}

/// Whether the stream has as many events as before and each is JSON: what then differs, no reader can know.
fn looks_whole(server: &Server, bytes: &[u8]) -> bool {
    let events = |bytes: &[u8]| {
        let (mut decoder, mut events) = (Decoder::default(), Vec::new());
        decoder.feed(bytes, &mut events).unwrap();
        decoder.finish(&mut events);
        events
    };
    let is_json = |event: &Event| event.data == "[DONE]" || json::value(&event.data).is_ok();
    let now = events(bytes);
    now.len() == events(server.stream.as_bytes()).len() && now.iter().all(is_json)
}

fn check(server: &Server, expected: &Outcome, seed: u64) {
    let (kind, bytes) = mutated(server, &mut Random(seed));
    let read = server.read([&bytes[..]]);
    let context = || {
        format!(
            "{} seed {seed} {kind:?}: {read:?}\n{}",
            server.name,
            String::from_utf8_lossy(&bytes)
        )
    };
    match kind {
        Mutation::Harmless => {
            assert_eq!((&read.said, &read.end), (&expected.said, &expected.end), "{}", context());
        }
        Mutation::Bytes if looks_whole(server, &bytes) => {}
        Mutation::Events | Mutation::Bytes => {
            let whole = runs(expected);
            assert!(runs(&read).iter().all(|call| whole.contains(call)), "{}", context());
        }
    }
}

#[test]
fn a_damaged_stream_ends_in_no_panic_no_half_call_and_no_lost_whole_reply() {
    let seconds = std::env::var(SECONDS).ok().and_then(|text| text.parse().ok());
    for wire in [Wire::Anthropic, Wire::Responses, Wire::Chat, Wire::Gemini] {
        let of_wire = SERVERS.iter().filter(|server| server.wire == wire);
        let all: Vec<_> = of_wire.map(|server| (server, server.expected())).collect();
        let begun = Instant::now();
        let goes_on = |seed: &u64| match seconds {
            Some(seconds) => begun.elapsed() < Duration::from_secs(seconds),
            None => *seed < u64::from(MUTATIONS) * all.len() as u64,
        };
        let made = (0..).take_while(goes_on).inspect(|seed| {
            let (server, expected) = &all[usize::try_from(*seed).unwrap() % all.len()];
            check(server, expected, *seed);
        });
        println!("{wire:?}: {} mutations, seeds from 0", made.count());
    }
}
