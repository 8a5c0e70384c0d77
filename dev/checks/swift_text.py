"""Swift source seen as code, as text in quotes, and as comments: three views of the same length, so that lines agree."""
import re

STRING_START = re.compile(r'(#*)("""|")')


class SwiftText:
    def __init__(self, text):
        self.text = text
        self.code = [" "] * len(text)
        self.quoted = [" "] * len(text)
        self.comments = [" "] * len(text)
        for at, character in enumerate(text):
            if character == "\n":
                self.code[at] = self.quoted[at] = self.comments[at] = "\n"
        self._read_code(0, None)
        self.code, self.quoted, self.comments = "".join(self.code), "".join(self.quoted), "".join(self.comments)

    def _keep(self, view, start, end):
        view[start:end] = self.text[start:end]

    def _read_code(self, at, until):
        """Reads code from `at`; inside an interpolation `until` is ")" and brackets are counted."""
        text, depth = self.text, 0
        while at < len(text):
            if text.startswith("//", at):
                end = text.find("\n", at)
                end = len(text) if end < 0 else end
                self._keep(self.comments, at, end)
                at = end
            elif text.startswith("/*", at):
                end = self._comment_end(at)
                self._keep(self.comments, at, end)
                at = end
            else:
                start = STRING_START.match(text, at)
                if start:
                    at = self._read_string(start)
                    continue
                if until == ")":
                    if text[at] == "(":
                        depth += 1
                    elif text[at] == ")":
                        if depth == 0:
                            return at
                        depth -= 1
                self.code[at] = text[at]
                at += 1
        return at

    def _comment_end(self, at):
        depth, text = 0, self.text
        while at < len(text):
            if text.startswith("/*", at):
                depth, at = depth + 1, at + 2
            elif text.startswith("*/", at):
                depth, at = depth - 1, at + 2
                if depth == 0:
                    return at
            else:
                at += 1
        return at

    def _read_string(self, start):
        text, hashes, quotes = self.text, start.group(1), start.group(2)
        end, escape = quotes + hashes, "\\" + hashes
        at = start.end()
        while at < len(text):
            if text.startswith(end, at):
                return at + len(end)
            if quotes == '"' and text[at] == "\n":
                return at  # not valid Swift: the compiler says so, we only go on
            if text.startswith(escape, at):
                if text.startswith("(", at + len(escape)):
                    at = self._read_code(at + len(escape) + 1, ")") + 1
                else:
                    self._keep(self.quoted, at, at + len(escape) + 1)
                    at += len(escape) + 1
                continue
            self.quoted[at] = text[at]
            at += 1
        return at


def line_of(text, at):
    return text.count("\n", 0, at) + 1
