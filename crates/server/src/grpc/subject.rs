use headgate::Key;

use super::error::Violation;

/// The subject that a field must name.
pub(super) fn required<'a>(field: &'static str, text: &'a str) -> Result<Key<'a>, Violation> {
    if text.is_empty() {
        return Err(Violation::new(field, format!("{field} is required")));
    }
    Key::new(text).map_err(|error| {
        let error = error.to_string();
        // The engine speaks of keys; callers know this one by the field.
        Violation::new(field, format!("{field}{}", error.strip_prefix("key").unwrap_or(&error)))
    })
}
