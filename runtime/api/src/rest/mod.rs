//! The REST side: every route is the gRPC call that it names, in the protos' JSON
//! mapping.
//!
//! ```text
//! method, path -> route -> caller -> body -> call -> {...} | {"result":{...}} a line
//!                   '---------'--------'------'----> {"error":{"code","message"}}
//! ```
//!
//! Names are written as they are, slashes included, and what is asked of one
//! comes after a colon: `POST /v1/tasks/acmeCo/orders:stop`. Names have no
//! colons. Percent-encoded slashes mean the same. The content type of a request
//! is not looked at, because `curl -d` says the wrong one.

mod answer;
mod body;
mod openapi;
mod route;

use axum::body::Body;
use axum::http::{HeaderMap, Request, Response, StatusCode, header};
use bytes::Bytes;
use prost::{Message, Name};

use self::answer::{error, lines, one, with_status};
use self::route::{Endpoint, Found};
use crate::auth::Claims;
use crate::backend::Readiness;
use crate::calls::Calls;
use crate::error::{Code, Error};
use crate::json::from_json;
use crate::v1;

pub(crate) use self::body::Bounded;
pub use self::openapi::document;

/// A request on a route that needs a caller.
struct Call {
    caller: Claims,
    name: String,
    query: Vec<(String, String)>,
    headers: HeaderMap,
    body: Bytes,
}

/// Answers a request that is not gRPC.
pub(crate) async fn handle(calls: Calls, request: Request<Body>) -> Response<Body> {
    respond(calls, request)
        .await
        .unwrap_or_else(|it| error(&it))
}

async fn respond(calls: Calls, request: Request<Body>) -> Result<Response<Body>, Error> {
    let (parts, body) = request.into_parts();
    let (endpoint, name) = match route::find(&parts.method, parts.uri.path()) {
        Found::Route { endpoint, name } => (endpoint, name),
        Found::OtherMethods(allowed) => return Ok(answer::method_not_allowed(&allowed)),
        Found::Nothing => {
            return Err(Error::new(
                Code::NotFound,
                "there is no such route: /openapi.json has those that there are",
            ));
        }
    };
    match endpoint {
        Endpoint::Healthz => return Ok(answer::text(StatusCode::OK, "ok\n")),
        Endpoint::Readyz => return Ok(ready(&calls.readiness())),
        Endpoint::OpenApi => return Ok(answer::json(StatusCode::OK, openapi::text())),
        _ => {}
    }
    let authorization = parts.headers.get(header::AUTHORIZATION);
    let caller = calls.authenticate(authorization.map(|value| value.as_bytes()))?;
    let call = Call {
        caller,
        name,
        query: query(parts.uri.query().unwrap_or_default())?,
        headers: parts.headers,
        body: match body::read(body).await {
            Ok(body) => body,
            Err(refused) => return Ok(refused.response()),
        },
    };
    call.run(endpoint, &calls).await
}

fn ready(readiness: &Readiness) -> Response<Body> {
    match readiness {
        Readiness::Ready => answer::text(StatusCode::OK, "ready\n"),
        Readiness::NotReady(why) => answer::text(
            StatusCode::SERVICE_UNAVAILABLE,
            &format!("not ready: {why}\n"),
        ),
    }
}

impl Call {
    async fn run(self, endpoint: Endpoint, calls: &Calls) -> Result<Response<Body>, Error> {
        let caller = &self.caller;
        let task = || self.name.clone();
        match endpoint {
            Endpoint::SyncNow => {
                self.allow_query(&[])?;
                Ok(lines(calls.sync_now(caller, self.message()?).await?))
            }
            Endpoint::ListTasks => {
                self.allow_query(&["prefix"])?;
                let prefix = self.query("prefix").unwrap_or_default().to_owned();
                Ok(one(&calls
                    .list(caller, v1::ListTasksRequest { prefix })
                    .await?))
            }
            Endpoint::GetTask => {
                self.allow_query(&[])?;
                Ok(one(&calls
                    .get(caller, v1::GetTaskRequest { task: task() })
                    .await?))
            }
            Endpoint::WatchTask => {
                self.allow_query(&[])?;
                let request = v1::WatchTaskRequest { task: task() };
                Ok(lines(calls.watch(caller, request).await?))
            }
            Endpoint::StopTask => {
                self.allow_query(&[])?;
                Ok(one(&calls
                    .stop(caller, v1::StopTaskRequest { task: task() })
                    .await?))
            }
            Endpoint::StartTask => {
                self.allow_query(&[])?;
                let request = v1::StartTaskRequest { task: task() };
                Ok(one(&calls.start(caller, request).await?))
            }
            Endpoint::Append => Ok(one(&calls.append(caller, self.append()?).await?)),
            Endpoint::Read => Ok(lines(calls.read(caller, self.read()?).await?)),
            Endpoint::Validate => {
                self.allow_query(&[])?;
                Ok(one(&calls.validate(caller, self.message()?).await?))
            }
            Endpoint::Publish => {
                let answer = calls.publish(caller, self.publish()?).await?;
                // `curl -f` fails then, as it should.
                let status = match answer.valid {
                    true => StatusCode::OK,
                    false => StatusCode::UNPROCESSABLE_ENTITY,
                };
                Ok(with_status(status, &answer))
            }
            Endpoint::GetCatalog => {
                self.allow_query(&[])?;
                Ok(one(&calls.catalog(caller).await?))
            }
            Endpoint::Healthz | Endpoint::Readyz | Endpoint::OpenApi => {
                Ok(answer::text(StatusCode::OK, ""))
            }
        }
    }

    fn message<M: Message + Name + Default>(&self) -> Result<M, Error> {
        from_json(&self.body)
    }

    fn publish(&self) -> Result<v1::PublishRequest, Error> {
        self.allow_query(&["dryRun"])?;
        let mut request: v1::PublishRequest = self.message()?;
        match self.query("dryRun") {
            None => {}
            Some("true") => request.dry_run = true,
            Some("false") => request.dry_run = false,
            Some(_) => return Err(invalid("dryRun is true or false")),
        }
        Ok(request)
    }

    fn append(&self) -> Result<v1::AppendRequest, Error> {
        self.allow_query(&["publishedAt"])?;
        let idempotency_key = match self.headers.get("idempotency-key") {
            None => String::new(),
            Some(key) => key
                .to_str()
                .map_err(|_| invalid("Idempotency-Key has bytes that are not visible ASCII"))?
                .to_owned(),
        };
        let published_at = match self.query("publishedAt") {
            None => None,
            Some(text) => Some(text.parse().map_err(|_| {
                invalid("publishedAt is no instant; one looks like 2026-05-04T00:15:00Z")
            })?),
        };
        Ok(v1::AppendRequest {
            collection: self.name.clone(),
            documents: self.body.clone(),
            idempotency_key,
            published_at,
        })
    }

    fn read(&self) -> Result<v1::ReadRequest, Error> {
        self.allow_query(&["fromOffset", "limit"])?;
        let number = |name: &str| match self.query(name) {
            None => Ok(0),
            Some(text) => text
                .parse()
                .map_err(|_| invalid(format!("{name} is no whole number"))),
        };
        Ok(v1::ReadRequest {
            collection: self.name.clone(),
            from_offset: number("fromOffset")?,
            limit: number("limit")?,
        })
    }

    fn query(&self, name: &str) -> Option<&str> {
        let found = self.query.iter().find(|(it, _)| it == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Refuses what would be left unread: a misspelt `limit` returns everything.
    fn allow_query(&self, names: &[&str]) -> Result<(), Error> {
        for (at, (name, _)) in self.query.iter().enumerate() {
            if !names.contains(&name.as_str()) {
                let known = match names {
                    [] => "it has none".to_owned(),
                    names => format!("it has {}", names.join(", ")),
                };
                return Err(invalid(format!(
                    "the route has no parameter {name:?}: {known}"
                )));
            }
            if self.query[..at].iter().any(|(it, _)| it == name) {
                return Err(invalid(format!("{name} is given twice")));
            }
        }
        Ok(())
    }
}

/// Takes a query apart.
fn query(text: &str) -> Result<Vec<(String, String)>, Error> {
    let decode = |text: &str| {
        route::decode(&text.replace('+', " "))
            .ok_or_else(|| invalid("the query is no percent-encoded UTF-8"))
    };
    text.split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((decode(name)?, decode(value)?))
        })
        .collect()
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(Code::InvalidArgument, message)
}
