//! A connector as the generated bindings want it: functions without a receiver,
//! so the instance lives in a static that [`export!`](crate::export) declares.

use std::marker::PhantomData;

use crate::bindings::exports::tidegate::connector::connector::{Error, Guest};
use crate::driver::Protocol;

/// A protocol with one instance in this component.
pub trait Exported: Protocol {
    /// Makes a call on the instance.
    fn with<R>(call: impl FnOnce(&mut Self) -> R) -> R;
}

/// What the component exports.
pub struct Component<P>(PhantomData<P>);

impl<P: Exported> Guest for Component<P> {
    fn spec() -> String {
        P::with(|it| it.spec())
    }

    fn validate(request: String) -> Result<String, Error> {
        P::with(|it| it.validate(&request)).map_err(Error::from)
    }

    fn apply(request: String) -> Result<String, Error> {
        P::with(|it| it.apply(&request)).map_err(Error::from)
    }

    fn open(request: String) -> Result<String, Error> {
        P::with(|it| it.open(&request)).map_err(Error::from)
    }

    fn load(binding: u32, keys: Vec<u8>) -> Result<Vec<u8>, Error> {
        P::with(|it| it.load(binding, &keys)).map_err(Error::from)
    }

    fn flush(binding: u32) -> Result<Vec<u8>, Error> {
        P::with(|it| it.flush(binding)).map_err(Error::from)
    }

    fn store(binding: u32, batch: Vec<u8>) -> Result<(), Error> {
        P::with(|it| it.store(binding, &batch)).map_err(Error::from)
    }

    fn start_commit(checkpoint: String) -> Result<Option<String>, Error> {
        P::with(|it| it.start_commit(&checkpoint)).map_err(Error::from)
    }

    fn acknowledge(request: String) -> Result<String, Error> {
        P::with(|it| it.acknowledge(&request)).map_err(Error::from)
    }
}
