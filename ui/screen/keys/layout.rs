//! Keyboards of other scripts: which letter of a Latin keyboard stands at the same place.

/// Rows of keys from the left: of a Latin keyboard, and of Russian, Ukrainian, Greek and Hebrew ones. A letter
/// without a place of its own has a space.
const ROWS: [[&str; 5]; 3] = [
    ["qwertyuiop[]", "йцукенгшщзхъ", "йцукенгшщзхї", ";ςερτυθιοπ  ", "/'קראטוןםפ  "],
    ["asdfghjkl;'", "фывапролджэ", "фівапролджє", "ασδφγηξκλ  ", "שדגכעיחלךף "],
    ["zxcvbnm,./", "ячсмитьбю ", "ячсмитьбю ", "ζχψωβνμ   ", "זסבהנמצתץ "],
];

/// The letter of a Latin keyboard where `c` is typed, in the same case; `None` for what a Latin keyboard types, too.
pub fn latin(c: char) -> Option<char> {
    let lower = c.to_lowercase().next().filter(|c| !c.is_ascii())?;
    let found = ROWS.iter().find_map(|[latin, others @ ..]| {
        let at = others.iter().find_map(|row| row.chars().position(|known| known == lower))?;
        latin.chars().nth(at)
    });
    found.map(|found| if c.is_uppercase() { found.to_ascii_uppercase() } else { found })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_of_another_script_has_the_key_of_a_latin_keyboard() {
        let pairs =
            [('ф', 'a'), ('Ф', 'A'), ('о', 'j'), ('і', 's'), ('λ', 'l'), ('ש', 'a'), ('ж', ';')];
        for (other, same) in pairs {
            assert_eq!(latin(other), Some(same), "{other}");
        }
        for c in ['a', ';', 'é', '日', ' '] {
            assert_eq!(latin(c), None, "{c}");
        }
    }
}
