//! The user of an image: a name or a number, perhaps with a group, read by the image's own lists of
//! users and groups. Pure.

#[cfg(test)]
mod tests;

/// A user with its groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ImageUser {
    pub(crate) user: u32,
    pub(crate) group: u32,
    /// Further groups of the user.
    pub(crate) groups: Vec<u32>,
}

/// The image's `/etc/passwd` and `/etc/group`; empty where it has none.
#[derive(Debug, Clone, Default)]
pub(crate) struct Accounts {
    pub(crate) passwd: String,
    pub(crate) group: String,
}

impl Accounts {
    /// Returns the user that `USER`, `UID`, `USER:GROUP` or `UID:GID` means. Without a group it is
    /// that of the user, or 0 for a number that the image does not know, as with other run times
    /// (moby, daemon/oci_linux.go, getUser).
    pub(crate) fn user(&self, text: &str) -> Result<ImageUser, String> {
        let (user, group) = match text.split_once(':') {
            Some((user, group)) => (user, Some(group)),
            None => (text, None),
        };
        let number = user.parse::<u32>().ok();
        let known =
            self.passwd_lines().find(|line| line[0] == user || number.is_some() && line[2].parse().ok() == number);
        let id = known.as_ref().and_then(|line| line[2].parse().ok()).or(number);
        let id = id.ok_or_else(|| format!("the image has no user {user:?} in its /etc/passwd"))?;
        let own = known.as_ref().and_then(|line| line[3].parse().ok()).unwrap_or(0);
        let group = match group {
            None => own,
            Some(group) => self.group_number(group)?,
        };
        // A group that is said replaces all of the user's.
        let groups = match (&known, text.contains(':')) {
            (Some(line), false) => self.groups_of(line[0], group),
            _ => Vec::new(),
        };
        Ok(ImageUser { user: id, group, groups })
    }

    /// Returns the home of a user, if the image knows it.
    pub(crate) fn home(&self, user: u32) -> Option<String> {
        let mut known = self.passwd_lines().filter(|line| line[2].parse() == Ok(user));
        known.find_map(|line| line.get(5).filter(|home| !home.is_empty()).map(|home| (*home).to_owned()))
    }

    fn group_number(&self, group: &str) -> Result<u32, String> {
        if let Ok(number) = group.parse() {
            return Ok(number);
        }
        let mut known = self.group_lines().filter(|line| line[0] == group);
        let number = known.find_map(|line| line[2].parse().ok());
        number.ok_or_else(|| format!("the image has no group {group:?} in its /etc/group"))
    }

    fn groups_of(&self, user: &str, main: u32) -> Vec<u32> {
        let member = |line: &Vec<&str>| line.get(3).is_some_and(|members| members.split(',').any(|name| name == user));
        let numbers = self.group_lines().filter(member).filter_map(|line| line[2].parse().ok());
        numbers.filter(|group| *group != main).collect()
    }

    /// The fields of each line that has a number.
    fn passwd_lines(&self) -> impl Iterator<Item = Vec<&str>> {
        self.passwd.lines().map(|line| line.split(':').collect::<Vec<_>>()).filter(|fields| fields.len() >= 4)
    }

    fn group_lines(&self) -> impl Iterator<Item = Vec<&str>> {
        self.group.lines().map(|line| line.split(':').collect::<Vec<_>>()).filter(|fields| fields.len() >= 3)
    }
}
