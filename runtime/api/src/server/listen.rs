//! Where a server may listen.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Why a server may not listen on an address.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListenError {
    /// Others could read along, or nobody chose who may call.
    #[error(
        "other machines can reach {ip}, and {missing}: a token that is sent in the clear is \
         anybody's. Give {give}, or listen on 127.0.0.1, or say --insecure-listen if something in \
         front of it protects it"
    )]
    Exposed {
        /// The address.
        ip: IpAddr,
        /// What is missing.
        missing: &'static str,
        /// The options that mend it.
        give: &'static str,
    },
}

/// Refuses an address that other machines reach without TLS and chosen keys,
/// unless told explicitly.
pub(super) fn allow(ip: IpAddr, tls: bool, keys: bool, insecure: bool) -> Result<(), ListenError> {
    if insecure || ip.to_canonical().is_loopback() {
        return Ok(());
    }
    let (missing, give) = match (tls, keys) {
        (true, true) => return Ok(()),
        (false, true) => ("there is no certificate", "--tls-certificate and --tls-key"),
        (true, false) => ("there is no key file", "--keys"),
        (false, false) => (
            "there is neither a certificate nor a key file",
            "--tls-certificate, --tls-key and --keys",
        ),
    };
    Err(ListenError::Exposed { ip, missing, give })
}

/// Returns an address that clients on this machine can call.
pub(super) fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address.ip() {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        struct Case {
            ip: &'static str,
            tls: bool,
            keys: bool,
            insecure: bool,
            want: Result<(), &'static str>,
        }
        let bare = Case {
            ip: "0.0.0.0",
            tls: false,
            keys: false,
            insecure: false,
            want: Err("neither a certificate nor a key file"),
        };
        #[rustfmt::skip]
        let cases = [
            Case { ip: "127.0.0.1", want: Ok(()), ..bare },
            Case { ip: "127.1.2.3", want: Ok(()), ..bare },
            Case { ip: "::1", want: Ok(()), ..bare },
            Case { ip: "::ffff:127.0.0.1", want: Ok(()), ..bare },
            Case { ip: "::", ..bare },
            Case { ip: "::ffff:10.0.0.1", ..bare },
            Case { ip: "10.0.0.1", ..bare },
            Case { ip: "10.0.0.1", tls: true, want: Err("no key file"), ..bare },
            Case { ip: "10.0.0.1", keys: true, want: Err("no certificate"), ..bare },
            Case { ip: "10.0.0.1", tls: true, keys: true, want: Ok(()), ..bare },
            Case { ip: "10.0.0.1", insecure: true, want: Ok(()), ..bare },
            bare,
        ];
        for case in cases {
            let ip: IpAddr = case.ip.parse().unwrap();
            let got = allow(ip, case.tls, case.keys, case.insecure);
            match (got, case.want) {
                (Ok(()), Ok(())) => {}
                (Err(error), Err(want)) => {
                    assert!(error.to_string().contains(want), "{error}");
                }
                (got, want) => panic!("{ip}: {got:?}, not {want:?}"),
            }
        }
    }

    #[test]
    fn clients_are_not_sent_to_an_unspecified_address() {
        for (address, want) in [
            ("0.0.0.0:1", "127.0.0.1:1"),
            ("[::]:1", "[::1]:1"),
            ("10.0.0.1:1", "10.0.0.1:1"),
        ] {
            assert_eq!(reachable(address.parse().unwrap()).to_string(), want);
        }
    }
}
