//! `yoi doctor`: how this machine suits, without a host and without a model.

use crate::headless::Failure;
use crate::start::Opening;
use yoi::sandbox::{Confinement, Sandbox};

/// Prints where things lie, and what commands are held by.
pub async fn doctor(opening: &Opening) -> Result<(), Failure> {
    let dirs = &opening.dirs;
    println!("version    {}", env!("CARGO_PKG_VERSION"));
    println!("settings   {}", dirs.config.display());
    println!("data       {}", dirs.data.display());
    println!("sockets    {}", dirs.runtime.display());
    print!("{}", lines(&Sandbox::default().probe().await));
    Ok(())
}

fn lines(confinement: &Confinement) -> String {
    let landlock = match confinement.abi {
        0 => "no Landlock".to_owned(),
        abi => format!("Landlock {abi}"),
    };
    let mut text = format!("commands   {} ({landlock})\n", confinement.text());
    for cost in &confinement.cost {
        text.push_str(&format!("           {cost}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use yoi::protocol::family::Confined;

    #[test]
    fn confinement_is_said_with_its_word_what_is_open_and_what_it_costs() {
        let partly = Confinement {
            word: Confined::Partly,
            open: vec!["signals".into()],
            cost: vec!["no view of its own".into()],
            abi: 3,
        };
        let expected = "commands   partly: signals (Landlock 3)\n           no view of its own\n";
        assert_eq!(lines(&partly), expected);
        let none = "commands   not enforced: why (no Landlock)\n";
        assert_eq!(lines(&Confinement::none("why")), none);
    }
}
