//! The lines on the wire. What is read is tolerant: keys may repeat (the last one counts), further keys are
//! dropped, bytes that are not UTF-8 are replaced. What is written has exactly the keys that every member expects,
//! in one order. Bodies pass through as they were written, numbers included.

use crate::mesh::id::Id;
use crate::mesh::name::{BROADCAST, BROKER, GATEWAY};
use serde::de::{Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// The longest line that is read or written, in bytes without its newline.
pub const MAX_FRAME: usize = 4 * 1024 * 1024;
/// What a line has around its names and its body, at most, in bytes.
pub(crate) const AROUND: usize = 160;
/// The most names one envelope may be addressed to: as many as a mesh has members.
pub(crate) const MAX_ADDRESSEES: usize = 1024;

/// Where an envelope goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum To {
    /// A member, by its name.
    One(String),
    /// Each of these members; there is no acknowledgement.
    Many(Vec<String>),
    /// Every other member; there is no acknowledgement.
    Broadcast,
}

impl To {
    /// The member of this name, or every other member for `broadcast`.
    pub fn named(name: String) -> Self {
        if name == BROADCAST { Self::Broadcast } else { Self::One(name) }
    }

    /// The JSON that stands in the envelope.
    pub fn json(&self) -> String {
        let json = match self {
            Self::One(name) => serde_json::to_string(name),
            Self::Many(names) => serde_json::to_string(names),
            Self::Broadcast => serde_json::to_string(BROADCAST),
        };
        json.expect("names are text")
    }
}

/// The text of a line: what is not UTF-8 is replaced, as every member of the mesh does.
pub(crate) fn text_of(line: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(line)
}

/// An envelope as it was read, borrowed from its line.
#[derive(Debug)]
pub(crate) struct Envelope<'a> {
    pub(crate) from: Cow<'a, str>,
    pub(crate) to: Addressed<'a>,
    pub(crate) id: IdText<'a>,
    pub(crate) re: Option<IdText<'a>>,
    /// The body as it was written.
    pub(crate) body: &'a str,
    /// Whether a leader that is gone may have delivered it already.
    pub(crate) again: bool,
}

/// The `to` of an envelope that was read.
#[derive(Debug, PartialEq)]
pub(crate) enum Addressed<'a> {
    One(Cow<'a, str>),
    Many(Vec<Text<'a>>),
}

/// A text, borrowed where it holds no escape.
#[derive(Debug, PartialEq, Deserialize, Serialize)]
pub(crate) struct Text<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

/// What stands where an id is expected.
#[derive(Debug)]
pub(crate) struct IdText<'a>(Cow<'a, str>);

impl IdText<'_> {
    pub(crate) fn id(&self) -> Option<Id> {
        Id::parse(&self.0)
    }

    /// The id, also in the form without dashes.
    pub(crate) fn loose(&self) -> Option<Id> {
        self.id().or_else(|| Id::parse_dashless(&self.0))
    }
}

impl<'a> Envelope<'a> {
    /// Reads a line; `None`: it has not all five keys with values of their kinds. Whether the ids are ids is the
    /// question of [`Envelope::ids`].
    pub(crate) fn read(line: &'a str) -> Option<Self> {
        serde_json::from_str(line).ok()
    }

    /// The id and what it refers to; `None`: one of them is no id, so the envelope is invalid.
    pub(crate) fn ids(&self) -> Option<(Id, Option<Id>)> {
        let re = match &self.re {
            Some(re) => Some(re.id()?),
            None => None,
        };
        Some((self.id.id()?, re))
    }
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum Key {
    From,
    To,
    Id,
    Re,
    Body,
    #[serde(rename = "yoi_again")]
    Again,
    #[serde(other)]
    Other,
}

struct Keys;

impl<'de> Visitor<'de> for Keys {
    type Value = Envelope<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an envelope")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Envelope<'de>, A::Error> {
        let (mut from, mut to, mut id, mut re, mut body) = (None, None, None, None, None);
        let mut again = false;
        while let Some(key) = map.next_key()? {
            match key {
                Key::From => from = Some(map.next_value::<Text<'de>>()?.0),
                Key::To => to = Some(map.next_value()?),
                Key::Id => id = Some(IdText(map.next_value::<Text<'de>>()?.0)),
                Key::Re => {
                    let text = map.next_value::<Option<Text<'de>>>()?;
                    re = Some(text.map(|text| IdText(text.0)));
                }
                Key::Body => body = Some(map.next_value::<&RawValue>()?.get()),
                // Anything but `true` is a key of another program.
                Key::Again => again = map.next_value::<&RawValue>()?.get() == "true",
                Key::Other => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        let from: Cow<'de, str> = from.ok_or_else(|| A::Error::missing_field("from"))?;
        if from.is_empty() {
            return Err(A::Error::custom("the sender has no name"));
        }
        Ok(Envelope {
            from,
            to: to.ok_or_else(|| A::Error::missing_field("to"))?,
            id: id.ok_or_else(|| A::Error::missing_field("id"))?,
            re: re.ok_or_else(|| A::Error::missing_field("re"))?,
            body: body.ok_or_else(|| A::Error::missing_field("body"))?,
            again,
        })
    }
}

impl<'de> Deserialize<'de> for Envelope<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Keys)
    }
}

struct Addressees;

impl<'de> Visitor<'de> for Addressees {
    type Value = Addressed<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a name, or 1 to {MAX_ADDRESSEES} names")
    }

    fn visit_borrowed_str<E: serde::de::Error>(self, name: &'de str) -> Result<Self::Value, E> {
        one(Cow::Borrowed(name))
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Self::Value, E> {
        one(Cow::Owned(name.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut names: Vec<Text<'de>> = Vec::new();
        while let Some(name) = seq.next_element::<Text<'de>>()? {
            if name.0.is_empty() || names.len() == MAX_ADDRESSEES {
                return Err(A::Error::custom("an addressee without a name, or too many"));
            }
            names.push(name);
        }
        if names.is_empty() {
            Err(A::Error::custom("no addressee"))
        } else {
            Ok(Addressed::Many(names))
        }
    }
}

fn one<'a, E: serde::de::Error>(name: Cow<'a, str>) -> Result<Addressed<'a>, E> {
    if name.is_empty() { Err(E::custom("no addressee")) } else { Ok(Addressed::One(name)) }
}

impl<'de> Deserialize<'de> for Addressed<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Addressees)
    }
}

/// The parts of an envelope to be written; names are JSON already.
pub(crate) struct Parts<'a> {
    pub(crate) from: &'a [u8],
    pub(crate) to: &'a [u8],
    pub(crate) id: Id,
    pub(crate) re: Option<Id>,
    pub(crate) body: &'a [u8],
}

impl Parts<'_> {
    /// Appends the line with its newline.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"from\":");
        out.extend_from_slice(self.from);
        out.extend_from_slice(b",\"to\":");
        out.extend_from_slice(self.to);
        out.extend_from_slice(b",\"id\":\"");
        out.extend_from_slice(self.id.as_bytes());
        match &self.re {
            None => out.extend_from_slice(b"\",\"re\":null"),
            Some(re) => {
                out.extend_from_slice(b"\",\"re\":\"");
                out.extend_from_slice(re.as_bytes());
                out.push(b'"');
            }
        }
        out.extend_from_slice(b",\"body\":");
        out.extend_from_slice(self.body);
        out.extend_from_slice(b"}\n");
    }
}

/// The line of an envelope that a member sends. The leader writes the sender's name over `from`. Line breaks in
/// the body, which JSON allows between its parts, become blanks: they would end the line.
pub(crate) fn line(from: &str, to: &To, id: Id, re: Option<Id>, body: &str) -> Vec<u8> {
    let from = serde_json::to_vec(from).expect("a name is text");
    let mut line = Vec::with_capacity(body.len() + 160);
    let body = body.replace(['\n', '\r'], " ");
    Parts { from: &from, to: to.json().as_bytes(), id, re, body: body.as_bytes() }.write(&mut line);
    line
}

/// The same of an envelope that a leader which is gone may have delivered. The next leader takes the mark off.
pub(crate) fn line_again(from: &str, to: &To, id: Id, re: Option<Id>, body: &str) -> Vec<u8> {
    let mut line = line(from, to, id, re, body);
    line.truncate(line.len() - "}\n".len());
    line.extend_from_slice(b",\"yoi_again\":true}\n");
    line
}

/// A request to the leader.
pub(crate) fn request(from: &str, id: Id, kind: &str) -> Vec<u8> {
    let body = serde_json::to_string(&Kind { kind: kind.into() }).expect("a word is text");
    line(from, &To::One(BROKER.to_owned()), id, None, &body)
}

/// `type` of a body.
#[derive(Deserialize, Serialize)]
pub(crate) struct Kind<'a> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: Cow<'a, str>,
}

/// The first line of a connection.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum First {
    Register {
        name: String,
        /// Members of yoi say so; leaders of other programs ignore it.
        #[serde(default)]
        yoi: serde_json::Value,
    },
    /// Registers the gateway to other machines. A leader that knows none closes the connection, so the gateway is no
    /// member of its mesh.
    YoiGateway,
    /// Asks for the names of the members, without joining.
    ListPeers,
}

impl First {
    pub(crate) fn read(line: &str) -> Option<Self> {
        serde_json::from_str(line).ok()
    }
}

/// The version of what members and leaders of yoi say to each other beyond the wire of others.
pub(crate) const OURS: u32 = 1;

#[derive(Serialize, Deserialize)]
pub(crate) struct Ours {
    pub(crate) version: u32,
    /// Whether the member confirms each message that goes to it alone, and is sent its acknowledgement then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) confirms: bool,
}

/// What a member says became of a message to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Kept,
    /// The server of the network keeps it until the machine of its addressee takes it. The reason is a sentence.
    Queued(String),
    /// It may have arrived or not. The reason is a sentence.
    Unknown(String),
    /// For this reason, as a sentence.
    Denied(String),
}

/// The body with which a member says what became of a message to it.
#[derive(Serialize, Deserialize)]
pub(crate) struct Confirmed<'a> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) id: Cow<'a, str>,
    /// Why the message is denied, as a sentence; `None`: it is kept.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(crate) denied: Option<Cow<'a, str>>,
    /// `queued` or `timeout`, for the reason in `denied`; a leader that does not know this denies the message.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<Cow<'a, str>>,
}

impl Confirmed<'_> {
    pub(crate) const KIND: &'static str = "yoi_confirmed";
}

#[derive(Serialize)]
struct Register<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    name: &'a str,
    yoi: Ours,
}

/// The line with which a member registers, or the gateway to other machines.
pub(crate) fn register(name: &str, confirms: bool) -> Vec<u8> {
    let kind = if name == GATEWAY { "yoi_gateway" } else { "register" };
    json_line(&Register { kind, name, yoi: Ours { version: OURS, confirms } })
}

/// The body with which the gateway names the agents of other machines.
#[derive(Serialize, Deserialize)]
pub(crate) struct Elsewhere<'a> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: Cow<'a, str>,
    pub(crate) agents: Vec<String>,
}

impl Elsewhere<'_> {
    pub(crate) const KIND: &'static str = "yoi_elsewhere";
}

/// The line that says so.
pub(crate) fn elsewhere(id: Id, agents: Vec<String>) -> Vec<u8> {
    let body = Elsewhere { kind: Elsewhere::KIND.into(), agents };
    let body = serde_json::to_string(&body).expect("names are text");
    line(GATEWAY, &To::One(BROKER.to_owned()), id, None, &body)
}

/// The line with which a member says what became of a message.
pub(crate) fn confirmed(from: &str, id: Id, message: Id, fate: &Fate) -> Vec<u8> {
    let reason = match fate {
        Fate::Kept => None,
        Fate::Queued(reason) | Fate::Unknown(reason) | Fate::Denied(reason) => {
            Some(Cow::Borrowed(reason.as_str()))
        }
    };
    let status = match fate {
        Fate::Kept | Fate::Denied(_) => None,
        Fate::Queued(_) => Some("queued".into()),
        Fate::Unknown(_) => Some("timeout".into()),
    };
    let body = Confirmed {
        kind: Confirmed::KIND.into(),
        id: message.as_str().into(),
        denied: reason,
        status,
    };
    let body = serde_json::to_string(&body).expect("an id and a sentence are text");
    line(from, &To::One(BROKER.to_owned()), id, None, &body)
}

/// The first line of a leader. To members of yoi it says that the leader is yoi too.
#[derive(Serialize, Deserialize)]
pub(crate) struct RegisterAck<'a> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: Cow<'a, str>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(crate) address_assigned: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(crate) name_assigned: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) yoi: Option<Ours>,
}

/// The names of the members, in the order in which they joined.
#[derive(Serialize, Deserialize)]
pub(crate) struct Roster<'a> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) peers: Vec<Text<'a>>,
    #[serde(default, skip_deserializing)]
    pub(crate) peers_detailed: Vec<Detailed<'a>>,
}

#[derive(Serialize)]
pub(crate) struct Detailed<'a> {
    pub(crate) name: &'a str,
    pub(crate) address: &'a str,
    /// Whether it is a member of yoi that confirms what is sent to it.
    #[serde(rename = "yoi_confirms", skip_serializing_if = "std::ops::Not::not")]
    pub(crate) confirms: bool,
}

/// The members that confirm what is sent to them, as far as the leader says so.
pub(crate) fn confirming(roster: &str) -> Vec<String> {
    #[derive(Deserialize)]
    struct Listed {
        #[serde(default)]
        peers_detailed: Vec<Member>,
    }
    #[derive(Deserialize)]
    struct Member {
        address: String,
        #[serde(default)]
        yoi_confirms: bool,
    }
    // Leaders of other programs say more about members, or nothing.
    let listed: Option<Listed> = serde_json::from_str(roster).ok();
    let members = listed.into_iter().flat_map(|listed| listed.peers_detailed);
    members.filter(|member| member.yoi_confirms).map(|member| member.address).collect()
}

/// A value as a line with its newline.
pub(crate) fn json_line(value: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(value).expect("names and words are text");
    line.push(b'\n');
    line
}

/// The body with which a leader answers a unicast. `reason` says in a sentence why it was denied.
#[derive(Serialize, Deserialize)]
pub(crate) struct Ack<'a> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) status: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(crate) target: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<Cow<'a, str>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "01a1ffb6-a2cb-7796-b04c-890887088394";

    fn is_valid(line: &str) -> bool {
        Envelope::read(line).is_some_and(|envelope| envelope.ids().is_some())
    }

    #[test]
    fn an_envelope_has_all_five_keys_with_values_of_their_kinds() {
        let whole = format!(r#"{{"from":"a","to":"b","id":"{ID}","re":null,"body":null}}"#);
        assert!(is_valid(&whole));
        let any_order =
            format!(r#"{{"x":[1],"body":1,"re":"{ID}","id":"{ID}","to":["b"],"from":"a"}}"#);
        assert!(is_valid(&any_order));
        for (key, value) in [
            (r#""from":"a","#, ""),
            (r#""from":"a""#, r#""from":"""#),
            (r#""from":"a""#, r#""from":1"#),
            (r#""to":"b""#, r#""to":"""#),
            (r#""to":"b""#, r#""to":[]"#),
            (r#""to":"b""#, r#""to":["b",""]"#),
            (r#""to":"b""#, r#""to":{}"#),
            (ID, "abc"),
            (r#""re":null,"#, ""),
            (r#""re":null"#, r#""re":"abc""#),
            (r#""re":null"#, r#""re":1"#),
            (r#","body":null"#, ""),
        ] {
            let broken = whole.replace(key, value);
            assert!(broken != whole && !is_valid(&broken), "{broken}");
        }
        for other in ["", "not json", "[]", "5", "{", &format!("{whole}{whole}")] {
            assert!(!is_valid(other), "{other}");
        }
    }

    #[test]
    fn a_body_is_written_as_it_was_read() {
        for body in [
            "12345678901234567890",
            "1.0",
            "1e400",
            r#"{"b":1,"a":2,"1":3}"#,
            r#""\ud800 \u00e1""#,
            "[ 1,  2 ]",
        ] {
            let line = line("a", &To::One("b".into()), Id::parse(ID).unwrap(), None, body);
            let read = String::from_utf8(line).unwrap();
            assert_eq!(
                Envelope::read(&read).map(|envelope| envelope.body.to_owned()).unwrap(),
                body
            );
        }
    }

    #[test]
    fn line_breaks_in_a_body_end_no_line() {
        let smuggled = format!(r#"{{"from":"a","to":"b","id":"{ID}","re":null,"body":2}}"#);
        let body = format!("[1,\r\n{smuggled}\n]");
        let line = line("a", &To::One("b".into()), Id::parse(ID).unwrap(), None, &body);
        let lines: Vec<&[u8]> = line.split_inclusive(|byte| *byte == b'\n').collect();
        assert_eq!(lines.len(), 1);
        let text = String::from_utf8_lossy(&line);
        let sent: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(sent["body"], serde_json::from_str::<serde_json::Value>(&body).unwrap());
    }

    #[test]
    fn the_last_of_repeated_keys_counts() {
        let line =
            format!(r#"{{"from":"a","to":"b","to":"c","id":"{ID}","re":null,"body":1,"body":2}}"#);
        let envelope = Envelope::read(&line).unwrap();
        assert_eq!(envelope.to, Addressed::One("c".into()));
        assert_eq!(envelope.body, "2");
    }

    #[test]
    fn a_deeply_nested_body_is_no_danger() {
        let body = format!("{}{}", "[".repeat(500_000), "]".repeat(500_000));
        let line =
            format!(r#"{{"from":"a","to":"b","id":"{ID}","re":null,"body":{body},"x":{body}}}"#);
        assert_eq!(Envelope::read(&line).unwrap().body.len(), body.len());
    }

    #[test]
    fn an_envelope_has_its_keys_in_the_order_of_the_wire() {
        let id = Id::parse(ID).unwrap();
        let to = To::Many(vec!["b".into(), "\u{e7}\"".into()]);
        let line = line("a", &to, id, Some(id), "{}");
        let expected = format!(
            "{{\"from\":\"a\",\"to\":[\"b\",\"\u{e7}\\\"\"],\"id\":\"{ID}\",\"re\":\"{ID}\",\"body\":{{}}}}\n"
        );
        assert_eq!(String::from_utf8(line).unwrap(), expected);
    }

    #[test]
    fn more_addressees_than_members_are_invalid() {
        let line = |count: usize| {
            let names = vec!["\"b\""; count].join(",");
            format!(r#"{{"from":"a","to":[{names}],"id":"{ID}","re":null,"body":1}}"#)
        };
        assert!(is_valid(&line(MAX_ADDRESSEES)) && !is_valid(&line(MAX_ADDRESSEES + 1)));
    }
}
