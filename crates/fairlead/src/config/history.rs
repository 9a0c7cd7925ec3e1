//! How much of the past is kept.

use fairlead_api::quantity::Quantity;
use fairlead_history::Bounds;

use super::flags::{Flags, Text};
use super::value;

const SIZE: &str = "64Mi";
const AGE: &str = "24h";
/// With less there would be no room for the objects themselves.
const LEAST: u64 = 4 << 20;

/// The bounds; `None`: no history is wanted.
pub(super) fn bounds(flags: &Flags) -> anyhow::Result<Option<Bounds>> {
    let text = flags.history_size.as_ref().map_or(SIZE, |Text(text)| text);
    let quantity = Quantity::parse(text).map_err(|error| value::invalid("history-size", text, error))?;
    let size = u64::try_from(quantity.milli() / 1000)
        .map_err(|_| value::invalid("history-size", text, "want a size such as 64Mi"))?;
    let age = value::duration("history-age", flags.history_age.as_ref().map_or(AGE, |Text(text)| text))?;
    if size == 0 || age.is_zero() {
        return Ok(None);
    }
    if size < LEAST {
        return Err(value::invalid("history-size", text, "want at least 4Mi, or 0 to keep none"));
    }
    Ok(Some(Bounds { size, age }))
}
