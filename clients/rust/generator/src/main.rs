//! Generates `src/api` from a descriptor set of the contract and from `service-config.json`.
//!
//! Usage: `generator DESCRIPTORS SERVICE_CONFIG FOLDER`; `.ci/rust-client` runs it.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::{env, fs};

use prost::Message;
use prost_types::{DescriptorProto, FileDescriptorSet, MethodDescriptorProto};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [descriptors, config, folder] = arguments.as_slice() else {
        return Err("usage: generator DESCRIPTORS SERVICE_CONFIG FOLDER".into());
    };
    let set = FileDescriptorSet::decode(fs::read(descriptors)?.as_slice())?;
    fs::create_dir_all(folder)?;
    let contract = Contract::new(&set, &serde_json::from_slice(&fs::read(config)?)?);
    fs::write(format!("{folder}/methods.rs"), contract.methods())?;
    fs::write(format!("{folder}/streamed.rs"), contract.streamed())?;
    tonic_prost_build::configure()
        .build_server(false)
        .build_transport(false)
        .emit_rerun_if_changed(false)
        .include_file("generated.rs")
        .out_dir(folder)
        .compile_fds(set)?;
    Ok(())
}

/// The messages by their names, and the methods by their paths.
struct Contract<'a> {
    messages: BTreeMap<String, &'a DescriptorProto>,
    methods: Vec<(String, &'a MethodDescriptorProto)>,
    seconds: BTreeMap<String, u64>,
}

impl<'a> Contract<'a> {
    fn new(set: &'a FileDescriptorSet, config: &serde_json::Value) -> Self {
        let (mut messages, mut methods, mut seconds) = (BTreeMap::new(), Vec::new(), BTreeMap::new());
        for file in &set.file {
            for message in &file.message_type {
                messages.insert(format!(".{}.{}", file.package(), message.name()), message);
            }
            for service in &file.service {
                for method in &service.method {
                    methods
                        .push((format!("/{}.{}/{}", file.package(), service.name(), method.name()), method));
                }
            }
        }
        for entry in config["methodConfig"].as_array().into_iter().flatten() {
            let timeout = entry["timeout"].as_str().unwrap_or("").trim_end_matches('s').parse();
            for name in entry["name"].as_array().into_iter().flatten() {
                if let (Some(service), Some(method), Ok(timeout)) =
                    (name["service"].as_str(), name["method"].as_str(), &timeout)
                {
                    seconds.insert(format!("/{service}/{method}"), *timeout);
                }
            }
        }
        Self { messages, methods, seconds }
    }

    /// The table of methods, from the service config and the types of the requests.
    fn methods(&self) -> String {
        let mut text = String::from(
            "/// Path, longest time in seconds, number of the field `request_id`, and if the client streams.\n\
             pub(crate) const METHODS: &[(&str, Option<u64>, Option<u32>, bool)] = &[\n",
        );
        for (path, method) in &self.methods {
            let request = self.messages[method.input_type()];
            let id = request
                .field
                .iter()
                .find(|field| field.name() == "request_id" && field.oneof_index.is_none());
            let (seconds, number) = (self.seconds.get(path), id.map(|field| field.number()));
            writeln!(text, "    ({path:?}, {seconds:?}, {number:?}, {}),", method.client_streaming())
                .unwrap();
        }
        text + "];\n"
    }

    /// The implementations of `Streamed`, one for each call that streams numbered events.
    fn streamed(&self) -> String {
        let mut text = String::from("use crate::streams::{Numbered, Streamed};\n");
        let mut responses = BTreeMap::new();
        for (path, method) in &self.methods {
            if !method.server_streaming() || method.client_streaming() {
                continue;
            }
            let request = self.messages[method.input_type()];
            let has = |name: &str| request.field.iter().any(|field| field.name() == name);
            let id = request
                .field
                .iter()
                .find(|field| field.name() == "request_id" && field.oneof_index.is_none());
            let mut body = String::new();
            if id.is_some() {
                body += "    fn identify(&mut self) {\n        if self.request_id.is_empty() {\n            \
                         self.request_id = crate::streams::new_request_id();\n        }\n    }\n";
            }
            if has("after_sequence") {
                body += "    fn position(&self) -> i64 {\n        self.after_sequence\n    }\n";
                let attempt = if has("attempt_id") { "attempt" } else { "_attempt" };
                write!(body, "    fn continue_after(&mut self, sequence: i64, {attempt}: &str) {{\n        self.after_sequence = sequence;\n").unwrap();
                if has("attempt_id") {
                    body += "        self.attempt_id = attempt.into();\n";
                }
                body += "    }\n";
            }
            let (request, response) = (rust_path(method.input_type()), rust_path(method.output_type()));
            let service = path.trim_start_matches('/').split('/').next().unwrap().rsplit('.').next().unwrap();
            let accessor = match service {
                "AgentService" => "agents",
                "ApprovalService" => "approvals",
                "GatewayService" => "gateway",
                "PolicyService" => "policies",
                "ScenarioService" => "scenarios",
                "SessionService" => "sessions",
                "TestGenService" => "tests",
                other => panic!("{other}: add its accessor"),
            };
            write!(
                text,
                "\nimpl Streamed for {request} {{\n    type Response = {response};\n{body}    \
                 async fn send(self, client: &crate::Client) -> Result<tonic::Streaming<Self::Response>, tonic::Status> {{\n        \
                 client.{accessor}().{}(self).await.map(tonic::Response::into_inner)\n    }}\n}}\n",
                snake(method.name())
            )
            .unwrap();
            responses.insert(response, self.messages[method.output_type()]);
        }
        for (path, message) in responses {
            let field = |name: &str| message.field.iter().find(|field| field.name() == name);
            let body = if let Some(event) = field("event") {
                let is_turn = event.type_name().ends_with(".TurnEvent");
                let attempt = if is_turn { "crate::streams::attempt_of(event)" } else { "None" };
                format!("        self.event.as_ref().map(|event| (event.sequence, {attempt}))\n")
            } else if field("turn_event").is_some() {
                "        crate::streams::watched(self)\n".into()
            } else {
                "        Some((self.sequence, None))\n".into()
            };
            write!(text, "\nimpl Numbered for {path} {{\n    fn number(&self) -> Option<(i64, Option<&str>)> {{\n{body}    }}\n").unwrap();
            if field("turn_event").is_some() {
                text +=
                    "    fn lost(&self) -> Option<&str> {\n        crate::streams::lost_watch(self)\n    }\n";
            }
            if field("event").is_some_and(|event| event.type_name().ends_with(".TurnEvent")) {
                text += "    fn is_last(&self) -> bool {\n        self.event.as_ref().is_some_and(crate::streams::ends_turn)\n    }\n";
            }
            text += "}\n";
        }
        text
    }
}

/// `.peripety.api.session.v1.Session` as a path within the module `api`.
fn rust_path(name: &str) -> String {
    format!("super{}", name.trim_start_matches(".peripety.api").split('.').collect::<Vec<_>>().join("::"))
}

fn snake(name: &str) -> String {
    let mut text = String::new();
    for (index, letter) in name.chars().enumerate() {
        if letter.is_uppercase() && index > 0 {
            text.push('_');
        }
        text.extend(letter.to_lowercase());
    }
    text
}
