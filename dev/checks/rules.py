"""Every rule is a function from the project to (file, line, what is wrong); its name is what the allow file calls it."""
import json
import os
import re
import subprocess
from layers import (
    C_USERS, FOREIGN_TO_PRODUCT, PAGE, PRODUCT, TOOLCHAIN, TOOLCHAIN_FOR_TESTS, UNCHECKED, Layers)
from swift_text import SwiftText, line_of

RULES = {}
ASKS_FOR_A_REASON, TOO_LONG = 350, 500


class CannotRun(Exception):
    pass


class Project:
    """What the rules look at: the targets as declared, and the files as they lie there."""

    def __init__(self, root, package):
        self.root, self.notes = root, []
        self.targets = {target["name"]: target for target in package["targets"]}
        self.files = tracked(root)
        self.subjects = subjects_of(root)
        self.swift = {
            path: SwiftText(read(root, path)) for path in self.files
            if path.endswith(".swift") and path.startswith(("Sources/", "Tests/"))}
        self.sources = {path: text for path, text in self.swift.items() if path.startswith("Sources/")}
        # Targets of the programs, without those that only tests use.
        self.modules = {name: t for name, t in self.targets.items() if t.get("path", "").startswith("Sources/")}
        self.page = read(root, PAGE) if PAGE in self.files else ""
        self.layers = Layers(self.page)

    def target_of(self, path):
        owners = [t for t in self.targets.values() if path.startswith(t.get("path", "?") + "/")]
        return max(owners, key=lambda target: len(target["path"]), default=None)

    def dependencies(self, target):
        names = []
        for dependency in target["dependencies"]:
            for form in ("byName", "target", "product"):
                if form in dependency:
                    names.append(dependency[form][0])
        return names


def package_of(root):
    try:
        run = subprocess.run(
            ["swift", "package", "--ignore-lock", "--package-path", root, "dump-package"], capture_output=True, text=True)
    except FileNotFoundError:
        raise CannotRun("there is no `swift` on the PATH; install Swift 6.3 from https://www.swift.org/install/linux/")
    if run.returncode != 0:
        raise CannotRun("Package.swift does not load:\n" + run.stderr)
    return json.loads(run.stdout)


def tracked(root):
    """The files of the project: what git knows or would add; without git, everything but what is built."""
    run = subprocess.run(
        ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"], capture_output=True)
    if run.returncode == 0:
        names = [os.fsdecode(name) for name in run.stdout.split(b"\0") if name]
    else:
        names = []
        for folder, folders, files in os.walk(root):
            folders[:] = [name for name in folders if name not in (".build", ".git", "__pycache__")]
            names += [os.path.relpath(os.path.join(folder, name), root) for name in files]
    return sorted(name for name in set(names) if os.path.isfile(os.path.join(root, name)))


def subjects_of(root):
    """The subjects of the commits, the newest first; without git, none."""
    run = subprocess.run(
        ["git", "-C", root, "log", "--no-merges", "--format=%s"], capture_output=True, text=True)
    return run.stdout.splitlines() if run.returncode == 0 else []


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        return file.read()


def rule(function):
    RULES[function.__name__.replace("_", "-")] = function
    return function


def found(pattern, text):
    return ((line_of(text, match.start()), match) for match in re.finditer(pattern, text, re.MULTILINE))


# How the modules stand on each other.

@rule
def targets(project):
    for path in project.swift:
        if project.target_of(path) is None:
            yield path, 1, "belongs to no target of Package.swift, so nothing builds it"
    rank = project.layers.rank
    for name, target in project.modules.items():
        for other in project.dependencies(target):
            if name in rank and rank.get(other, 0) <= rank[name]:
                yield "Package.swift", 1, f"{name} depends on {other}, which is not further down in {PAGE}"
            if name in PRODUCT and other in FOREIGN_TO_PRODUCT:
                yield "Package.swift", 1, f"{name} is the product and knows no {other}: give it a port instead"


@rule
def layers(project):
    layers, used = project.layers, set()
    for name, target in project.targets.items():
        path = target.get("path", "")
        top, layer = (path.split("/") + [""])[:2]
        if top not in ("Sources", "Tests") or path != f"{top}/{layer}/{name}":
            yield "Package.swift", 1, f"{name} is in {path}: put it in Sources/LAYER/{name} or Tests/LAYER/{name}"
            continue
        if top == "Tests":
            tested = project.modules.get(name.removesuffix("Tests"))
            if tested and not tested["path"].startswith(f"Sources/{layer}/"):
                yield "Package.swift", 1, f"{name} is in {path}: put it in the layer of {tested['path']}"
            continue
        if layer not in layers.allowed:
            yield PAGE, 1, f"has no row for the layer `{layer}`"
        if layers.layer_of.get(name, layer) != layer:
            yield PAGE, layers.rank[name], f"lists {name} under {layers.layer_of[name]}: it is in {path}"
        for other in project.dependencies(target):
            theirs = layers.layer_of.get(other, layer)
            if theirs != layer:
                used |= {(layer, theirs), (layer, other)}
                if not layers.allows(layer, other):
                    yield "Package.swift", 1, (
                        f"{name} depends on {other}: {PAGE} does not let {layer} import {theirs}")
    for layer, allowed in layers.allowed.items():
        for other in allowed:
            if (layer, other) not in used:
                yield PAGE, layers.row[layer], f"lets {layer} import {other}, which none of its modules does"


@rule
def imports(project):
    pattern = (r"^[ \t]*(?:@\w+(?:\([^)]*\))?\s+)*(?:(?:public|package|internal|fileprivate|private)\s+)?"
               r"import\s+(?:(?:struct|class|enum|protocol|typealias|func|var|let)\s+)?(\w+)")
    for path, swift in project.swift.items():
        target = project.target_of(path)
        if target is None:
            continue
        allowed = set(project.dependencies(target)) | set(TOOLCHAIN)
        if path.startswith("Tests/"):
            allowed |= set(TOOLCHAIN_FOR_TESTS)
        for line, match in found(pattern, swift.code):
            name = match.group(1)
            if "Foundation" in name:
                yield path, line, f"imports {name}: nothing of Foundation is used here"
            elif name in C_USERS and not path.startswith(tuple(C_USERS[name])):
                yield path, line, f"imports {name}, which only {' and '.join(C_USERS[name])} may touch"
            elif name not in allowed:
                yield path, line, f"imports {name}, which target {target['name']} does not declare in Package.swift"


# Structures that both Glibc's module and CLinux define.
SHARED_STRUCTURES = (r"\b(?:stat|flock|timespec|timeval|sockaddr(?:_\w+)?|addrinfo|iovec|msghdr|ucred|epoll_event)"
                     r"\((?:\)|tv_|iov_)")


@rule
def shared_structures(project):
    """Of two modules that define a structure, the compiler takes the one that the files of its batch load first."""
    for path, swift in project.swift.items():
        if not re.search(r"^import CLinux$", swift.code, re.MULTILINE):
            for line, match in found(SHARED_STRUCTURES, swift.code):
                yield path, line, f"`{match.group(0)}`: import CLinux too, or some clean builds find no member of it"


# What is not written here, and what is written instead.

# The system's own, and not a method of that name: loop.sleep(for:) waits on the loop.
SLEEP = r"(?:(?<![.\w])(?<!func )|\bGlibc\.)sleep\s*\("

BANNED = {
    "codable": (r"\b(?:Codable|Encodable|Decodable|CodingKey|JSONEncoder|JSONDecoder|JSONSerialization)\b",
                "JSON is read and written by hand (module JSON)", []),
    "force-try": (r"\btry\s*!", "handle the error, or make the function throw", []),
    "tasks": (r"(?<!\.)\bTask\s*(?:<[^>{}()]*>)?\s*[({]|\bTask\s*(?:<[^>{}()]*>)?\.(?:detached|sleep|immediate\w*|init)\b",
              "work starts through loop.spawn, and waits through loop.schedule", ["Sources/Network/EventLoop/"]),
    "blocking-sleep": (r"\bThread\.sleep\b|\b(?:usleep|nanosleep|clock_nanosleep)\s*\(|" + SLEEP,
                       "wait for the event, or use loop.schedule", []),
    "threads": (r"\b(?:pthread_create|DispatchQueue|OperationQueue)\b|\bThread\s*[({.]",
                "threads belong to EventLoop: LoopGroup or WorkerThread", ["Sources/Network/EventLoop/"]),
    "chance": (r"\bSystemRandomNumberGenerator\b|\barc4random|\bRAND_(?:priv_)?bytes\b|\.shuffled\(\)|\.randomElement\(\)"
               r"|\.random\(in:(?![^\n]*using:)",
               "chance comes from World.Randomness, so that a test can give it", ["Sources/Base/World/"]),
    "clocks": (r"\b(?:clock_gettime|gettimeofday|ContinuousClock|SuspendingClock)\b|\btime\(nil\)",
               "time comes from World.TimeSource, so that a test can give it", ["Sources/Base/World/"]),
}


def ban(name, pattern, instead, allowed):
    def breaches(project):
        for path, swift in project.sources.items():
            if not path.startswith(tuple(allowed)) or not allowed:
                for line, match in found(pattern, swift.code):
                    yield path, line, f"`{match.group(0).strip()}`: {instead}"
    RULES[name] = breaches


for banned, (expression, instead, places) in BANNED.items():
    ban(banned, expression, instead, places)


@rule
def sleeping_tests(project):
    for path, swift in project.swift.items():
        if path.startswith("Tests/"):
            for line, match in found(r"\bTask\.sleep\b|\b(?:usleep|nanosleep)\s*\(|" + SLEEP, swift.code):
                yield path, line, f"`{match.group(0)}`: await the event itself; a time to sleep is a guess"


@rule
def names(project):
    words = r"Manager|Utils?|Helpers?"
    for path, swift in project.swift.items():
        if re.search(rf"(?:{words})(?=[A-Z./+]|$)", path):
            yield path, 1, "a name that says nothing (Manager, Utils, Helper): name the subject"
        declared = rf"\b(?:class|struct|enum|protocol|actor|extension|typealias|func|var|let|case)\s+(\w*(?:{words})\b)"
        for line, match in found(declared, swift.code):
            yield path, line, f"{match.group(1)}: a name that says nothing; name the subject"


@rule
def unfinished(project):
    for path, swift in project.sources.items():
        for line, match in found(r"\b(?:TODO|FIXME|XXX|HACK)\b", swift.comments):
            yield path, line, f"{match.group(0)} left behind: do it, or say in docs/ what is not there"


@rule
def unchecked(project):
    count = 0
    for path, swift in project.sources.items():
        lines, comments = swift.code.split("\n"), swift.comments.split("\n")
        for line, match in found(r"@unchecked\s+Sendable|\bnonisolated\s*\(\s*unsafe\s*\)", swift.code):
            count += 1
            if not path.startswith(tuple(UNCHECKED)):
                yield path, line, f"`{match.group(0)}` outside EventLoop and the C wrappers"
            elif not guard_stated(lines, comments, line - 1):
                yield path, line, f"`{match.group(0)}`: the comment directly above must state its guard, as in `Guard: …`"
    project.notes.append(f"dev/check: {count} unchecked promises of Sendable, each with its guard")


def guard_stated(lines, comments, index):
    """The comment right above the declaration, over any attributes; or one on the line itself."""
    said = [comments[index]]
    above = index - 1
    while above >= 0 and lines[above].strip().startswith("@"):
        above -= 1
    while above >= 0 and comments[above].strip() and not lines[above].strip():
        said.append(comments[above])
        above -= 1
    return re.search(r"\bguard(?:s|ed)?\b|@unchecked Sendable`?:|nonisolated\(unsafe\)`?:", " ".join(said), re.IGNORECASE) is not None


# SQL.

def schema_files(project):
    return [path for path in project.files if path.endswith("schema.sql")]


def sql_only(text):
    """SQL without its comments, but with what stands inside /*M! … */ and /*S! … */."""
    text = re.sub(r"--[^\n]*", "", text)
    return re.sub(r"/\*(?![MS]!).*?\*/", lambda match: "\n" * match.group(0).count("\n"), text, flags=re.DOTALL)


@rule
def sql_asks_outside(project):
    # JULIANDAY of a column computes from a stored time; alone or with text it can ask for the present one.
    pattern = (r"(?i)\b(?:NOW|SYSDATE|CURDATE|CURTIME|UNIX_TIMESTAMP|UTC_TIMESTAMP|LOCALTIME|"
               r"JULIANDAY(?!\(\w+\.\w+\))|UUID|RAND|RANDOM|RANDOMBLOB)\s*\(|\bCURRENT_(?:TIMESTAMP|DATE|TIME)\b|'now'")
    places = {path: sql_only(read(project.root, path)) for path in schema_files(project)}
    places.update({
        path: swift.quoted for path, swift in project.sources.items() if path.startswith("Sources/Storage/Storage/")})
    for path, text in places.items():
        for line, match in found(pattern, text):
            yield path, line, f"`{match.group(0).strip()}`: SQL is given the time and chance, it never asks for them"


@rule
def tables_in_engines(project):
    tables = set()
    for path in schema_files(project):
        tables |= {match.group(1).lower() for _, match in found(
            r"(?i)\bCREATE\s+(?:TABLE|VIEW)\s+(?:IF\s+NOT\s+EXISTS\s+)?[`\"]?(\w+)", sql_only(read(project.root, path)))}
    for path, swift in project.sources.items():
        if path.startswith(("Sources/Storage/Storage/SQLite/", "Sources/Storage/Storage/MariaDB/")):
            for line, match in found(
                    r"(?i)\b(?:FROM|INTO|UPDATE|JOIN|TABLE|EXISTS|VIEW)\s+[`\"]?(\w+)", swift.quoted):
                if match.group(1).lower() in tables:
                    yield path, line, f"table {match.group(1)}: engines know no table, their statements come from SQL/"


@rule
def audit_rows(project):
    """Only a declared statement signs its rows and names the actor (docs/operators/audit.md)."""
    for path, swift in project.sources.items():
        if not path.startswith("Sources/Storage/Storage/"):
            continue
        for line, match in found(r"(?i)\bINSERT\s+INTO\s+audit\b", swift.quoted):
            before = "\n".join(swift.text.split("\n")[:line])
            before = before[:before.lower().rindex("insert")]
            # A fragment is a constant that a declared statement begins with.
            if not re.search(r'(?:\.audit\(|\blet \w+ =)\s*"{1,3}\s*$', before):
                yield path, line, "declare it as `Statement.audit(…)`, so that its rows are signed"


@rule
def sql_names(project):
    """Statements name their parameters; a position says nothing, and moves with every new column."""
    benchmarks = {
        path: SwiftText(read(project.root, path)) for path in project.files
        if path.startswith("Benchmarks/") and path.endswith(".swift")}
    for path, swift in (project.swift | benchmarks).items():
        if path.startswith(("Sources/Storage/Storage/SQL/", "Sources/Storage/Storage/Rows/", "Tests/", "Benchmarks/")):
            # Other texts of the tests have `=?` without a blank, as in `/path?a=?`.
            blank = r"\s*" if path.startswith("Sources/") else r"\s+"
            for line, match in found(rf"(?:[=<>]{blank}|[(,]\s*|\b(?:SELECT|LIKE|LIMIT)\s+)\?(?![\w?.])", swift.quoted):
                yield path, line, "`?`: give the parameter a name, as in `:user`"


@rule
def translations(project):
    """Every text of the API has a German translation that differs from it and shows the same values."""
    for path, swift in project.sources.items():
        # `.init` is such a text, too, if it has an argument `de:`.
        for line, match in found(r"(?:\bLocalizedText|(?<![\w)\]>?!])\.init)\((?=\s*[^)\s])", swift.code):
            parts = arguments(swift, match.end())
            if parts is None:
                continue
            (english, values), (german, others) = parts
            if not german.strip():
                yield path, line, "a text without its German translation"
            elif english and english.split() == german.split():
                yield path, line, f"`{german.strip()}` is not translated"
            elif values != others:
                yield path, line, f"the translations show different values: {values} and {others}"


def arguments(swift, start):
    """Of the two arguments of a text, the literal words and the values; None if a literal is not there."""
    depth, at, border = 0, start, None
    while at < len(swift.code) and depth >= 0:
        depth += {"(": 1, ")": -1}.get(swift.code[at], 0)
        if depth == 0 and border is None and re.match(r"\bde:", swift.code[at:at + 3]):
            border = at
        at += 1
    if border is None:
        return None
    parts = [(start, border), (border, at - 1)]
    if not all('"' in swift.text[first:last] for first, last in parts):
        return None
    return [(swift.quoted[first:last], shown_values(swift.text[first:last])) for first, last in parts]


def shown_values(text):
    values = re.findall(r"\\\(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)", text)
    return sorted(re.sub(r"\.(english|german)$", "", value) for value in values)


# Files.

@rule
def length(project):
    for path, swift in project.swift.items():
        # What a program writes is as long as what it writes it from.
        if swift.text.startswith("// Written by dev/"):
            continue
        lines = swift.text.count("\n")
        if lines > TOO_LONG:
            yield path, lines, f"{lines} lines: split it by subject, or allow it with a reason"
        elif lines > ASKS_FOR_A_REASON:
            project.notes.append(f"{path}: {lines} lines, does it still have one subject?")


@rule
def machine_paths(project):
    # Written with brackets so that this file does not accuse itself.
    pattern = (r"(?<![\w.~-])/(?:home/[\w.-]+|Users/[\w.-]+|roo[t]/\S|wor[k]/\S|far[m]/\S|opt/swif[t]/"
               r"|tm[p]/(?:plan|wt-|bash_jobs)\S*)")
    for path in project.files:
        if path.endswith((".png", ".ico", ".der", ".p12", ".db")):
            continue
        for line, match in found(pattern, read(project.root, path)):
            yield path, line, f"`{match.group(0)}` is a path of somebody's machine"


@rule
def documented(project):
    rank = project.layers.rank
    for name, target in project.targets.items():
        if name in project.modules and name not in rank:
            yield PAGE, 1, f"lists no module `{name}`"
        elif target["type"] != "test" and f"`{name}`" not in project.page:
            yield PAGE, 1, f"says nothing about `{name}`"
    for name in rank.keys() - project.modules.keys():
        yield PAGE, rank[name], f"lists a module `{name}`, which Package.swift does not have"


# Exceptions, each with its reason, and each used.

def allowances(root):
    path = "dev/check-allow"
    if not os.path.exists(os.path.join(root, path)):
        return
    for number, line in enumerate(read(root, path).split("\n"), 1):
        words = line.split(None, 2)
        if words and not line.startswith("#"):
            yield path, number, words


def check(project):
    breaches = [(path, line, name, what) for name, function in RULES.items() for path, line, what in function(project)]
    for allow, number, words in list(allowances(project.root) or []):
        if len(words) < 3:
            breaches.append((allow, number, "allow", "needs RULE FILE and the reason"))
            continue
        kept = [breach for breach in breaches if not (breach[2] == words[0] and breach[0] == words[1])]
        if len(kept) == len(breaches):
            breaches.append((allow, number, "allow", f"allows {words[0]} in {words[1]}, where it is not needed"))
        else:
            breaches = kept
    return [f"{path}:{line}: [{name}] {what}" for path, line, name, what in sorted(breaches)]
