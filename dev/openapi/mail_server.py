"""A mail server that keeps what it gets, and a test waits for."""
import collections
import email
import queue
import socketserver
import threading

PATIENCE = 60


class Conversation(socketserver.StreamRequestHandler):
    def handle(self):
        recipient, answers = None, {b"DATA": "354 go on", b"QUIT": "221 bye"}
        self.say("220 localhost")
        for line in self.rfile:
            word = line[:4].upper().strip()
            if word == b"RCPT":
                recipient = line.split(b"<")[1].split(b">")[0].decode()
            self.say(answers.get(word, "250 localhost"))
            if word == b"DATA":
                text = b"".join(iter(self.rfile.readline, b".\r\n"))
                self.server.mails[recipient].put(email.message_from_bytes(text))
                self.say("250 kept")
            elif word == b"QUIT":
                return

    def say(self, text):
        self.wfile.write(f"{text}\r\n".encode())


class Mailbox(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True

    def __init__(self, port):
        super().__init__(("127.0.0.1", port), Conversation)
        self.mails = collections.defaultdict(queue.Queue)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def find(self, recipient, pattern):
        """Waits for a mail to this address, and returns what the pattern has found in its text."""
        while True:
            mail = self.mails[recipient].get(timeout=PATIENCE)
            part = next(part for part in mail.walk() if part.get_content_type() == "text/plain")
            found = pattern.search(part.get_payload(decode=True).decode())
            if found:
                return found[1]
