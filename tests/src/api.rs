//! A host's API, called as anybody would: HTTP, a token, JSON.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use ureq::Agent;

/// A call that takes longer has hung.
const CALL_MAX: Duration = Duration::from_secs(60);

/// Where a host listens, and the token to call it with.
#[derive(Clone)]
pub struct Api {
    agent: Agent,
    url: String,
    token: String,
}

impl Api {
    /// Returns the API of the host that runs on a data directory.
    pub fn of(data_dir: &Path) -> Api {
        let read = |name| fs::read_to_string(data_dir.join(name)).expect("a host wrote it");
        let address: Value = serde_json::from_str(&read("api.json")).expect("it is JSON");
        let config = Agent::config_builder()
            .timeout_global(Some(CALL_MAX))
            .http_status_as_error(false)
            .build();
        Api {
            agent: config.into(),
            url: address["url"].as_str().expect("it has a url").to_owned(),
            token: read("token").trim().to_owned(),
        }
    }

    /// Returns the tasks, as listed.
    pub fn tasks(&self) -> Vec<Value> {
        let listed: Value = serde_json::from_str(&self.get("/v1/tasks")).expect("it is JSON");
        listed["tasks"].as_array().cloned().unwrap_or_default()
    }

    /// Returns a task, as listed.
    #[track_caller]
    pub fn task(&self, name: &str) -> Value {
        let tasks = self.tasks();
        let found = tasks.iter().find(|task| task["name"] == name);
        found
            .unwrap_or_else(|| panic!("{name} is not among {tasks:?}"))
            .clone()
    }

    /// Pokes a task, and returns every message of the answer; nothing but the
    /// error if the call fails.
    pub fn sync_now(&self, task: &str, through_head: bool) -> Result<Vec<Value>, String> {
        let mut request = json!({ "task": task });
        if through_head {
            request["through"] = "HEAD".into();
        }
        let answer = self.post("/v1/task-control/sync-now", &request.to_string());
        let answer = answer.map_err(|error| error.to_string())?;
        let lines = answer.lines().map(serde_json::from_str::<Value>);
        let messages: Vec<Value> = lines
            .collect::<Result<_, _>>()
            .map_err(|error| format!("{error}: {answer}"))?;
        match messages.last() {
            Some(last) if last["result"].get("done").is_some() => Ok(messages),
            _ => Err(answer),
        }
    }

    /// Calls a route with a body; the answer is whatever came back.
    pub fn post(&self, route: &str, body: &str) -> Result<String, ureq::Error> {
        let url = format!("{}{route}", self.url);
        let request = self.agent.post(url);
        let request = request.header("Authorization", format!("Bearer {}", self.token));
        let mut text = String::new();
        let mut body = request.send(body)?.into_body();
        body.as_reader().read_to_string(&mut text)?;
        Ok(text)
    }

    fn get(&self, route: &str) -> String {
        let url = format!("{}{route}", self.url);
        let request = self.agent.get(url);
        let request = request.header("Authorization", format!("Bearer {}", self.token));
        let body = request.call().expect("a host answers").into_body();
        let mut text = String::new();
        let read = body.into_reader().read_to_string(&mut text);
        read.expect("an answer is text");
        text
    }
}
