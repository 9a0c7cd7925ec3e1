//! Fixed tokens from `--token-auth-file`: lines of `token,user,uid,"group1,group2"`.

use std::collections::HashMap;

use ring::hmac;
use ring::rand::SystemRandom;
use thiserror::Error;

use super::User;

/// Tokens and whose they are. Tokens are kept and looked up by a keyed digest, so how long a lookup takes says nothing
/// about them.
#[derive(Default)]
pub struct TokenFile {
    key: Option<hmac::Key>,
    users: HashMap<[u8; 32], User>,
}

/// A line that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Error {
    /// Too few columns.
    #[error("line {line}: token, user name and user uid are needed, found {found} columns")]
    Columns {
        /// Which line.
        line: usize,
        /// How many columns it has.
        found: usize,
    },
    /// An empty token would let everybody in.
    #[error("line {0}: the token is empty")]
    Empty(usize),
    /// A quoted column that does not end.
    #[error("line {0}: a quoted column does not end")]
    Quote(usize),
    /// The system has no random numbers.
    #[error("no random numbers")]
    Random,
}

impl TokenFile {
    /// Reads the text of a file. Empty lines and lines that begin with `#` are passed over.
    pub fn parse(text: &str) -> Result<TokenFile, Error> {
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new()).map_err(|_| Error::Random)?;
        let mut users = HashMap::new();
        for (number, line) in text.lines().enumerate().map(|(i, line)| (i + 1, line.trim())) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let columns = columns(line).ok_or(Error::Quote(number))?;
            let [token, name, uid, rest @ ..] = columns.as_slice() else {
                return Err(Error::Columns { line: number, found: columns.len() });
            };
            if token.is_empty() {
                return Err(Error::Empty(number));
            }
            let groups = rest.first().map(String::as_str).unwrap_or_default().split(',').map(str::trim);
            let groups = groups.filter(|group| !group.is_empty()).map(str::to_owned).collect();
            let user = User { name: name.clone(), uid: uid.clone(), groups, ..User::default() };
            users.insert(digest(&key, token), user);
        }
        Ok(TokenFile { key: Some(key), users })
    }

    /// Whose token it is.
    pub fn user(&self, token: &str) -> Option<&User> {
        self.users.get(&digest(self.key.as_ref()?, token))
    }
}

impl std::fmt::Debug for TokenFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TokenFile({} tokens)", self.users.len())
    }
}

fn digest(key: &hmac::Key, token: &str) -> [u8; 32] {
    let tag = hmac::sign(key, token.as_bytes());
    tag.as_ref().try_into().expect("SHA-256 has 32 bytes")
}

/// The columns of a CSV line; `""` within quotes is a quote. `None` when a quoted column does not end.
fn columns(line: &str) -> Option<Vec<String>> {
    let (mut columns, mut column, mut quoted) = (Vec::new(), String::new(), false);
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '"' if quoted && rest.peek() == Some(&'"') => column.extend(rest.next()),
            '"' if quoted => quoted = false,
            '"' if column.trim().is_empty() => {
                column.clear();
                quoted = true;
            }
            ',' if !quoted => columns.push(std::mem::take(&mut column).trim().to_owned()),
            c => column.push(c),
        }
    }
    columns.push(column.trim().to_owned());
    (!quoted).then_some(columns)
}
