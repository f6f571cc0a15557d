"""HTTP over a plain socket: nothing is corrected on the way, so that the server sees exactly the bytes that a test says."""
import json
import socket
import time


class Answer:
    def __init__(self, head: bytes, body: bytes):
        lines = head.split(b"\r\n")
        self.status = int(lines[0].split()[1])
        self.headers = [(n.strip().decode().lower(), v.strip().decode("latin-1")) for n, _, v in (l.partition(b":") for l in lines[1:])]
        self.body = body

    def header(self, name):
        return next((v for n, v in self.headers if n == name), None)

    @property
    def json(self):
        return json.loads(self.body)

    def problem(self):
        """The reason and the pointers of a problem document."""
        document = self.json if self.header("content-type") == "application/problem+json" else {}
        return document.get("reason", ""), [e["pointer"] for e in document.get("errors", [])]

    def __repr__(self):
        return f"{self.status} {self.body[:300]!r}"


def take_answer(data: bytes):
    """The first whole answer in data and what follows it; None where it is not whole yet."""
    head, found, rest = data.partition(b"\r\n\r\n")
    if not found:
        return None
    answer = Answer(head, b"")
    if answer.header("transfer-encoding") == "chunked":
        while True:
            size, found, rest = rest.partition(b"\r\n")
            length = int(size, 16) if found else 0
            if not found or len(rest) < length + 2:
                return None
            answer.body, rest = answer.body + rest[:length], rest[length + 2:]
            if length == 0:
                return answer, rest
    length = int(answer.header("content-length") or 0)
    if answer.status in (100, 204, 304):
        length = 0
    if len(rest) < length:
        return None
    answer.body = rest[:length]
    return answer, rest[length:]


class Connection:
    def __init__(self, address, timeout=20, wrap=None):
        self.socket = socket.create_connection(address, timeout=timeout)
        if wrap:
            self.socket = wrap(self.socket)
        self.data = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data: bytes):
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass  # a server that has refused may have closed already; its answer is still to be read

    def half_close(self):
        try:
            self.socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # closed already

    def answer(self):
        """The next answer, or None where the server closes first."""
        end = time.monotonic() + 60
        while not (taken := take_answer(self.data)):
            if time.monotonic() > end:
                raise AssertionError(f"no whole answer in a minute: {self.data[:300]!r}")
            try:
                piece = self.socket.recv(65536)
            except ConnectionResetError:
                piece = b""
            if not piece:
                return None
            self.data += piece
        answer, self.data = taken
        return answer

    def answers(self):
        """Every answer until the server closes."""
        out = []
        while answer := self.answer():
            out.append(answer)
        return out


def ask(address, data: bytes):
    """One request, one answer."""
    with Connection(address) as c:
        c.send(data)
        return c.answer()
