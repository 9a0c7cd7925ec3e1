//! How a command ended, in the words clients read exit codes from. Pure.

use serde_json::json;

use crate::host::Exit;

/// A Status, or for protocols that have none the error alone.
pub(crate) fn of(exit: &Exit, tells: bool) -> String {
    match (exit, tells) {
        (Exit::Code(0), true) => json!({"metadata": {}, "status": "Success"}).to_string(),
        (Exit::Code(code), true) => json!({
            "metadata": {},
            "status": "Failure",
            "message": format!("command terminated with non-zero exit code: exit status {code}"),
            "reason": "NonZeroExitCode",
            "details": {"causes": [{"reason": "ExitCode", "message": code.to_string()}]},
        })
        .to_string(),
        (Exit::Failed(why), true) => json!({
            "metadata": {},
            "status": "Failure",
            "message": format!("Internal error occurred: {why}"),
            "reason": "InternalError",
            "details": {"causes": [{"message": why}]},
            "code": 500,
        })
        .to_string(),
        (Exit::Code(0), false) => String::new(),
        (Exit::Code(code), false) => format!("command terminated with non-zero exit code: exit status {code}"),
        (Exit::Failed(why), false) => why.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exit_code_is_where_clients_look_for_it() {
        let status: serde_json::Value = serde_json::from_str(&of(&Exit::Code(3), true)).expect("a Status");
        assert_eq!(status["reason"], "NonZeroExitCode");
        assert_eq!(status["details"]["causes"][0], json!({"reason": "ExitCode", "message": "3"}));
        assert_eq!(of(&Exit::Code(0), true), r#"{"metadata":{},"status":"Success"}"#);
        assert_eq!(of(&Exit::Code(0), false), "");
    }
}
