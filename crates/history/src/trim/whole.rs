//! Objects that are kept whole, without what says nothing: copied piece by piece from their JSON, which is never taken apart further.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{NOISE, NOISY_ANNOTATIONS, repeated};

/// The text without noise, and who owns fields of the object.
#[derive(Debug, Default)]
pub(super) struct Whole<'j> {
    pub(super) text: Vec<u8>,
    pub(super) managers: Option<&'j RawValue>,
}

/// `None` if it is no object, or is to be left out because it `repeats` others.
pub(super) fn read(json: &[u8], repeats: bool) -> Option<Whole<'_>> {
    let mut whole = Whole { text: Vec::with_capacity(json.len()), managers: None };
    let mut input = serde_json::Deserializer::from_slice(json);
    Level { place: Place::Object, repeats, whole: &mut whole }.deserialize(&mut input).ok()?;
    Some(whole)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Object,
    Metadata,
    Annotations,
}

/// The fields at one place of the object.
struct Level<'w, 'j> {
    place: Place,
    repeats: bool,
    whole: &'w mut Whole<'j>,
}

impl<'j> Level<'_, 'j> {
    fn is_noise(&self, name: &str) -> bool {
        match self.place {
            Place::Object => ["kind", "apiVersion"].contains(&name),
            Place::Metadata => NOISE.contains(&name),
            Place::Annotations => NOISY_ANNOTATIONS.contains(&name),
        }
    }

    /// Begins a field.
    fn name(&mut self, name: &str) {
        let text = &mut self.whole.text;
        if text.last() != Some(&b'{') {
            text.push(b',');
        }
        let written = serde_json::to_writer(&mut *text, name);
        debug_assert!(written.is_ok(), "memory takes all that is written");
        text.push(b':');
    }

    fn inner(&mut self, place: Place) -> Level<'_, 'j> {
        Level { place, repeats: self.repeats, whole: &mut *self.whole }
    }

    /// Annotations, unless none is left.
    fn annotations(&mut self, json: &'j str) -> serde_json::Result<()> {
        let before = self.whole.text.len();
        self.name("annotations");
        let begins = self.whole.text.len();
        if json.starts_with('{') {
            let mut input = serde_json::Deserializer::from_str(json);
            self.inner(Place::Annotations).deserialize(&mut input)?;
        }
        if self.whole.text[begins..].len() <= "{}".len() {
            self.whole.text.truncate(before);
        }
        Ok(())
    }
}

impl<'j> DeserializeSeed<'j> for Level<'_, 'j> {
    type Value = ();

    fn deserialize<D: Deserializer<'j>>(self, input: D) -> Result<(), D::Error> {
        input.deserialize_map(self)
    }
}

impl<'j> Visitor<'j> for Level<'_, 'j> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'j>>(mut self, mut fields: M) -> Result<(), M::Error> {
        self.whole.text.push(b'{');
        while let Some(Name(name)) = fields.next_key()? {
            match (self.place, &*name) {
                (Place::Object, "metadata") => {
                    self.name(&name);
                    fields.next_value_seed(self.inner(Place::Metadata))?;
                }
                (Place::Metadata, "managedFields") => self.whole.managers = Some(fields.next_value()?),
                (Place::Metadata, "annotations") => {
                    let json: &'j RawValue = fields.next_value()?;
                    self.annotations(json.get()).map_err(M::Error::custom)?;
                }
                (_, name) if self.is_noise(name) => drop(fields.next_value::<IgnoredAny>()?),
                (place, name) => {
                    let json: &'j RawValue = fields.next_value()?;
                    if self.repeats && place == Place::Metadata && name == "labels" && repeated(json) {
                        return Err(M::Error::custom("it repeats what others say"));
                    }
                    self.name(name);
                    self.whole.text.extend_from_slice(json.get().as_bytes());
                }
            }
        }
        self.whole.text.push(b'}');
        Ok(())
    }
}

/// The name of a field, borrowed where it can be.
struct Name<'j>(Cow<'j, str>);

impl<'j> Deserialize<'j> for Name<'j> {
    fn deserialize<D: Deserializer<'j>>(input: D) -> Result<Name<'j>, D::Error> {
        struct Text;
        impl<'j> Visitor<'j> for Text {
            type Value = Name<'j>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_borrowed_str<E>(self, text: &'j str) -> Result<Name<'j>, E> {
                Ok(Name(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Name<'j>, E> {
                Ok(Name(Cow::Owned(text.to_owned())))
            }
        }
        input.deserialize_str(Text)
    }
}
