//! Typed names: constants that say what travels under a name.

use std::fmt;
use std::marker::PhantomData;

use dacapo_core::Name;

macro_rules! typed_name {
    ($(#[$doc:meta])* $name:ident<$($param:ident),+>) => {
        $(#[$doc])*
        pub struct $name<$($param),+> {
            name: &'static str,
            types: PhantomData<fn() -> ($($param,)+)>,
        }

        impl<$($param),+> $name<$($param),+> {
            #[doc = concat!("Creates a `", stringify!($name), "` of this name: a constant that code and callers share.")]
            pub const fn new(name: &'static str) -> Self {
                Self { name, types: PhantomData }
            }

            /// Returns the name.
            pub const fn name(self) -> &'static str {
                self.name
            }
        }

        impl<$($param),+> Clone for $name<$($param),+> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<$($param),+> Copy for $name<$($param),+> {}

        impl<$($param),+> fmt::Debug for $name<$($param),+> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{} {:?}", stringify!($name), self.name)
            }
        }

        impl<$($param),+> From<$name<$($param),+>> for Name {
            fn from(typed: $name<$($param),+>) -> Self {
                Self::from_static(typed.name)
            }
        }
    };
}

typed_name! {
    /// A signal that brings a `T`.
    Signal<T>
}

typed_name! {
    /// A query that takes an `I` and answers with an `O`.
    Query<I, O>
}

typed_name! {
    /// An update that brings an `I` and is answered with an `O`.
    Update<I, O>
}

typed_name! {
    /// A promise of a `T`, which a caller outside the run resolves.
    Promise<T>
}

typed_name! {
    /// A durable key of a run that holds a `T`.
    Key<T>
}

typed_name! {
    /// A search attribute that holds a `T`: text, a number, a `bool`, a `Timestamp` or a list of text.
    Attr<T>
}
