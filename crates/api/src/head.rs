//! The metadata of an object, read without reading the rest: for those who must know whose an object is, and not what is in it.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};

/// Reads what `T` needs of the metadata, and not a byte of what comes after. `None` if there is no metadata to be read.
pub fn read<'a, T: Deserialize<'a>>(json: &'a [u8]) -> Option<T> {
    let mut found = None;
    // The error is that something follows the metadata, which is no concern of ours.
    let _ = Metadata(&mut found, PhantomData).deserialize(&mut serde_json::Deserializer::from_slice(json));
    found
}

/// Reads the metadata out of an object and stops.
struct Metadata<'h, 'a, T>(&'h mut Option<T>, PhantomData<&'a ()>);

impl<'a, T: Deserialize<'a>> DeserializeSeed<'a> for Metadata<'_, 'a, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, input: D) -> Result<(), D::Error> {
        input.deserialize_map(self)
    }
}

impl<'a, T: Deserialize<'a>> Visitor<'a> for Metadata<'_, 'a, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'a>>(self, mut fields: M) -> Result<(), M::Error> {
        while let Some(name) = fields.next_key::<Cow<'a, str>>()? {
            if name == "metadata" {
                *self.0 = Some(fields.next_value()?);
                return Ok(());
            }
            fields.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::read;
    use crate::view::Meta;

    #[track_caller]
    fn check(json: &str, name: Option<&str>) {
        let read = read::<Meta>(json.as_bytes()).map(|metadata| metadata.name);
        assert_eq!(read.as_deref(), name, "{json}");
    }

    #[test]
    fn metadata_is_read_wherever_it_stands_and_what_follows_is_not() {
        check(r#"{"metadata": {"name": "a"}}"#, Some("a"));
        check(r#"{"kind": "K", "spec": {"metadata": {"name": "b"}}, "metadata": {"name": "a"}, "x": 1}"#, Some("a"));
        check(r#"{"metadata": {"name": "a"}, broken"#, Some("a"));
        check(r#"{"metadata": {"name": 1}}"#, None);
        check(r#"{"kind": "K"}"#, None);
        check(r#"[]"#, None);
        check("", None);
    }
}
