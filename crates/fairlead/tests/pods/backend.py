"""A backend of the documentation's examples: says at every port which application it is, and which port that was; at /name who it is."""
import http.server, socket, sys, threading


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        port = self.server.server_address[1]
        body = f"{socket.gethostname()}\n" if self.path == "/name" else f"{sys.argv[1]}:{port}\n"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_):
        pass


servers = [http.server.ThreadingHTTPServer(("", int(port)), Handler) for port in sys.argv[2:]]
threads = [threading.Thread(target=server.serve_forever) for server in servers]
[thread.start() for thread in threads]
