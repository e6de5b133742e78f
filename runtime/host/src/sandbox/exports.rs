//! The functions that a connector exports, by position and type.

use wasmtime::AsContextMut;
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{
    Component, ComponentExportIndex, ComponentNamedList, Instance, InstancePre, Lift, Lower,
};

use super::bindings::GuestError;

/// Name of the exported interface, without its version.
pub(super) const INTERFACE: &str = "tidegate:connector/connector";

/// What every function but `spec` returns.
pub(super) type Answer<T> = Result<T, GuestError>;

/// Where a component keeps the exported functions.
#[derive(Clone)]
pub(super) struct Exports {
    pub(super) spec: ComponentExportIndex,
    pub(super) validate: ComponentExportIndex,
    pub(super) apply: ComponentExportIndex,
    pub(super) open: ComponentExportIndex,
    pub(super) load: ComponentExportIndex,
    pub(super) flush: ComponentExportIndex,
    pub(super) store: ComponentExportIndex,
    pub(super) start_commit: ComponentExportIndex,
    pub(super) acknowledge: ComponentExportIndex,
}

impl Exports {
    /// Finds and type-checks the functions of the interface of this name.
    pub(super) fn find<T: 'static>(
        pre: &InstancePre<T>,
        interface: &str,
    ) -> wasmtime::Result<Exports> {
        Ok(Exports {
            spec: find::<_, (), String>(pre, interface, "spec")?,
            validate: find::<_, (&str,), Answer<String>>(pre, interface, "validate")?,
            apply: find::<_, (&str,), Answer<String>>(pre, interface, "apply")?,
            open: find::<_, (&str,), Answer<String>>(pre, interface, "open")?,
            load: find::<_, (u32, &[u8]), Answer<Vec<u8>>>(pre, interface, "load")?,
            flush: find::<_, (u32,), Answer<Vec<u8>>>(pre, interface, "flush")?,
            store: find::<_, (u32, &[u8]), Answer<()>>(pre, interface, "store")?,
            start_commit: find::<_, (&str,), Answer<Option<String>>>(
                pre,
                interface,
                "start-commit",
            )?,
            acknowledge: find::<_, (&str,), Answer<String>>(pre, interface, "acknowledge")?,
        })
    }
}

fn find<T: 'static, Params, Return>(
    pre: &InstancePre<T>,
    interface: &str,
    name: &str,
) -> wasmtime::Result<ComponentExportIndex>
where
    Params: ComponentNamedList + Lower,
    (Return,): ComponentNamedList + Lift,
{
    let component: &Component = pre.component();
    let found = component
        .get_export_index(None, interface)
        .and_then(|interface| component.get_export(Some(&interface), name));
    match found {
        Some((ComponentItem::ComponentFunc(function), index)) => {
            function
                .typecheck::<Params, (Return,)>(&pre.instance_type())
                .map_err(|error| error.context(format!("the export {name}")))?;
            Ok(index)
        }
        _ => Err(wasmtime::Error::msg(format!(
            "the export {name} is missing"
        ))),
    }
}

/// Calls an exported function.
pub(super) async fn call<Params, Return>(
    mut store: impl AsContextMut<Data: Send>,
    instance: &Instance,
    index: &ComponentExportIndex,
    params: Params,
) -> wasmtime::Result<Return>
where
    Params: ComponentNamedList + Lower + Send + Sync,
    Return: 'static,
    (Return,): ComponentNamedList + Lift + Send + Sync,
{
    let function = instance.get_typed_func::<Params, (Return,)>(&mut store, index)?;
    let (answer,) = function.call_async(&mut store, params).await?;
    Ok(answer)
}
