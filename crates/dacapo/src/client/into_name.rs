//! Names that a program makes up at run time.

use dacapo_core::Name;
use dacapo_worker::QueueSettings;

/// A task queue: its name, or its settings.
pub trait IntoQueue {
    /// Converts the value into a queue.
    fn into_queue(self) -> QueueSettings;
}

impl<N: IntoName> IntoQueue for N {
    fn into_queue(self) -> QueueSettings {
        QueueSettings::new(self.into_name())
    }
}

impl IntoQueue for QueueSettings {
    fn into_queue(self) -> QueueSettings {
        self
    }
}

/// A name: any string, borrowed or owned.
pub trait IntoName {
    /// Converts the text into a name.
    fn into_name(self) -> Name;
}

impl IntoName for &str {
    fn into_name(self) -> Name {
        self.to_owned().into()
    }
}

impl IntoName for &String {
    fn into_name(self) -> Name {
        self.clone().into()
    }
}

impl IntoName for String {
    fn into_name(self) -> Name {
        self.into()
    }
}

impl IntoName for Name {
    fn into_name(self) -> Name {
        self
    }
}

impl IntoName for &Name {
    fn into_name(self) -> Name {
        self.clone()
    }
}
