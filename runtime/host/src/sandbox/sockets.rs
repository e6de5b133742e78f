//! `wasi:sockets`: TCP to granted addresses, for guests that bring a network library of
//! their own.
//!
//! ```text
//! look-up -> is the name granted? -> its addresses, noted as the guest reads them
//! connect -> is the address granted, or noted for a name that is, with this port? -> dial
//! ```
//!
//! A socket is given an address where `net` is given a name: hence the notes. Nothing
//! listens, and there is no UDP. The error codes of `wasi:sockets` have no words: a
//! denial is `access-denied` to the guest, and a sentence in its log.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard};

use wasmtime::component::Resource;
use wasmtime_wasi::WasiCtxBuilder;
use wasmtime_wasi::p2::bindings::sockets::ip_name_lookup::{
    Host, HostResolveAddressStream, ResolveAddressStream,
};
use wasmtime_wasi::p2::bindings::sockets::network::{self, ErrorCode, IpAddress, Network};
use wasmtime_wasi::p2::{DynPollable, SocketError, SocketResult};
use wasmtime_wasi::sockets::{SocketAddrUse, WasiSocketsView};

use super::grant::{Denial, Grants};
use super::guest::Guest;
use super::log::GuestLog;

/// Names whose addresses are noted. A grant of `*.example.com` has names without end;
/// beyond this many the notes start anew, and who connects looks up first.
const NAMES_MAX: usize = 1_000;

/// Where the sockets of one guest may lead.
pub(super) struct Sockets {
    grants: Grants,
    log: Arc<GuestLog>,
    notes: Mutex<Notes>,
}

#[derive(Debug, Default)]
struct Notes {
    /// The name of each look-up under way, by the number of its resource.
    lookups: BTreeMap<u32, String>,
    /// What each name led to.
    addresses: BTreeMap<String, BTreeSet<IpAddr>>,
}

impl Notes {
    fn add(&mut self, name: &str, ip: IpAddr) {
        if self.addresses.len() >= NAMES_MAX && !self.addresses.contains_key(name) {
            self.addresses.clear();
        }
        let addresses = self.addresses.entry(name.to_owned()).or_default();
        addresses.insert(ip.to_canonical());
    }

    /// Returns the names that led to an address.
    fn names_of(&self, ip: IpAddr) -> impl Iterator<Item = &str> {
        let led_there = self.addresses.iter();
        led_there.filter_map(move |(name, ips)| ips.contains(&ip).then_some(name.as_str()))
    }
}

impl Sockets {
    pub(super) fn new(grants: &Grants, log: &Arc<GuestLog>) -> Arc<Sockets> {
        Arc::new(Sockets {
            grants: grants.clone(),
            log: log.clone(),
            notes: Mutex::default(),
        })
    }

    /// Puts the sockets of WASI under the grants.
    pub(super) fn guard(self: &Arc<Sockets>, wasi: &mut WasiCtxBuilder) {
        let sockets = self.clone();
        wasi.allow_tcp(true)
            .allow_udp(false)
            // Which names are looked up, `Guest` decides below.
            .allow_ip_name_lookup(true)
            .socket_addr_check(move |address, usage| {
                let allowed = sockets.allows(address, usage);
                Box::pin(async move { allowed })
            });
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes
            .lock()
            .expect("nothing panics while it holds this lock")
    }

    fn allows(&self, address: SocketAddr, usage: SocketAddrUse) -> bool {
        match usage {
            SocketAddrUse::TcpConnect => {
                let ip = address.ip().to_canonical();
                let checked = {
                    let notes = self.notes();
                    let names = notes.names_of(ip);
                    self.grants.check_socket(ip, address.port(), names)
                };
                self.is_granted(checked)
            }
            // Every connection is bound first, to whatever address and port are free.
            SocketAddrUse::TcpBind => address.ip().is_unspecified() && address.port() == 0,
            _ => false,
        }
    }

    fn is_granted(&self, checked: Result<(), Denial>) -> bool {
        if let Err(denial) = &checked {
            self.log.denied("wasi:sockets", denial);
        }
        checked.is_ok()
    }
}

impl Host for Guest {
    fn resolve_addresses(
        &mut self,
        network: Resource<Network>,
        name: String,
    ) -> SocketResult<Resource<ResolveAddressStream>> {
        if !self.sockets.is_granted(self.grants.check_lookup(&name)) {
            return Err(ErrorCode::AccessDenied.into());
        }
        let lookup = Host::resolve_addresses(&mut self.sockets(), network, name.clone())?;
        self.sockets.notes().lookups.insert(lookup.rep(), name);
        Ok(lookup)
    }
}

impl HostResolveAddressStream for Guest {
    fn resolve_next_address(
        &mut self,
        lookup: Resource<ResolveAddressStream>,
    ) -> SocketResult<Option<IpAddress>> {
        let number = lookup.rep();
        let address = self.sockets().resolve_next_address(lookup)?;
        if let Some(address) = address {
            let mut notes = self.sockets.notes();
            if let Some(name) = notes.lookups.get(&number).cloned() {
                notes.add(&name, ip_of(address));
            }
        }
        Ok(address)
    }

    fn subscribe(
        &mut self,
        lookup: Resource<ResolveAddressStream>,
    ) -> wasmtime::Result<Resource<DynPollable>> {
        self.sockets().subscribe(lookup)
    }

    fn drop(&mut self, lookup: Resource<ResolveAddressStream>) -> wasmtime::Result<()> {
        self.sockets.notes().lookups.remove(&lookup.rep());
        HostResolveAddressStream::drop(&mut self.sockets(), lookup)
    }
}

// What look-ups return their errors by.
impl network::Host for Guest {
    fn convert_error_code(&mut self, error: SocketError) -> wasmtime::Result<ErrorCode> {
        error.downcast()
    }

    fn network_error_code(
        &mut self,
        error: Resource<wasmtime::Error>,
    ) -> wasmtime::Result<Option<ErrorCode>> {
        self.sockets().network_error_code(error)
    }
}

impl network::HostNetwork for Guest {
    fn drop(&mut self, network: Resource<Network>) -> wasmtime::Result<()> {
        network::HostNetwork::drop(&mut self.sockets(), network)
    }
}

fn ip_of(address: IpAddress) -> IpAddr {
    match address {
        IpAddress::Ipv4((a, b, c, d)) => [a, b, c, d].into(),
        IpAddress::Ipv6((a, b, c, d, e, f, g, h)) => [a, b, c, d, e, f, g, h].into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_of_names_start_anew_when_they_are_too_many() {
        let mut notes = Notes::default();
        let ip = |n: usize| IpAddr::from([10, 0, (n / 256) as u8, (n % 256) as u8]);
        for n in 0..NAMES_MAX {
            notes.add(&format!("{n}.example.com"), ip(n));
        }
        // Another address of a name that is there is no further name.
        notes.add("0.example.com", ip(1));
        let names: Vec<_> = notes.names_of(ip(1)).collect();
        assert_eq!(names, ["0.example.com", "1.example.com"]);
        notes.add("more.example.com", ip(7));
        let names: Vec<_> = notes.names_of(ip(7)).collect();
        assert_eq!(names, ["more.example.com"]);
        assert_eq!(notes.names_of(ip(1)).count(), 0);
    }
}
