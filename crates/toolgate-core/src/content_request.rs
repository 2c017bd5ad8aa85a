//! [`ContentRequest`]: a request to read, get or complete something, and the call that does it.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::linked_uris::rewrite_result_uris;
use crate::text::{escape, nearest_names};
use crate::{
    CallContext, ContentMethod, ContentSet, ContentSource, ExecutionRules, Scope, Tool, ToolCall,
    ToolDefinition, ToolError, ToolExecutor, ToolFuture, ToolOutcome, ToolSource, ValidArguments,
};

/// A content request, resolved to the source that will answer it.
pub struct ContentRequest {
    method: ContentMethod,
    content: Arc<ContentSet>,
    // `None` if nobody offers it to this caller.
    owner: Option<ContentSource>,
    // The parameters as the owner knows them.
    arguments: Value,
    // The name or the URI as the caller wrote it.
    wanted: String,
    scope: Scope,
    rules: Arc<ExecutionRules>,
}

impl ToolExecutor {
    /// Finds what the parameters of an MCP request ask for. Returns `None` if they don't have the
    /// form of the method.
    pub fn find_content(
        &self,
        method: ContentMethod,
        params: &Map<String, Value>,
        scope: &Scope,
    ) -> Option<ContentRequest> {
        let wanted = requested_address(method, params)?.to_owned();
        let content = self.manager().content();
        let rules = self.rules();
        let used = match method {
            // Completion comes with what it completes.
            ContentMethod::Complete if params["ref"]["type"] == "ref/prompt" => {
                ContentMethod::GetPrompt
            }
            ContentMethod::Complete => ContentMethod::ReadResource,
            method => method,
        };
        let found = owner_of(&content, used, &wanted);
        let found = found.filter(|(owner, _)| owner.is_offered(used, &rules, scope));
        let own = found.as_ref().map_or(&wanted, |(_, own)| own);
        let arguments = own_arguments(method, params, own);
        Some(ContentRequest {
            method,
            owner: found.map(|(owner, _)| owner.clone()),
            content,
            arguments,
            wanted,
            scope: scope.clone(),
            rules,
        })
    }

    pub(crate) fn extension_request(
        &self,
        owner: ContentSource,
        method: &str,
        arguments: Value,
        scope: &Scope,
    ) -> ContentRequest {
        ContentRequest {
            method: ContentMethod::CallExtension,
            content: self.manager().content(),
            owner: Some(owner),
            arguments,
            wanted: method.to_owned(),
            scope: scope.clone(),
            rules: self.rules(),
        }
    }

    /// Finds the resource at an address, as lists of resources show it.
    pub fn find_resource(&self, uri: &str, scope: &Scope) -> ContentRequest {
        let params = Map::from_iter([("uri".to_owned(), json!(uri))]);
        self.find_own(ContentMethod::ReadResource, params, uri, scope)
    }

    /// Finds a prompt by the name it is listed under. Arguments of prompts are strings.
    pub fn find_prompt(
        &self,
        name: &str,
        arguments: Map<String, Value>,
        scope: &Scope,
    ) -> ContentRequest {
        let mut params = Map::from_iter([("name".to_owned(), json!(name))]);
        if !arguments.is_empty() {
            params.insert("arguments".to_owned(), Value::Object(arguments));
        }
        self.find_own(ContentMethod::GetPrompt, params, name, scope)
    }

    fn find_own(
        &self,
        method: ContentMethod,
        params: Map<String, Value>,
        wanted: &str,
        scope: &Scope,
    ) -> ContentRequest {
        let found = self.find_content(method, &params, scope);
        found.unwrap_or_else(|| ContentRequest {
            method,
            content: self.manager().content(),
            owner: None,
            arguments: Value::Object(params),
            wanted: wanted.to_owned(),
            scope: scope.clone(),
            rules: self.rules(),
        })
    }
}

impl ContentRequest {
    pub fn method(&self) -> ContentMethod {
        self.method
    }

    /// Who offers it to the caller. `None` if nobody does.
    pub fn owner(&self) -> Option<&ContentSource> {
        self.owner.as_ref()
    }

    /// The name or the URI as the caller wrote it.
    pub fn requested(&self) -> &str {
        &self.wanted
    }

    /// Up to three addresses or names of what the caller may use, most similar first.
    pub fn nearest(&self) -> Vec<String> {
        let (content, rules) = (&self.content, &*self.rules);
        let (offered, key): (Vec<_>, _) = match self.method {
            ContentMethod::GetPrompt => {
                let prompts = content.offered_prompts(rules, &self.scope);
                (prompts.collect(), "name")
            }
            ContentMethod::GetSkill => {
                let skills = content.offered_skills(rules, &self.scope);
                (skills.collect(), "uri")
            }
            ContentMethod::CallExtension => return Vec::new(),
            ContentMethod::ReadResource
            | ContentMethod::ReadDirectory
            | ContentMethod::Complete => {
                let resources = content.offered_resources(rules, &self.scope);
                (resources.collect(), "uri")
            }
        };
        let known = offered.iter().filter_map(|it| it.entry[key].as_str());
        nearest_names(&self.wanted, known, 3)
    }

    /// The parameters as the owner knows them.
    pub fn arguments(&self) -> &Value {
        &self.arguments
    }

    /// The call, under the caller's scope. If nobody offers the content, the call fails, so that
    /// the request is still recorded.
    pub fn to_call(&self) -> ToolCall {
        let access = self.owner.as_ref().map(|owner| &owner.content.access);
        let tool = access.and_then(|access| access.tool(self.method).cloned());
        let call = ToolCall::new(self.method.as_str(), self.arguments.clone());
        let call = call.scope(self.scope.clone());
        match tool.or_else(|| MissingContent::tool(self)) {
            Some(tool) => call.resolved_tool(tool),
            None => call,
        }
    }

    /// Completes the outcome of the [call](Self::to_call): replaces the server's URIs by the
    /// addresses under which the caller finds them.
    pub fn finish(&self, outcome: &mut ToolOutcome) {
        let Some(owner) = &self.owner else {
            if outcome.result.is_err() {
                outcome.result = Err(self.missing_error());
            }
            return;
        };
        let Ok(output) = &mut outcome.result else {
            return;
        };
        // What an extension's result means is unknown here, so it stays as it is.
        if self.method == ContentMethod::CallExtension || output.is_extension_result {
            return;
        }
        if let Some(result) = &mut output.structured {
            rewrite_result_uris(result, &self.content, &owner.source);
            self.restore_asked_uri(result, owner);
        }
    }

    /// A server answers with the URI it was asked for, and so do we, however the caller wrote it.
    fn restore_asked_uri(&self, result: &mut Value, owner: &ContentSource) {
        let Some(own) = self.arguments["uri"].as_str() else {
            return;
        };
        let offered = self.content.linked_uri(&owner.source, own);
        let contents = result.get_mut("contents").and_then(Value::as_array_mut);
        for item in contents.into_iter().flatten() {
            if item["uri"] == *offered {
                item["uri"] = json!(self.wanted);
            }
        }
        if result["skill"]["uri"] == *offered {
            result["skill"]["uri"] = json!(self.wanted);
        }
    }

    /// The error if nobody offers the content.
    pub fn missing_error(&self) -> ToolError {
        missing_error(self.method, &self.wanted)
    }
}

fn missing_error(method: ContentMethod, wanted: &str) -> ToolError {
    let wanted = escape(wanted);
    ToolError::failed(match method {
        ContentMethod::ReadResource => format!("No server offers the resource '{wanted}'"),
        ContentMethod::GetPrompt => format!("No server offers the prompt '{wanted}'"),
        ContentMethod::Complete => format!("No server completes arguments of '{wanted}'"),
        ContentMethod::GetSkill => format!("No server offers the skill '{wanted}'"),
        ContentMethod::ReadDirectory => format!("No server offers the folder '{wanted}'"),
        ContentMethod::CallExtension => format!("No server has an extension with '{wanted}'"),
    })
}

/// The URI or the name in the parameters, if they have the form of the method.
fn requested_address(method: ContentMethod, params: &Map<String, Value>) -> Option<&str> {
    match method {
        ContentMethod::ReadResource | ContentMethod::GetSkill | ContentMethod::ReadDirectory => {
            params.get("uri")?.as_str()
        }
        ContentMethod::CallExtension => params.get("method")?.as_str(),
        ContentMethod::GetPrompt => params.get("name")?.as_str(),
        ContentMethod::Complete => {
            let reference = params.get("ref")?;
            let has_argument = params.get("argument")?["name"].is_string();
            let name = reference[reference_key(reference)].as_str();
            name.filter(|_| has_argument)
        }
    }
}

fn reference_key(reference: &Value) -> &'static str {
    match reference["type"].as_str() {
        Some("ref/prompt") => "name",
        _ => "uri",
    }
}

/// Who offers what is wanted, and its name or URI there.
fn owner_of<'a>(
    content: &'a ContentSet,
    used: ContentMethod,
    wanted: &str,
) -> Option<(&'a ContentSource, String)> {
    if used == ContentMethod::GetPrompt {
        let prompt = content.find_prompt(wanted)?;
        return Some((prompt.owner, prompt.entry["name"].as_str()?.to_owned()));
    }
    let (owner, own) = content.resolve(wanted)?;
    Some((owner, own.into_owned()))
}

fn own_arguments(method: ContentMethod, params: &Map<String, Value>, own: &str) -> Value {
    match method {
        ContentMethod::ReadResource | ContentMethod::GetSkill => json!({ "uri": own }),
        ContentMethod::ReadDirectory => {
            let mut all = json!({ "uri": own });
            if let Some(cursor) = params.get("cursor").filter(|cursor| cursor.is_string()) {
                all["cursor"] = cursor.clone();
            }
            all
        }
        ContentMethod::CallExtension => {
            let mut all = json!({ "method": own });
            if let Some(params) = params.get("params").filter(|params| !params.is_null()) {
                all["params"] = params.clone();
            }
            all
        }
        ContentMethod::GetPrompt => {
            let mut all = json!({ "name": own });
            if let Some(arguments) = params.get("arguments").filter(|given| !given.is_null()) {
                all["arguments"] = arguments.clone();
            }
            all
        }
        ContentMethod::Complete => {
            let mut all = params.clone();
            all.retain(|key, _| ["ref", "argument", "context"].contains(&&**key));
            let key = reference_key(&params["ref"]);
            all["ref"][key] = json!(own);
            Value::Object(all)
        }
    }
}

/// Stands in for content that nobody offers, so that the request is still on record.
struct MissingContent {
    definition: ToolDefinition,
    method: ContentMethod,
    wanted: String,
}

impl MissingContent {
    fn tool(request: &ContentRequest) -> Option<Arc<dyn Tool>> {
        let definition = request.method.definition(ToolSource::Internal);
        Some(Arc::new(Self {
            // Can't fail: name and schema are ours.
            definition: definition.build().ok()?,
            method: request.method,
            wanted: request.wanted.clone(),
        }))
    }
}

impl Tool for MissingContent {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn invoke<'a>(&'a self, _: ValidArguments, _: &'a CallContext) -> ToolFuture<'a> {
        let error = missing_error(self.method, &self.wanted);
        Box::pin(async move { Err(error) })
    }
}

#[cfg(test)]
mod tests;
