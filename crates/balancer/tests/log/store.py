"""An object store for the tests: takes PUTs of S3, and checks their signatures by its own reading of the rules.

store.py DIRECTORY ACCESS_KEY SECRET_KEY [CERTIFICATE KEY]: prints its port. While DIRECTORY/away exists it answers 503."""
import hashlib, hmac, http.server, os, re, ssl, sys

directory, access_key, secret_key = sys.argv[1:4]


def mac(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def signature(handler, body):
    found = re.fullmatch(
        r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/s3/aws4_request,\s*SignedHeaders=([^,]+),\s*Signature=([0-9a-f]{64})",
        handler.headers.get("authorization", ""))
    if not found or found[1] != access_key:
        return "no credential of ours"
    _, day, region, names, given = found.groups()
    if not {"host", "x-amz-content-sha256", "x-amz-date"} <= set(names.split(";")):
        return "a header is not signed"
    if handler.headers["x-amz-content-sha256"] != hashlib.sha256(body).hexdigest():
        return "another body"
    path, _, query = handler.path.partition("?")
    lines = [handler.command, path, query]
    lines += [f"{name}:{handler.headers[name].strip()}" for name in names.split(";")]
    lines += ["", names, handler.headers["x-amz-content-sha256"]]
    scope = f"{day}/{region}/s3/aws4_request"
    hashed = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    text = "\n".join(["AWS4-HMAC-SHA256", handler.headers["x-amz-date"], scope, hashed])
    key = ("AWS4" + secret_key).encode()
    for part in [day, region, "s3", "aws4_request"]:
        key = mac(key, part)
    return None if hmac.compare_digest(mac(key, text).hex(), given) else "another signature"


class Store(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_PUT(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        wrong = signature(self, body)
        if os.path.exists(os.path.join(directory, "away")):
            return self.answer(503, "SlowDown")
        if wrong:
            return self.answer(403, "SignatureDoesNotMatch: " + wrong)
        path = os.path.join(directory, "kept", self.path.lstrip("/"))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path + ".new", "wb") as file:
            file.write(body)
        os.rename(path + ".new", path)
        self.answer(200, "")

    def answer(self, code, text):
        self.send_response(code)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Store)
if len(sys.argv) > 5:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[4], sys.argv[5])
    server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_address[1], flush=True)
server.serve_forever()
