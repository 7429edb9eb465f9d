//! The types that search attributes can have.

use dacapo_core::{AttributeValue, BadAttribute, Name, Timestamp};

/// A type whose values can be set as search attributes: text, whole numbers, floating-point numbers, `bool`,
/// [`Timestamp`], and lists of text.
///
/// ```
/// use dacapo::prelude::*;
/// use dacapo::Attr;
///
/// const CITY: Attr<String> = Attr::new("city");
/// const AMOUNT: Attr<i64> = Attr::new("amount");
///
/// #[workflow]
/// async fn order(ctx: Ctx, city: String) -> Result<(), Failure> {
///     ctx.set_attr(CITY, city);
///     ctx.set_attr(AMOUNT, 5);
///     assert_eq!(ctx.attr(AMOUNT), Some(5));
///     Ok(())
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "a search attribute cannot hold a `{Self}`",
    label = "not a type of search attributes",
    note = "stores index attributes, so their types are few: `String`, `&str`, integers, `f32`, `f64`, `bool`, `Timestamp`, `Vec<String>`",
    note = "put other values into the memo (`set_memo`), or into several attributes"
)]
pub trait IntoAttribute {
    /// Converts the value. The error says what is wrong with it.
    fn into_attribute(self) -> Result<AttributeValue, String>;
}

/// A type that search attributes can be read as.
#[diagnostic::on_unimplemented(
    message = "a search attribute cannot be read as a `{Self}`",
    label = "not a type of search attributes",
    note = "attributes are read as `String`, integers, `f32`, `f64`, `bool`, `Timestamp` or `Vec<String>`"
)]
pub trait FromAttribute: Sized {
    /// Converts the value; none if it is of another type or does not fit.
    fn from_attribute(value: &AttributeValue) -> Option<Self>;
}

/// Converts the value of an attribute, and checks it.
pub(crate) fn checked(name: Name, value: impl IntoAttribute) -> Result<(Name, AttributeValue), BadAttribute> {
    match value.into_attribute() {
        Ok(value) => value.check(&name).map(|()| (name, value)),
        Err(problem) => Err(BadAttribute { name, problem }),
    }
}

impl IntoAttribute for &str {
    fn into_attribute(self) -> Result<AttributeValue, String> {
        Ok(self.to_owned().into())
    }
}

macro_rules! attribute {
    ($($type:ty => $kind:ident($value:ident) => $back:expr;)*) => {
        $(
            impl IntoAttribute for $type {
                fn into_attribute(self) -> Result<AttributeValue, String> {
                    Ok(self.into())
                }
            }

            impl FromAttribute for $type {
                fn from_attribute(value: &AttributeValue) -> Option<Self> {
                    match value {
                        AttributeValue::$kind($value) => Some($back),
                        _ => None,
                    }
                }
            }
        )*
    };
}

attribute! {
    String => Keyword(keyword) => keyword.to_string();
    f64 => Float(number) => *number;
    bool => Bool(value) => *value;
    Timestamp => Time(time) => *time;
    Vec<String> => Keywords(keywords) => keywords.iter().map(Name::to_string).collect();
}

impl IntoAttribute for f32 {
    fn into_attribute(self) -> Result<AttributeValue, String> {
        f64::from(self).into_attribute()
    }
}

impl FromAttribute for f32 {
    fn from_attribute(value: &AttributeValue) -> Option<Self> {
        f64::from_attribute(value).map(|number| number as Self)
    }
}

macro_rules! integer {
    ($($type:ty),*) => {
        $(
            impl IntoAttribute for $type {
                fn into_attribute(self) -> Result<AttributeValue, String> {
                    let number = i64::try_from(self).map_err(|_| format!("{self} is too large, the largest number is {}", i64::MAX))?;
                    Ok(number.into())
                }
            }

            impl FromAttribute for $type {
                fn from_attribute(value: &AttributeValue) -> Option<Self> {
                    match value {
                        AttributeValue::Int(number) => Self::try_from(*number).ok(),
                        _ => None,
                    }
                }
            }
        )*
    };
}

integer!(i8, i16, i32, i64, isize, u8, u16, u32, u64, usize);

#[cfg(test)]
mod tests {
    use super::*;

    fn back<T: IntoAttribute + FromAttribute + Clone + PartialEq + std::fmt::Debug>(value: T) {
        let (name, stored) = checked("a".into(), value.clone()).unwrap();
        assert_eq!((name.as_str(), T::from_attribute(&stored)), ("a", Some(value)));
    }

    #[test]
    fn value_of_every_type_is_read_back() {
        back("Ulm".to_owned());
        back(-5_i8);
        back(i64::MIN);
        back(7_u64);
        back(7_usize);
        back(1.5_f32);
        back(-1.5_f64);
        back(true);
        back(Timestamp(4));
        back(vec!["a".to_owned(), "b".to_owned()]);
        assert_eq!("Ulm".into_attribute(), Ok("Ulm".into()));
    }

    #[test]
    fn value_that_does_not_fit_is_refused_and_one_of_another_type_is_none() {
        let refused = checked("size".into(), u64::MAX).unwrap_err().to_string();
        assert_eq!(
            refused,
            "search attribute \"size\": 18446744073709551615 is too large, the largest number is 9223372036854775807"
        );
        assert!(checked("size".into(), f64::NAN).is_err());
        assert_eq!(u8::from_attribute(&300.into()), None);
        assert_eq!(String::from_attribute(&300.into()), None);
    }
}
