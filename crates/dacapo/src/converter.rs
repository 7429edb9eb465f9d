//! How typed values become payloads and back: JSON, or a converter of the app's own.

use std::fmt;
use std::sync::Arc;

use dacapo_core::{Failure, Name, Payload};
use serde::de::DeserializeOwned;
use serde::{Deserializer, Serialize, Serializer};

use crate::json::{self, BAD_INPUT, BAD_OUTPUT, excerpt};
use crate::type_names::short_type_name;

/// The error of a [`PayloadConverter`].
pub type ConverterError = Box<dyn std::error::Error + Send + Sync>;

/// Encodes and decodes the values of an app, instead of JSON: [`Dacapo::converter`](crate::Dacapo::converter) takes one.
///
/// Replay compares the payloads of commands byte by byte, so that the same value must give the same bytes every time. A
/// converter must be able to read what earlier builds of the app wrote: look at [`Payload::encoding`] and hand what is JSON
/// on to [`Converter::json`].
///
/// ```
/// use dacapo::{Converter, ConverterError, Payload, PayloadConverter, TypedValue, ValueReader};
///
/// /// MessagePack, with fields by name.
/// struct MessagePack;
///
/// impl PayloadConverter for MessagePack {
///     fn encode(&self, value: TypedValue<'_>) -> Result<Payload, ConverterError> {
///         let data = rmp_serde::to_vec_named(&value)?;
///         Ok(Payload::new("binary/msgpack".into(), data.into()))
///     }
///
///     fn decode(&self, payload: &Payload, reader: ValueReader<'_>) -> Result<(), ConverterError> {
///         match payload.encoding.as_str() {
///             "binary/msgpack" => reader.read(&mut rmp_serde::Deserializer::new(&payload.bytes()?[..])),
///             _ => reader.read_json(payload),
///         }
///     }
/// }
/// ```
pub trait PayloadConverter: Send + Sync + 'static {
    /// Encodes a value.
    fn encode(&self, value: TypedValue<'_>) -> Result<Payload, ConverterError>;

    /// Decodes a payload: hands a deserializer over it to the reader.
    fn decode(&self, payload: &Payload, reader: ValueReader<'_>) -> Result<(), ConverterError>;
}

/// A value of any type that can be serialised.
pub struct TypedValue<'v>(&'v dyn erased_serde::Serialize);

impl Serialize for TypedValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        erased_serde::serialize(self.0, serializer)
    }
}

/// Reads a value of the type that the code expects from a deserializer.
pub struct ValueReader<'r>(&'r mut dyn FnMut(&mut dyn erased_serde::Deserializer<'_>) -> erased_serde::Result<()>);

impl ValueReader<'_> {
    /// Reads the value.
    pub fn read<'d>(self, deserializer: impl Deserializer<'d>) -> Result<(), ConverterError> {
        Ok((self.0)(&mut <dyn erased_serde::Deserializer<'_>>::erase(deserializer))?)
    }

    /// Reads the value from JSON, as an app without a converter does.
    pub fn read_json(self, payload: &Payload) -> Result<(), ConverterError> {
        self.read(&mut serde_json::Deserializer::from_slice(json::bytes(payload)?))
    }
}

/// The converter of an app: JSON by default. Cheap to clone.
#[derive(Clone, Default)]
pub struct Converter {
    own: Option<Arc<dyn PayloadConverter>>,
    redacts: bool,
}

impl Converter {
    /// Returns the converter for JSON.
    pub const fn json() -> Self {
        Self { own: None, redacts: false }
    }

    /// Wraps a converter of your own.
    pub fn new(converter: impl PayloadConverter) -> Self {
        Self { own: Some(Arc::new(converter)), redacts: false }
    }

    /// Encodes a value. A value that cannot be encoded is a failure of type [`BAD_OUTPUT`].
    pub fn encode<T: Serialize + ?Sized>(&self, value: &T) -> Result<Payload, Failure> {
        let Some(converter) = &self.own else { return json::encode(value) };
        converter.encode(TypedValue(&value)).map_err(|error| {
            let message = format!("a value of type `{}` cannot be encoded: {error}", short_type_name::<T>());
            Failure::application(message).typed(BAD_OUTPUT).non_retryable()
        })
    }

    /// Decodes a payload. A payload that does not decode is a failure of type [`BAD_INPUT`] that names the type and the payload.
    pub fn decode<T: DeserializeOwned>(&self, payload: &Payload) -> Result<T, Failure> {
        let Some(converter) = &self.own else {
            return json::decode(payload).map_err(|failure| self.about::<T>(payload, failure));
        };
        json::inline(payload)?;
        let mut value = None;
        let mut read = |deserializer: &mut dyn erased_serde::Deserializer<'_>| {
            value = Some(erased_serde::deserialize::<T>(deserializer)?);
            Ok(())
        };
        let failure = |error: String| {
            let message =
                format!("the payload is no `{}`: {error}; it is {}", short_type_name::<T>(), excerpt(payload));
            Failure::application(message).typed(BAD_INPUT).non_retryable()
        };
        let decoded = converter.decode(payload, ValueReader(&mut read)).map_err(|error| failure(error.to_string()));
        let decoded = decoded.and_then(|()| value.ok_or_else(|| failure("the converter read no value".to_owned())));
        decoded.map_err(|failure| self.about::<T>(payload, failure))
    }

    /// Returns this converter, with failures that leave payloads out.
    pub(crate) fn redacting(&self, on: bool) -> Self {
        Self { redacts: on, ..self.clone() }
    }

    /// Returns whether reports leave values out.
    pub(crate) fn redacts(&self) -> bool {
        self.redacts
    }

    /// Leaves the payload out of a failure, if this converter does.
    fn about<T>(&self, payload: &Payload, mut failure: Failure) -> Failure {
        let is_external = failure.type_name.as_deref() == Some(json::EXTERNAL_PAYLOAD);
        if self.redacts && !is_external {
            let (wanted, size) = (short_type_name::<T>(), payload.inline_size());
            failure.message = format!("the payload is no `{wanted}`: it has {size} bytes and is not shown");
        }
        failure
    }

    /// Decodes the one value of a message, which may bring none at all. A failure names the message.
    pub(crate) fn decode_message<T: DeserializeOwned>(
        &self,
        what: &str,
        name: &Name,
        input: &[Payload],
    ) -> Result<T, Failure> {
        self.decode(input.first().unwrap_or(&Payload::empty())).map_err(|mut failure| {
            failure.message = format!("{what} {name:?}: {}; send a value of that type", failure.message);
            failure
        })
    }
}

impl fmt::Debug for Converter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.own.is_some() { "Converter(own)" } else { "Converter(json)" })
    }
}

impl<C: PayloadConverter> From<C> for Converter {
    fn from(converter: C) -> Self {
        Self::new(converter)
    }
}
