//! Which form an answer takes: the media type and shape that `Accept` asks for, and whether it is indented.

use fairlead_api::Failure;
use http::HeaderMap;
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, USER_AGENT};

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Form {
    pub(crate) media: Media,
    pub(crate) shape: Shape,
    /// Indented, for people.
    pub(crate) pretty: bool,
    /// The client reads gzip.
    pub(crate) gzip: bool,
}

/// The encoding of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub(crate) enum Media {
    Json,
    Yaml,
    Protobuf,
}

/// Whole objects, or a view of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Shape {
    /// As they are.
    Object,
    /// `as=Table`, with this version of meta.k8s.io.
    Table(&'static str),
    /// `as=PartialObjectMetadata`.
    Metadata(&'static str),
    /// `as=PartialObjectMetadataList`.
    MetadataList(&'static str),
}

/// What the request is for; decides which shapes and media there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// One object.
    Object,
    /// An answer that is no stored object: reviews, tokens, bindings, evictions. They have no
    /// columns.
    Review,
    /// A list.
    List,
    /// A stream of changes.
    Watch,
}

/// Finds the first form in `Accept` that we can give.
pub(crate) fn negotiate(headers: &HeaderMap, query_pretty: Option<&str>, asked: Asked) -> Result<Form, Failure> {
    let accept = text(headers, ACCEPT);
    let (media, shape) = choose(accept, asked).ok_or_else(|| not_acceptable(asked))?;
    Ok(Form {
        media,
        shape,
        pretty: pretty(headers, query_pretty),
        gzip: text(headers, ACCEPT_ENCODING).contains("gzip"),
    })
}

/// For answers that must be given whatever was asked for: errors.
pub(crate) fn fallback(headers: &HeaderMap, query_pretty: Option<&str>) -> Form {
    let media = match choose(text(headers, ACCEPT), Asked::Object) {
        Some((media, _)) => media,
        None => Media::Json,
    };
    Form { media, shape: Shape::Object, pretty: pretty(headers, query_pretty), gzip: false }
}

fn pretty(headers: &HeaderMap, query: Option<&str>) -> bool {
    match query {
        Some(value) => !matches!(value, "false" | "0"),
        None => {
            let agent = text(headers, USER_AGENT);
            agent.starts_with("curl") || agent.starts_with("Wget") || agent.starts_with("Mozilla/5.0")
        }
    }
}

fn choose(accept: &str, asked: Asked) -> Option<(Media, Shape)> {
    if accept.trim().is_empty() {
        return Some((Media::Json, Shape::Object));
    }
    let mut clauses: Vec<Clause<'_>> = accept.split(',').map(Clause::parse).collect();
    // A stable sort: equal weights keep the client's order.
    clauses.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    clauses.iter().find_map(|clause| clause.form(asked))
}

/// One alternative of an `Accept` header.
struct Clause<'a> {
    media: &'a str,
    weight: f32,
    r#as: &'a str,
    version: &'a str,
    group: &'a str,
}

impl<'a> Clause<'a> {
    fn parse(text: &'a str) -> Clause<'a> {
        let mut parts = text.split(';').map(str::trim);
        let mut clause =
            Clause { media: parts.next().unwrap_or_default(), weight: 1.0, r#as: "", version: "", group: "" };
        for part in parts {
            match part.split_once('=') {
                Some(("q", q)) => clause.weight = q.parse().unwrap_or(1.0),
                Some(("as", value)) => clause.r#as = value,
                Some(("v", value)) => clause.version = value,
                Some(("g", value)) => clause.group = value,
                _ => {}
            }
        }
        clause
    }

    fn form(&self, asked: Asked) -> Option<(Media, Shape)> {
        let media = match self.media {
            "application/json" | "*/*" => Media::Json,
            "application/yaml" if asked != Asked::Watch => Media::Yaml,
            "application/vnd.kubernetes.protobuf" => Media::Protobuf,
            _ => return None,
        };
        let shape = self.shape(asked)?;
        // Views are given as JSON only.
        match (media, shape) {
            (Media::Protobuf, Shape::Object) | (Media::Json | Media::Yaml, _) => Some((media, shape)),
            (Media::Protobuf, _) => None,
        }
    }

    fn shape(&self, asked: Asked) -> Option<Shape> {
        if self.r#as.is_empty() {
            return Some(Shape::Object);
        }
        let version = match (self.group, self.version) {
            ("meta.k8s.io", "v1") => "v1",
            ("meta.k8s.io", "v1beta1") => "v1beta1",
            _ => return None,
        };
        match (self.r#as, asked) {
            ("Table", Asked::Review) => None,
            ("Table", _) => Some(Shape::Table(version)),
            ("PartialObjectMetadata", Asked::Object | Asked::Review | Asked::Watch) => Some(Shape::Metadata(version)),
            ("PartialObjectMetadataList", Asked::List) => Some(Shape::MetadataList(version)),
            _ => None,
        }
    }
}

fn not_acceptable(asked: Asked) -> Failure {
    let streams = match asked {
        Asked::Object | Asked::Review => "",
        Asked::List | Asked::Watch => {
            ", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
        }
    };
    Failure::new(
        406,
        "NotAcceptable",
        format!(
            "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, \
             application/vnd.kubernetes.protobuf{streams}"
        ),
    )
}

/// The media type of a request body; JSON when it says nothing.
pub(crate) fn content_type(headers: &HeaderMap) -> &str {
    text(headers, CONTENT_TYPE).split(';').next().unwrap_or_default().trim()
}

/// A header as text, empty when absent or not text.
pub(crate) fn text(headers: &HeaderMap, name: http::HeaderName) -> &str {
    headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(accept: &str, asked: Asked, expected: Option<(Media, Shape)>) {
        assert_eq!(choose(accept, asked), expected, "{accept}");
    }

    #[test]
    fn the_first_form_we_have_is_chosen() {
        check("", Asked::Object, Some((Media::Json, Shape::Object)));
        check("*/*", Asked::Object, Some((Media::Json, Shape::Object)));
        check("application/*", Asked::Object, None);
        check("text/html, application/json;q=0.5", Asked::Object, Some((Media::Json, Shape::Object)));
        check("application/vnd.kubernetes.protobuf, */*", Asked::List, Some((Media::Protobuf, Shape::Object)));
        check("application/json;as=Table;v=v1;g=meta.k8s.io", Asked::List, Some((Media::Json, Shape::Table("v1"))));
        check(
            "application/json;as=Table;v=v9;g=meta.k8s.io,application/json",
            Asked::List,
            Some((Media::Json, Shape::Object)),
        );
        check("application/json;as=Table", Asked::List, None);
        check("application/json;as=Table;v=v1;g=meta.k8s.io", Asked::Review, None);
        check(
            "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
            Asked::Review,
            Some((Media::Json, Shape::Object)),
        );
        check("application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", Asked::List, None);
        check("application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", Asked::Object, None);
    }
}
