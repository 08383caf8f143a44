//! Detects jobs of a build server for an author without write access: a pull request from a fork.
//!
//! In: the variables that GitHub and GitLab document. Out: a reason. A pull request that does not
//! say where it comes from is treated as one from a fork.

use serde::Deserialize;
use std::fs::File;
use std::io::BufReader;

const GITHUB: &str = "this is a job for a pull request from a fork (GitHub)";
const GITLAB: &str = "this is a job for a merge request from a fork (GitLab)";

/// What is needed of the file that GitHub describes an event in.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Event {
    pull_request: PullRequest,
    workflow_run: WorkflowRun,
    repository: Repository,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PullRequest {
    head: Head,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Head {
    /// None if the fork is gone.
    repo: Option<Repository>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WorkflowRun {
    head_repository: Option<Repository>,
}

#[derive(Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Repository {
    full_name: String,
}

/// Why the job that this process belongs to is not to be trusted.
pub fn job() -> Option<&'static str> {
    of(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
}

fn of(variable: impl Fn(&str) -> Option<String>) -> Option<&'static str> {
    if variable("GITHUB_ACTIONS").is_some() {
        return is_foreign_on_github(&variable).then_some(GITHUB);
    }
    variable("GITLAB_CI").is_some_and(|_| is_foreign_on_gitlab(&variable)).then_some(GITLAB)
}

fn is_foreign_on_github(variable: &impl Fn(&str) -> Option<String>) -> bool {
    let name = variable("GITHUB_EVENT_NAME").unwrap_or_default();
    if !name.starts_with("pull_request") && name != "workflow_run" {
        return false;
    }
    let file = variable("GITHUB_EVENT_PATH").and_then(|path| File::open(path).ok());
    let event: Event = file
        .and_then(|file| serde_json::from_reader(BufReader::new(file)).ok())
        .unwrap_or_default();
    let from = if name == "workflow_run" {
        event.workflow_run.head_repository
    } else {
        event.pull_request.head.repo
    };
    from.is_none_or(|from| from.full_name.is_empty() || from != event.repository)
}

fn is_foreign_on_gitlab(variable: &impl Fn(&str) -> Option<String>) -> bool {
    let pairs = [
        ("CI_MERGE_REQUEST_SOURCE_PROJECT_PATH", "CI_MERGE_REQUEST_PROJECT_PATH"),
        (
            "CI_EXTERNAL_PULL_REQUEST_SOURCE_REPOSITORY",
            "CI_EXTERNAL_PULL_REQUEST_TARGET_REPOSITORY",
        ),
    ];
    let is_request = ["CI_MERGE_REQUEST_IID", "CI_EXTERNAL_PULL_REQUEST_IID"]
        .iter()
        .any(|name| variable(name).is_some());
    let is_own =
        |(from, to): &(&str, &str)| variable(from).is_some_and(|from| variable(to) == Some(from));
    is_request && !pairs.iter().any(is_own)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(variables: &[(&str, &str)]) -> bool {
        of(|name| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| value.to_string())
        })
        .is_some()
    }

    #[test]
    fn github() {
        let folder = tempfile::tempdir().unwrap();
        let job = |name: &str, event: &str| {
            let path = folder.path().join("event.json");
            std::fs::write(&path, event).unwrap();
            let path = path.to_str().unwrap();
            job(&[
                ("GITHUB_ACTIONS", "true"),
                ("GITHUB_EVENT_NAME", name),
                ("GITHUB_EVENT_PATH", path),
            ])
        };
        let pull = |from: &str| {
            format!(
                r#"{{"pull_request":{{"head":{{"repo":{from}}}}},"repository":{{"full_name":"a/b","x":[1]}}}}"#
            )
        };
        assert!(!job("push", "{}"));
        assert!(!job("pull_request", &pull(r#"{"full_name":"a/b"}"#)));
        assert!(job("pull_request", &pull(r#"{"full_name":"c/b"}"#)));
        assert!(job("pull_request_target", &pull(r#"{"full_name":"c/b"}"#)));
        assert!(job("pull_request", &pull("null")), "the fork is gone");
        assert!(job("pull_request", "nonsense") && job("pull_request", "{}"));
        let run = |from: &str| {
            format!(
                r#"{{"workflow_run":{{"head_repository":{{"full_name":"{from}"}}}},"repository":{{"full_name":"a/b"}}}}"#
            )
        };
        assert!(!job("workflow_run", &run("a/b")) && job("workflow_run", &run("c/b")));
    }

    #[test]
    fn gitlab() {
        let request = [
            ("GITLAB_CI", "true"),
            ("CI_MERGE_REQUEST_IID", "1"),
            ("CI_MERGE_REQUEST_PROJECT_PATH", "a/b"),
        ];
        let from =
            |path| [request.as_slice(), &[("CI_MERGE_REQUEST_SOURCE_PROJECT_PATH", path)]].concat();
        assert!(!job(&[("GITLAB_CI", "true")]) && !job(&from("a/b")));
        assert!(job(&from("c/b")) && job(&request));
        assert!(!job(&[]));
    }
}
