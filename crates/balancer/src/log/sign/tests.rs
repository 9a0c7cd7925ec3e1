use super::*;

const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

#[track_caller]
fn check(signer: &Signer<'_>, request: &Request<'_>, date: &str, expected: &str) {
    let found = signer.authorization(request, date);
    assert_eq!(found.rsplit('=').next(), Some(expected), "{found}");
}

/// The examples of AWS' documentation of S3.
#[test]
fn requests_are_signed_as_aws_signs_them() {
    let signer = Signer {
        access_key: "AKIAIOSFODNN7EXAMPLE",
        secret_key: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        region: "us-east-1",
        service: "s3",
    };
    let body = hash(b"Welcome to Amazon S3.");
    let path = encode("/test$file.text");
    let put = Request {
        method: "PUT",
        path: &path,
        query: "",
        headers: &[
            ("date", "Fri, 24 May 2013 00:00:00 GMT"),
            ("host", "examplebucket.s3.amazonaws.com"),
            ("x-amz-content-sha256", &body),
            ("x-amz-date", "20130524T000000Z"),
            ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
        ],
        body: &body,
    };
    check(&signer, &put, "20130524T000000Z", "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
    let get = Request {
        method: "GET",
        path: "/test.txt",
        query: "",
        headers: &[
            ("host", "examplebucket.s3.amazonaws.com"),
            ("range", "bytes=0-9"),
            ("x-amz-content-sha256", EMPTY),
            ("x-amz-date", "20130524T000000Z"),
        ],
        body: EMPTY,
    };
    check(&signer, &get, "20130524T000000Z", "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

/// `get-vanilla` of AWS' test suite for the signature.
#[test]
fn another_service_is_signed_alike() {
    let signer = Signer {
        access_key: "AKIDEXAMPLE",
        secret_key: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
        region: "us-east-1",
        service: "service",
    };
    let request = Request {
        method: "GET",
        path: "/",
        query: "",
        headers: &[("host", "example.amazonaws.com"), ("x-amz-date", "20150830T123600Z")],
        body: EMPTY,
    };
    check(&signer, &request, "20150830T123600Z", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
}

#[test]
fn dates_and_paths_are_written_as_signatures_want_them() {
    assert_eq!(date("2013-05-24T00:00:00Z".parse().expect("a time")), "20130524T000000Z");
    assert_eq!(encode("/a b/ü$:~._-"), "/a%20b/%C3%BC%24%3A~._-");
    assert_eq!(hash(b""), EMPTY);
}
