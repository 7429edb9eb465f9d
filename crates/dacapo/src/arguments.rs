//! The arguments of a workflow or an activity, as generated code decodes them.

use dacapo_core::{Failure, Payload};
use serde::de::{DeserializeOwned, IgnoredAny};

use crate::Converter;
use crate::json::BAD_INPUT;

/// The arguments of a call, taken one by one.
#[doc(hidden)]
pub struct Arguments<'c> {
    converter: &'c Converter,
    input: std::vec::IntoIter<Payload>,
    taken: usize,
}

impl<'c> Arguments<'c> {
    /// Takes all arguments that came.
    pub fn new(input: Vec<Payload>, converter: &'c Converter) -> Self {
        Self { converter, input: input.into_iter(), taken: 0 }
    }

    /// Decodes the next argument. One that did not come is `null`, so that code can add an `Option`.
    pub fn take<T: DeserializeOwned>(&mut self, name: &str) -> Result<T, Failure> {
        self.taken += 1;
        let payload = self.input.next().unwrap_or_default();
        self.converter.decode(&payload).map_err(|mut failure| {
            failure.message = format!("argument `{name}`: {}", failure.message);
            failure
        })
    }

    /// Refuses arguments that are left, except for those that are `None`: a caller may be newer than this code.
    pub fn end(self) -> Result<(), Failure> {
        let is_none = |payload: &Payload| matches!(self.converter.decode::<Option<IgnoredAny>>(payload), Ok(None));
        let extra = self.input.filter(|payload| !is_none(payload)).count();
        if extra == 0 {
            return Ok(());
        }
        let (given, taken) = (self.taken + extra, self.taken);
        let message =
            format!("{given} arguments were given, and {taken} are taken: give as many as the function takes");
        Err(Failure::application(message).typed(BAD_INPUT).non_retryable())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ConverterError, PayloadConverter, TypedValue, ValueReader};

    /// MessagePack, whose `None` is no text.
    struct MessagePack;

    impl PayloadConverter for MessagePack {
        fn encode(&self, value: TypedValue<'_>) -> Result<Payload, ConverterError> {
            Ok(Payload::new("binary/msgpack".into(), rmp_serde::to_vec_named(&value)?.into()))
        }

        fn decode(&self, payload: &Payload, reader: ValueReader<'_>) -> Result<(), ConverterError> {
            reader.read(&mut rmp_serde::Deserializer::new(&payload.bytes()?[..]))
        }
    }

    #[test]
    fn extra_arguments_are_refused_unless_they_are_none_in_the_encoding_of_the_app() {
        for converter in [Converter::json(), Converter::new(MessagePack)] {
            let end = |extra: Payload| {
                let mut arguments = Arguments::new(vec![converter.encode(&7).unwrap(), extra], &converter);
                assert_eq!(arguments.take("n"), Ok(7));
                arguments.end()
            };
            assert_eq!(end(converter.encode(&None::<u32>).unwrap()), Ok(()), "{converter:?}");
            let refused = end(converter.encode(&Some(7)).unwrap()).unwrap_err();
            let expected = "2 arguments were given, and 1 are taken: give as many as the function takes";
            assert_eq!(refused.message, expected, "{converter:?}");
        }
        for nothing in [Payload::empty(), Payload::json(""), Payload::json("null")] {
            assert_eq!(Arguments::new(vec![nothing], &Converter::json()).end(), Ok(()));
        }
        assert!(Arguments::new(vec![Payload::json("{")], &Converter::json()).end().is_err());
    }
}
