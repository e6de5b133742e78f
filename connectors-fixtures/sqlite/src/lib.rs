//! hello
#[cfg(target_family = "wasm")]
mod m {
use tidegate_boilerplate::bindings::exports::tidegate::connector::connector::{Guest, Error};
struct C;
impl Guest for C {
    fn spec() -> String { println!("hi"); "{}".into() }
    fn validate(r: String) -> Result<String, Error> { Ok(r) }
    fn apply(r: String) -> Result<String, Error> { Ok(r) }
    fn open(r: String) -> Result<String, Error> { Ok(r) }
    fn load(_: u32, k: Vec<u8>) -> Result<Vec<u8>, Error> { Ok(k) }
    fn flush(_: u32) -> Result<Vec<u8>, Error> { Ok(vec![]) }
    fn store(_: u32, _: Vec<u8>) -> Result<(), Error> { Ok(()) }
    fn start_commit(_: String) -> Result<Option<String>, Error> { Ok(None) }
    fn acknowledge(r: String) -> Result<String, Error> { tidegate_boilerplate::bindings::tidegate::connector::runtime::wait(10); Ok(r) }
}
tidegate_boilerplate::bindings::export!(C with_types_in tidegate_boilerplate::bindings);
}
