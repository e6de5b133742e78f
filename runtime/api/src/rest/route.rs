//! The routes: which there are, and which one a path is.

use axum::http::Method;
use percent_encoding::percent_decode_str;

/// What a route does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Endpoint {
    SyncNow,
    ListTasks,
    GetTask,
    WatchTask,
    StopTask,
    StartTask,
    Append,
    Read,
    GetCatalog,
    Publish,
    Validate,
    Healthz,
    Readyz,
    OpenApi,
}

/// A route.
pub(super) struct Route {
    pub(super) method: Method,
    /// With `{task}` or `{collection}` where a name is.
    pub(super) path: &'static str,
    pub(super) endpoint: Endpoint,
    /// The gRPC call that it is; empty if it is none.
    pub(super) rpc: &'static str,
}

const fn route(method: Method, path: &'static str, endpoint: Endpoint, rpc: &'static str) -> Route {
    Route {
        method,
        path,
        endpoint,
        rpc,
    }
}

/// Every route. Of two that match, the first one counts: names have no colons, so
/// those with a verb come before those without.
#[rustfmt::skip]
pub(super) const ROUTES: [Route; 14] = [
    route(Method::POST, "/v1/task-control/sync-now", Endpoint::SyncNow, "TaskControl/SyncNow"),
    route(Method::GET, "/v1/tasks", Endpoint::ListTasks, "Tasks/List"),
    route(Method::GET, "/v1/tasks/{task}:watch", Endpoint::WatchTask, "Tasks/Watch"),
    route(Method::POST, "/v1/tasks/{task}:stop", Endpoint::StopTask, "Tasks/Stop"),
    route(Method::POST, "/v1/tasks/{task}:start", Endpoint::StartTask, "Tasks/Start"),
    route(Method::GET, "/v1/tasks/{task}", Endpoint::GetTask, "Tasks/Get"),
    route(Method::POST, "/v1/collections/{collection}:append", Endpoint::Append, "Collections/Append"),
    route(Method::GET, "/v1/collections/{collection}:read", Endpoint::Read, "Collections/Read"),
    route(Method::GET, "/v1/catalog", Endpoint::GetCatalog, "Catalog/Get"),
    route(Method::PUT, "/v1/catalog", Endpoint::Publish, "Catalog/Publish"),
    route(Method::POST, "/v1/catalog/validate", Endpoint::Validate, "Catalog/Validate"),
    route(Method::GET, "/healthz", Endpoint::Healthz, ""),
    route(Method::GET, "/readyz", Endpoint::Readyz, ""),
    route(Method::GET, "/openapi.json", Endpoint::OpenApi, ""),
];

/// What a method and a path are.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// A route, with the name in its path.
    Route { endpoint: Endpoint, name: String },
    /// The path is one of routes with these other methods.
    OtherMethods(Vec<Method>),
    /// There is none.
    Nothing,
}

/// Finds the route of a request.
pub(super) fn find(method: &Method, path: &str) -> Found {
    let mut others: Vec<Method> = Vec::new();
    for route in &ROUTES {
        let Some(name) = matches(route.path, path) else {
            continue;
        };
        // HEAD is GET without the answer, which hyper leaves out.
        let same =
            route.method == *method || (route.method == Method::GET && *method == Method::HEAD);
        if same {
            return Found::Route {
                endpoint: route.endpoint,
                name,
            };
        }
        // `x:stop` is no task whose name has a colon.
        if !others.contains(&route.method) && (others.is_empty() || !path.contains(':')) {
            others.push(route.method.clone());
        }
    }
    match others.is_empty() {
        true => Found::Nothing,
        false => Found::OtherMethods(others),
    }
}

/// Matches a path with a template; returns the name in it.
fn matches(template: &str, path: &str) -> Option<String> {
    let Some((before, rest)) = template.split_once('{') else {
        return (template == path).then(String::new);
    };
    let (_, after) = rest.split_once('}')?;
    let name = path.strip_prefix(before)?.strip_suffix(after)?;
    // Without a verb, what comes after a colon is a verb that there is not.
    if name.is_empty() || name.contains(':') {
        return None;
    }
    decode(name)
}

/// Undoes percent-encoding; nothing if that gives no text.
pub(super) fn decode(text: &str) -> Option<String> {
    let decoded = percent_decode_str(text).decode_utf8().ok()?;
    Some(decoded.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        let is = |endpoint, name: &str| Found::Route {
            endpoint,
            name: name.to_owned(),
        };
        let other = |methods: &[Method]| Found::OtherMethods(methods.to_vec());
        #[rustfmt::skip]
        let cases = [
            (Method::GET, "/v1/tasks", is(Endpoint::ListTasks, "")),
            (Method::HEAD, "/v1/tasks", is(Endpoint::ListTasks, "")),
            (Method::GET, "/v1/tasks/", Found::Nothing),
            (Method::GET, "/v1/tasks/a", is(Endpoint::GetTask, "a")),
            (Method::GET, "/v1/tasks/acmeCo/foo/bar", is(Endpoint::GetTask, "acmeCo/foo/bar")),
            (Method::GET, "/v1/tasks/acmeCo%2Ffoo%2fbar", is(Endpoint::GetTask, "acmeCo/foo/bar")),
            (Method::GET, "/v1/tasks/acmeCo/foo:watch", is(Endpoint::WatchTask, "acmeCo/foo")),
            (Method::POST, "/v1/tasks/acmeCo%2Ffoo:stop", is(Endpoint::StopTask, "acmeCo/foo")),
            (Method::POST, "/v1/tasks/watch:start", is(Endpoint::StartTask, "watch")),
            (Method::GET, "/v1/tasks/acmeCo/foo:stop", other(&[Method::POST])),
            (Method::POST, "/v1/tasks/acmeCo/foo:watch", other(&[Method::GET])),
            (Method::DELETE, "/v1/tasks/acmeCo/foo", other(&[Method::GET])),
            (Method::GET, "/v1/tasks/acmeCo/foo:explode", Found::Nothing),
            (Method::GET, "/v1/tasks/:watch", Found::Nothing),
            (Method::GET, "/v1/tasks/%ff", Found::Nothing),
            (Method::POST, "/v1/collections/a/b:append", is(Endpoint::Append, "a/b")),
            (Method::GET, "/v1/collections/a/b:read", is(Endpoint::Read, "a/b")),
            (Method::GET, "/v1/collections/a/b", Found::Nothing),
            (Method::PUT, "/v1/catalog", is(Endpoint::Publish, "")),
            (Method::DELETE, "/v1/catalog", other(&[Method::GET, Method::PUT])),
            (Method::POST, "/v1/catalog/validate", is(Endpoint::Validate, "")),
            (Method::GET, "/v1/task-control/sync-now", other(&[Method::POST])),
            (Method::GET, "/", Found::Nothing),
            (Method::GET, "/V1/tasks", Found::Nothing),
        ];
        for (method, path, want) in cases {
            assert_eq!(find(&method, path), want, "{method} {path}");
        }
    }
}
