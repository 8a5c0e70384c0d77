"""The rules for Markdown: the index, headings, links, paths, widths, and messages of the program that a page quotes."""
import os
import posixpath
import re
from rules import read, rule

INDEX = "docs/README.md"
MESSAGES = "docs/operators/troubleshooting.md"
WIDTH, CELL = 100, 200


class Page:
    """The lines of a page outside of its code blocks, with their numbers, and what they hold."""

    def __init__(self, text):
        self.lines, fence = [], None
        for number, line in enumerate(text.split("\n"), 1):
            mark = re.match(r"\s*(```+|~~~+)", line)
            if mark and fence is None:
                fence = mark.group(1)
            elif mark and line.strip() == fence:
                fence = None
            elif fence is None:
                self.lines.append((number, line))
        self.titles = [number for number, line in self.lines if line.startswith("# ")]
        self.anchors = {anchor(line.lstrip("#").strip()) for _, line in self.lines if re.match(r"#+ ", line)}

    def links(self):
        """Every link of the page: its line and its target."""
        for number, line in self.lines:
            for match in re.finditer(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", line)):
                yield number, match.group(1)


def anchor(heading):
    """The anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def pages(project):
    """All Markdown files, read once."""
    if not hasattr(project, "markdown"):
        project.markdown = {
            path: Page(read(project.root, path)) for path in project.files if path.endswith(".md")}
    return project.markdown


def target(path, link):
    """The file and the anchor that a link of this page names; None for links to other hosts."""
    if re.match(r"[a-z]+:", link):
        return None
    file, _, fragment = link.partition("#")
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), file)) if file else path, fragment


@rule
def index(project):
    markdown = pages(project)
    for path, page in markdown.items():
        if len(page.titles) != 1:
            yield path, 1, f"has {len(page.titles)} headings of level 1: a page has one"
    if INDEX not in markdown:
        yield INDEX, 1, "is missing: it is the index of all pages under docs/"
        return
    listed = {}
    for number, link in markdown[INDEX].links():
        named = target(INDEX, link)
        if named:
            listed.setdefault(named[0], []).append(number)
    for path in markdown:
        if path.startswith("docs/") and path != INDEX:
            count = len(listed.get(path, []))
            if count != 1:
                yield INDEX, 1, f"links {path} {count} times: give each page one line"


@rule
def links(project):
    markdown = pages(project)
    for path, page in markdown.items():
        for number, link in page.links():
            named = target(path, link)
            if named is None:
                continue
            file, fragment = named
            if not os.path.exists(os.path.join(project.root, file)):
                yield path, number, f"links {link}, and there is no {file}"
            elif fragment and file in markdown and fragment not in markdown[file].anchors:
                yield path, number, f"links {link}, and {file} has no such heading"


@rule
def paths(project):
    """Paths of this repository that a page or a Swift file names."""
    # A part in capitals, a pattern or an ellipsis stands for several files.
    named = re.compile(r"(?<![\w/.-])(?:Sources|Tests|docs|dev|deploy|Benchmarks)/[\w./-]*\w")
    texts = [(path, number, line) for path, page in pages(project).items() for number, line in page.lines]
    texts += [
        (path, number, line) for path, swift in project.swift.items() if "docs/" in swift.text
        for number, line in enumerate(swift.text.split("\n"), 1) if re.search(r"docs/\w", line)]
    for path, number, line in texts:
        for match in named.finditer(line):
            name = match.group(0)
            if path.endswith(".swift") and not name.startswith("docs/"):
                continue
            following = line[match.end():match.end() + 1]
            if re.search(r"/[A-Z]+(?:/|$)", name) or following in ("…", "*", "{", "<"):
                continue
            if not os.path.exists(os.path.join(project.root, name)):
                yield path, number, f"names {name}, which is not there"


@rule
def prose_width(project):
    for path, page in pages(project).items():
        for number, line in page.lines:
            # A line of one word, such as a link or a picture, cannot be wrapped.
            if len(line) > WIDTH and not line.startswith(("|", "![")) and " " in line.strip().lstrip("-*# "):
                yield path, number, f"has {len(line)} columns: wrap prose at {WIDTH}"


@rule
def cell_length(project):
    for path, page in pages(project).items():
        for number, line in page.lines:
            if line.startswith("|"):
                longest = max(len(cell.strip()) for cell in re.split(r"(?<!\\)\|", line))
                if longest > CELL:
                    yield path, number, f"has a table cell of {longest} characters: move what is over {CELL} into text"


@rule
def messages(project):
    """What troubleshooting quotes is what the program says: each part between ellipses is in one literal of the sources."""
    if MESSAGES not in pages(project):
        return
    said = "\n".join(re.sub(r"\s+", " ", swift.quoted) for swift in project.sources.values())
    for number, line in pages(project)[MESSAGES].lines:
        match = re.match(r"\| `([^`]+)` \|", line)
        parts = match.group(1).split("…") if match else []
        for part in (part.strip(" :,.;") for part in parts):
            if part not in said:
                yield MESSAGES, number, f"quotes `{part}`, which no literal of the sources holds"


@rule
def log_events(project):
    """Operators find every event of the log in the pages."""
    if MESSAGES not in pages(project):
        return
    described = "\n".join(read(project.root, path) for path in pages(project))
    for path in project.sources:
        if not path.startswith("Sources/"):
            continue
        text = read(project.root, path)
        for match in re.finditer(r'\blog\.(?:debug|info|notice|warning|error)\(\s*"([a-z]+(?:\.[a-zA-Z_]+)+)"', text):
            if not re.search(r"`" + re.escape(match.group(1)) + r"`", described):
                yield path, text.count("\n", 0, match.start()) + 1, f"logs {match.group(1)}, which no page describes"
