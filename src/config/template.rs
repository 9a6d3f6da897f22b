//! Values of settings with variables of the person in them, such as `Bearer ${TOKEN}`: for headers, and for the environment
//! of a program.

use crate::config::dirs::Env;
use crate::trace::secrets;
use std::collections::BTreeMap;

/// A variable that a template names is not set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place} takes ${{{variable}}}, which is not set where yoi was started")]
pub struct Unset {
    pub place: String,
    pub variable: String,
}

/// The values of these templates by name; `what` says what they are. Those that hold a secret, by their own name or that of
/// a variable in them, are never shown from here on.
pub fn values(
    what: &str,
    templates: &BTreeMap<String, String>,
    env: &Env,
) -> Result<BTreeMap<String, String>, Unset> {
    let mut values = BTreeMap::new();
    for (name, template) in templates {
        let value = expanded(&format!("its {what} {name}"), template, env)?;
        if secrets::is_secret_name(name) || name.to_ascii_lowercase().contains("auth") {
            secrets::register(&value);
        }
        let taken = variables(template).into_iter().filter(|name| secrets::is_secret_name(name));
        taken.filter_map(|name| env.get(&name)).for_each(|value| secrets::register(value));
        values.insert(name.clone(), value);
    }
    Ok(values)
}

/// A piece of a template.
enum Piece<'a> {
    Text(&'a str),
    /// `${NAME}`, or `${NAME:-text}` with what counts where it is not set.
    Variable(&'a str, Option<&'a str>),
}

fn pieces(template: &str) -> Vec<Piece<'_>> {
    let (mut found, mut rest) = (Vec::new(), template);
    while let Some((before, after)) = rest.split_once("${") {
        let Some((inside, behind)) = after.split_once('}') else { break };
        let (name, usual) = match inside.split_once(":-") {
            Some((name, usual)) => (name, Some(usual)),
            None => (inside, None),
        };
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(is_name) {
            let end = rest.len() - behind.len();
            found.push(Piece::Text(&rest[..end]));
        } else {
            found.extend([Piece::Text(before), Piece::Variable(name, usual)]);
        }
        rest = behind;
    }
    found.push(Piece::Text(rest));
    found
}

/// The names of the variables in a template.
pub fn variables(template: &str) -> Vec<String> {
    let name = |piece| match piece {
        Piece::Variable(name, _) => Some(name.to_owned()),
        Piece::Text(_) => None,
    };
    pieces(template).into_iter().filter_map(name).collect()
}

/// A template with the values of its variables; `place` names it where one is not set.
fn expanded(place: &str, template: &str, env: &Env) -> Result<String, Unset> {
    let text = |piece| match piece {
        Piece::Text(text) => Ok(text),
        Piece::Variable(name, usual) => {
            let set = env.get(name).map(String::as_str).filter(|value| !value.is_empty());
            set.or(usual).ok_or_else(|| Unset { place: place.into(), variable: name.into() })
        }
    };
    pieces(template).into_iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_take_variables_of_the_person_and_name_those_that_are_missing() {
        let env = Env::from([("TOKEN".into(), "t".into()), ("EMPTY".into(), String::new())]);
        let of = |template| expanded("its variable X", template, &env);
        assert_eq!(of("Bearer ${TOKEN}!").unwrap(), "Bearer t!");
        assert_eq!(of("${EMPTY:-d}${NONE:-}").unwrap(), "d");
        assert_eq!(of("$TOKEN ${ ${a b} ${").unwrap(), "$TOKEN ${ ${a b} ${");
        let said = of("${NONE}").unwrap_err().to_string();
        assert_eq!(said, "its variable X takes ${NONE}, which is not set where yoi was started");
    }
}
