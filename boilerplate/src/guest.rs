//! A connector as the generated bindings want it: functions without a receiver,
//! so the instance lives in a static that [`export!`](crate::export) declares.

use std::marker::PhantomData;

use crate::bindings::exports::tidegate::connector::connector::{Error, Guest};
use crate::driver::Protocol;

/// The one instance of a component.
pub trait Instance {
    /// What it is an instance of.
    type Protocol: Protocol;

    /// Makes a call on it.
    fn with<R>(call: impl FnOnce(&mut Self::Protocol) -> R) -> R;
}

/// What the component exports.
pub struct Component<I>(PhantomData<I>);

impl<I: Instance> Guest for Component<I> {
    fn spec() -> String {
        I::with(|it| it.spec())
    }

    fn validate(request: String) -> Result<String, Error> {
        I::with(|it| it.validate(&request)).map_err(Error::from)
    }

    fn apply(request: String) -> Result<String, Error> {
        I::with(|it| it.apply(&request)).map_err(Error::from)
    }

    fn open(request: String) -> Result<String, Error> {
        I::with(|it| it.open(&request)).map_err(Error::from)
    }

    fn load(binding: u32, keys: Vec<u8>) -> Result<Vec<u8>, Error> {
        I::with(|it| it.load(binding, &keys)).map_err(Error::from)
    }

    fn flush(binding: u32) -> Result<Vec<u8>, Error> {
        I::with(|it| it.flush(binding)).map_err(Error::from)
    }

    fn store(binding: u32, batch: Vec<u8>) -> Result<(), Error> {
        I::with(|it| it.store(binding, &batch)).map_err(Error::from)
    }

    fn start_commit(checkpoint: String) -> Result<Option<String>, Error> {
        I::with(|it| it.start_commit(&checkpoint)).map_err(Error::from)
    }

    fn acknowledge(request: String) -> Result<String, Error> {
        I::with(|it| it.acknowledge(&request)).map_err(Error::from)
    }
}
