//! What the host keeps for one guest: the data of its store.

use std::sync::Arc;

use wasmtime::component::{HasSelf, Linker, ResourceTable};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};

use super::bindings::{net, runtime, sqlite, types};
use super::grant::{GrantError, Grants};
use super::http::Http;
use super::limits::{Limiter, Limits};
use super::log::GuestLog;
use super::session::SessionConfig;
use super::sockets::Sockets;
use super::stop::Stop;
use super::wasi;
use super::watchdog::Watchdog;

/// The interfaces of ours that a guest may import, with their version.
pub(super) const INTERFACES: &[(&str, &str)] = &[
    ("tidegate:connector/types", "0.1.0"),
    ("tidegate:connector/runtime", "0.1.0"),
    ("tidegate:connector/sqlite", "0.1.0"),
    ("tidegate:connector/net", "0.1.0"),
];

/// Links the interfaces of ours.
pub(super) fn link(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    types::add_to_linker::<_, HasSelf<Guest>>(linker, |guest| guest)?;
    runtime::add_to_linker::<_, HasSelf<Guest>>(linker, |guest| guest)?;
    sqlite::add_to_linker::<_, HasSelf<Guest>>(linker, |guest| guest)?;
    net::add_to_linker::<_, HasSelf<Guest>>(linker, |guest| guest)
}

/// What one guest may use and has open.
pub(super) struct Guest {
    pub(super) grants: Grants,
    pub(super) read_only: bool,
    pub(super) limits: Limits,
    pub(super) limiter: Limiter,
    pub(super) log: Arc<GuestLog>,
    pub(super) stop: Stop,
    pub(super) table: ResourceTable,
    pub(super) sockets: Arc<Sockets>,
    wasi: WasiCtx,
    http: Http,
    http_fields: WasiHttpCtx,
    watchdog: Arc<Watchdog>,
}

impl Guest {
    pub(super) fn new(
        config: &SessionConfig,
        watchdog: Arc<Watchdog>,
        log: Arc<GuestLog>,
    ) -> Result<Guest, GrantError> {
        let mut table = ResourceTable::new();
        table.set_max_capacity(config.limits.resources);
        let sockets = Sockets::new(&config.grants, &log);
        Ok(Guest {
            wasi: wasi::context(config, &log, &sockets)?,
            http: Http::new(&config.grants, &log),
            http_fields: WasiHttpCtx::new(),
            grants: config.grants.clone(),
            read_only: config.read_only,
            limits: config.limits.clone(),
            limiter: Limiter::new(&config.limits),
            log,
            stop: config.stop.clone(),
            table,
            sockets,
            watchdog,
        })
    }

    /// Notes that the guest called an import. Every import starts so.
    pub(super) fn enter(&mut self, import: &'static str) -> &mut Guest {
        self.watchdog.enter(self.http.name_wait(import));
        self
    }
}

impl WasiView for Guest {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView {
            ctx: &mut self.wasi,
            table: &mut self.table,
        }
    }
}

impl WasiHttpView for Guest {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        WasiHttpCtxView {
            hooks: &mut self.http,
            table: &mut self.table,
            ctx: &mut self.http_fields,
        }
    }
}

impl types::Host for Guest {}
