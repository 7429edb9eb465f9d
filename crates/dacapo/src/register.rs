//! What can be served, and the catalog of it that a worker is given.

use std::collections::BTreeMap;
use std::sync::Arc;

use dacapo_client::{Capabilities, Error as ClientError};
use dacapo_core::{Name, Pins, Workflow};
use dacapo_worker::{Activity, Registry, RegistryError};

use crate::activity::served;
use crate::interceptor::intercepted_activity;
use crate::{Activities, ActivityFn, ActivityList, ActivityType, Layers, WorkflowDef, WorkflowFn, WorkflowType};

/// A catalog of all that a program serves: what a worker plays, and what new runs of each workflow are pinned to.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    /// Workflows and activities by name.
    pub registry: Registry,
    /// Facts that a new run keeps for life, by the workflow's name.
    pub pins: BTreeMap<Name, Pins>,
    /// The converter and the interceptors of what is registered from now on.
    pub layers: Layers,
}

impl Catalog {
    /// Creates the catalog of these workflows and activities.
    pub fn of<P>(items: impl Register<P>) -> Result<Self, RegistryError> {
        Self::in_layers(items, Layers::default())
    }

    /// Creates the catalog of these workflows and activities, with a converter and interceptors.
    pub fn in_layers<P>(items: impl Register<P>, layers: Layers) -> Result<Self, RegistryError> {
        let mut catalog = Self { layers, ..Self::default() };
        items.register(&mut catalog)?;
        Ok(catalog)
    }

    /// Checks that a backend has the features that the registered workflows need.
    pub(crate) fn check(&self, capabilities: &Capabilities) -> Result<(), ClientError> {
        self.pins.values().try_for_each(|pins| capabilities.check_pins(pins))
    }

    /// Adds a workflow.
    pub fn workflow(&mut self, definition: WorkflowDef) -> Result<(), RegistryError> {
        let name = definition.workflow.name().clone();
        self.registry.workflow(definition.in_layers(&self.layers))?;
        self.pins.insert(name, definition.pins);
        Ok(())
    }

    /// Adds an activity.
    pub fn activity(&mut self, activity: Activity) -> Result<(), RegistryError> {
        self.registry.activity(intercepted_activity(activity, &self.layers))
    }
}

/// A value that can be served: functions marked `#[workflow]` or `#[activity]`, values (or their `Arc`) with `#[activities]`, raw
/// definitions, and tuples and vectors of all these. `P` tells these apart; it is always inferred.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be served",
    label = "this is neither a workflow nor an activity, nor a value with activities",
    note = "serve functions marked `#[workflow]` or `#[activity]`, `Type::run` of a `#[workflow] impl Type`; in a tuple, every item has to be one of these",
    note = "methods marked `#[activity]` are served with their value: `serve((checkout, Arc::new(bank)))`"
)]
pub trait Register<P> {
    /// Adds the value to the catalog.
    fn register(self, catalog: &mut Catalog) -> Result<(), RegistryError>;
}

/// Marks by which [`Register`] tells apart what it is given.
mod kind {
    use std::marker::PhantomData;

    /// A function that is an activity.
    pub struct OfActivity<P>(PhantomData<P>);
    /// A function that is a workflow.
    pub struct OfWorkflow<P>(PhantomData<P>);
    /// A value with activities.
    pub struct OfValue;
    /// A shared value with activities.
    pub struct OfShared;
    /// A raw definition.
    pub struct Raw;
    /// Several of one sort.
    pub struct Many<P>(PhantomData<P>);
}

impl<F, P> Register<kind::OfActivity<P>> for F
where
    F: ActivityFn<P>,
    F::Activity: ActivityType<Receiver = ()>,
{
    fn register(self, catalog: &mut Catalog) -> Result<(), RegistryError> {
        catalog.activity(served::<F::Activity>(Arc::new(()), &catalog.layers))
    }
}

impl<F: WorkflowFn<P>, P> Register<kind::OfWorkflow<P>> for F {
    fn register(self, catalog: &mut Catalog) -> Result<(), RegistryError> {
        catalog.workflow(F::Workflow::definition())
    }
}

#[diagnostic::do_not_recommend]
impl<T: Activities> Register<kind::OfShared> for Arc<T> {
    fn register(self, catalog: &mut Catalog) -> Result<(), RegistryError> {
        ActivityList::of(&self, &catalog.layers.clone()).into_iter().try_for_each(|activity| catalog.activity(activity))
    }
}

impl<T: Activities> Register<kind::OfValue> for T {
    fn register(self, catalog: &mut Catalog) -> Result<(), RegistryError> {
        Arc::new(self).register(catalog)
    }
}

#[diagnostic::do_not_recommend]
impl Register<kind::Raw> for Workflow {
    fn register(self, catalog: &mut Catalog) -> Result<(), RegistryError> {
        catalog.workflow(self.into())
    }
}

#[diagnostic::do_not_recommend]
impl Register<kind::Raw> for WorkflowDef {
    fn register(self, catalog: &mut Catalog) -> Result<(), RegistryError> {
        catalog.workflow(self)
    }
}

#[diagnostic::do_not_recommend]
impl Register<kind::Raw> for Activity {
    fn register(self, catalog: &mut Catalog) -> Result<(), RegistryError> {
        catalog.activity(self)
    }
}

#[diagnostic::do_not_recommend]
impl<T: Register<P>, P> Register<kind::Many<P>> for Vec<T> {
    fn register(self, catalog: &mut Catalog) -> Result<(), RegistryError> {
        self.into_iter().try_for_each(|item| item.register(catalog))
    }
}

macro_rules! tuples {
    ($(($($item:ident $kind:ident)*))*) => {$(
        #[diagnostic::do_not_recommend]
        impl<$($item, $kind),*> Register<($($kind,)*)> for ($($item,)*)
        where
            $($item: Register<$kind>,)*
        {
            #[allow(non_snake_case, unused_variables)]
            fn register(self, catalog: &mut Catalog) -> Result<(), RegistryError> {
                let ($($item,)*) = self;
                $($item.register(catalog)?;)*
                Ok(())
            }
        }
    )*};
}

tuples! {
    ()
    (A KA)
    (A KA B KB)
    (A KA B KB C KC)
    (A KA B KB C KC D KD)
    (A KA B KB C KC D KD E KE)
    (A KA B KB C KC D KD E KE F KF)
    (A KA B KB C KC D KD E KE F KF G KG)
    (A KA B KB C KC D KD E KE F KF G KG H KH)
    (A KA B KB C KC D KD E KE F KF G KG H KH I KI)
    (A KA B KB C KC D KD E KE F KF G KG H KH I KI J KJ)
    (A KA B KB C KC D KD E KE F KF G KG H KH I KI J KJ K KK)
    (A KA B KB C KC D KD E KE F KF G KG H KH I KI J KJ K KK L KL)
    (A KA B KB C KC D KD E KE F KF G KG H KH I KI J KJ K KK L KL M KM)
    (A KA B KB C KC D KD E KE F KF G KG H KH I KI J KJ K KK L KL M KM N KN)
    (A KA B KB C KC D KD E KE F KF G KG H KH I KI J KJ K KK L KL M KM N KN O KO)
    (A KA B KB C KC D KD E KE F KF G KG H KH I KI J KJ K KK L KL M KM N KN O KO Q KQ)
}

#[cfg(test)]
mod tests {
    use dacapo_client::Feature;
    use dacapo_core::PolicySpec;

    use super::*;

    #[test]
    fn workflow_with_a_policy_is_refused_by_a_backend_that_has_none() {
        let raw = Workflow::new("explores", |_, _| async { Ok(Default::default()) });
        let mut definition = WorkflowDef::from(raw);
        let without = Capabilities::new("temporal", [Feature::Writing]);
        assert_eq!(Catalog::of(definition.clone()).unwrap().check(&without), Ok(()));
        definition.pins.policy = PolicySpec::Random { seed: 1 };
        let catalog = Catalog::of(definition).unwrap();
        assert_eq!(catalog.check(&Capabilities::new("memory", Feature::ALL)), Ok(()));
        assert_eq!(
            catalog.check(&without).unwrap_err().to_string(),
            "this backend (temporal) does not support scheduler policies other than the deterministic one: pin the \
             run to the deterministic one"
        );
    }
}
