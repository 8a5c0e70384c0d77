"""Bad samples, one or more for every rule, each seen refused by it; and good ones, seen accepted."""
import os
import tempfile
import rules
import words

UNCHECKED_GOOD = "/// Guard: touched on the loop's own thread only.\n@frozen\npublic struct Box: @unchecked Sendable {}\n"
SCHEMA = "CREATE TABLE users (id binary(16)); -- not NOW()\nCREATE VIEW Users AS SELECT 1;\n"

PAGE = """# Architecture

| layer | what it holds | may import |
|---|---|---|
| `Programs` | programs | |
| `Storage` | the store | `Product` `World` `C` |
| `Product` | the product | `Base` |
| `Network` | loops | `World` |
| `Base` | the rest | `C` |
| `C` | libraries | |

### Programs
| module | what it is |
|---|---|
| `Daemon` | the daemon |
### Storage
| module | what it is |
|---|---|
| `Storage` | SQL for `Relay` |
### Product
| module | what it is |
|---|---|
| `Relay` | the product |
### Network
| module | what it is |
|---|---|
| `EventLoop` | epoll |
### Base
| module | what it is |
|---|---|
| `Log` | events |
| `World` | the clock |
### C
| module |
|---|
| `CLinux` `CSQLite` |

Tests have `TestSupport`.
"""

BENCH = """MORE, LESS = "more", "less"
BENCHMARKS = [Benchmark("Logins/run", [], [], [
    ("{0}: rate", "ratio", "rate (.*)", MORE), ("cost", "count", "cost", LESS), ("time", "s", "time")])]
"""
FLOOR = '{"figures": [\n {"benchmark": "NAME", "figure": "FIGURE", "better": "BETTER", "value": 1, "tolerance": 0.97}\n]}\n'


def kept(name, figure, better):
    return FLOOR.replace("NAME", name).replace("FIGURE", figure).replace("BETTER", better)


# What a small but right project looks like. Every bad sample is this with one file added or replaced.
GOOD = {
    "Sources/Base/World/Clock.swift": "import CLinux\nlet moment = clock_gettime(0, nil)\n",
    "Sources/Network/EventLoop/Loop.swift": "import World\n" + UNCHECKED_GOOD + "func go() { Task.immediate {} }\n",
    "Sources/Product/Relay/Ask.swift": "import World // Task { }\nlet text = \"try! Task { } \\(one(\"NOW()\"))\" /* usleep( */\n"
                               "func dispatchTask(_: Int) {}\nfunc sleep(for: Int) { loop.sleep(for: 1) }\n"
                               "let shown = LocalizedText(\"is \\(b.english(1))\", de: \"ist \\(b.english(1))\")\nlet number = Int.random(in: 0..<9, using: &chance)\n",
    "Sources/Storage/Storage/SQL/Ask.swift": "let ask = \"INSERT INTO users VALUES (:user)\"\n",
    "Sources/Storage/Storage/SQLite/Engine.swift": "import CSQLite\n// INSERT INTO users\nlet begin = \"BEGIN IMMEDIATE\"\n",
    "Tests/Product/RelayTests/AskTests.swift": "@testable import Relay\nimport Testing\n",
    "schema.sql": SCHEMA,
    "docs/internals/architecture.md": PAGE,
    "Sources/Programs/Daemon/Program/Program.swift": 'public static let version = "1.2.0"\n',
    "clients/go/README.md": "# Go\n\n```sh\ngo mod edit -require=twoefay@v1.2.0 -replace=twoefay=./twoefay\n```\n",
    "clients/php/composer.json": '{\n    "version": "1.2.0"\n}\n',
    "clients/go/LICENSE": "Free\n", "clients/php/LICENSE": "Free\n",
    "LICENSE": "Free\n",
    "deploy/debian/changelog": "twoefay (1.2.0) bookworm; urgency=medium\n\ntwoefay (1.1.0) bookworm; urgency=medium\n",
    "deploy/bench": BENCH,
    "Benchmarks/floor.json": kept("Logins", "sqlite: rate", "more"),
    "README.md": "# Twoefay\n\nSee /etc/twoefay and ~/x and /tmp/anything.\n",
    "docs/README.md": "# Documentation\n\n- [Architecture](internals/architecture.md#network)\n- [Start](start/a.md)\n"
                      "- [Trouble](operators/troubleshooting.md)\n",
    "docs/start/a.md": "# Start\n\nSee `Sources/Product/Relay` and [that](#start), not `dev/NAME` or `docs/…`.\n\n"
                       "```sh\n# not a heading, [no link](x.md), " + "and longer than a line may be " * 3 + "\n```\n"
                       "| " + "wide " * 30 + "| " + "table " * 30 + "|\n",
    "docs/operators/troubleshooting.md": "# Trouble\n\n| `INSERT INTO … VALUES` | a cause |\n",
}

TARGETS = {
    "CLinux": [], "CSQLite": [], "World": ["CLinux"], "Log": ["World"], "EventLoop": ["World"], "Relay": ["World"],
    "Storage": ["CSQLite", "Relay", "World"], "TestSupport": ["Storage"], "RelayTests": ["Relay", "TestSupport"],
    "Daemon": [],
}
PATHS = {
    "CLinux": "Sources/C/CLinux", "CSQLite": "Sources/C/CSQLite", "World": "Sources/Base/World",
    "Log": "Sources/Base/Log", "EventLoop": "Sources/Network/EventLoop", "Relay": "Sources/Product/Relay",
    "Storage": "Sources/Storage/Storage", "TestSupport": "Tests/Support/TestSupport",
    "RelayTests": "Tests/Product/RelayTests", "Daemon": "Sources/Programs/Daemon",
}

# rule, file, its text
BAD = [
    ("targets", "Sources/Stray/A.swift", ""),
    ("imports", "Sources/Product/Relay/A.swift", "import EventLoop\n"),
    ("imports", "Sources/Product/Relay/A.swift", "@preconcurrency internal import struct EventLoop.Loop\n"),
    ("imports", "Sources/Product/Relay/A.swift", "import Foundation\n"),
    ("imports", "Sources/Product/Relay/A.swift", "import FoundationEssentials\n"),
    ("imports", "Sources/Product/Relay/A.swift", "import Testing\n"),
    ("imports", "Sources/Storage/Storage/SQL/A.swift", "import CSQLite\n"),
    ("imports", "Tests/Product/RelayTests/A.swift", "import World\n"),
    ("shared-structures", "Sources/Network/EventLoop/A.swift", "import Glibc\nvar a = stat()\n"),
    ("codable", "Sources/Product/Relay/A.swift", "struct A: Codable {}\n"),
    ("codable", "Sources/Product/Relay/A.swift", "let a = JSONEncoder()\n"),
    ("force-try", "Sources/Product/Relay/A.swift", "let a = try! b()\n"),
    ("tasks", "Sources/Product/Relay/A.swift", "func a() { Task { } }\n"),
    ("tasks", "Sources/Product/Relay/A.swift", "let a = Task<Void, Never>(priority: .low) { }\n"),
    ("tasks", "Sources/Product/Relay/A.swift", "Task.detached { }\n"),
    ("tasks", "Sources/Product/Relay/A.swift", "try await Task.sleep(for: .seconds(1))\n"),
    ("tasks", "Sources/Product/Relay/A.swift", "let a = \"\\(Task { 1 })\"\n"),
    ("blocking-sleep", "Sources/Product/Relay/A.swift", "usleep(10)\n"),
    ("blocking-sleep", "Sources/Network/EventLoop/A.swift", "sleep(1)\n"),
    ("blocking-sleep", "Sources/Network/EventLoop/A.swift", "_ = Glibc.sleep(1)\n"),
    ("threads", "Sources/Product/Relay/A.swift", "pthread_create(&a, nil, b, nil)\n"),
    ("chance", "Sources/Product/Relay/A.swift", "let a = Int.random(in: 0..<10)\n"),
    ("chance", "Sources/Product/Relay/A.swift", "let a = names.shuffled()\n"),
    ("clocks", "Sources/Product/Relay/A.swift", "clock_gettime(CLOCK_REALTIME, &a)\n"),
    ("sleeping-tests", "Tests/Product/RelayTests/A.swift", "try await Task.sleep(for: .seconds(1))\n"),
    ("names", "Sources/Product/Relay/UserManager.swift", ""),
    ("names", "Sources/Product/Relay/StringUtils/A.swift", ""),
    ("names", "Sources/Product/Relay/A.swift", "final class ConnectionManager {}\n"),
    ("unfinished", "Sources/Product/Relay/A.swift", "// TODO: the rest\n"),
    ("unchecked", "Sources/Product/Relay/A.swift", UNCHECKED_GOOD),
    ("unchecked", "Sources/Network/EventLoop/A.swift", "/// A box.\npublic struct Box: @unchecked Sendable {}\n"),
    ("unchecked", "Sources/Network/EventLoop/A.swift", "// Guard: none of this one's.\n\nnonisolated(unsafe) var a = 1\n"),
    ("sql-asks-outside", "Sources/Storage/Storage/SQL/A.swift", "let a = \"SELECT 1 WHERE due < NOW()\"\n"),
    ("sql-asks-outside", "schema.sql", "CREATE VIEW A AS SELECT julianday() - julianday(b.at) AS age FROM b;\n"),
    ("sql-asks-outside", "schema.sql", "CREATE TABLE a (at DATETIME(3) DEFAULT CURRENT_TIMESTAMP);\n"),
    ("sql-asks-outside", "schema.sql", "CREATE TABLE a (id binary(16) /*M! DEFAULT UUID() */);\n"),
    ("tables-in-engines", "Sources/Storage/Storage/SQLite/A.swift", "let a = \"SELECT 1 FROM users\"\n"),
    ("translations", "Sources/Product/Relay/A.swift", "let a = LocalizedText(\"must be given\", de: \"\")\n"),
    ("translations", "Sources/Product/Relay/A.swift", "let a = LocalizedText(\n    \"is b\", de: \"is b\")\n"),
    ("translations", "Sources/Product/Relay/A.swift", "throw Failure(.init(\"must be given\", de: \"\"))\n"),
    ("translations", "Sources/Product/Relay/A.swift", "let a: LocalizedText = .init(\n    \"is b\", de: \"is b\")\n"),
    ("translations", "Sources/Product/Relay/A.swift", "f([.init(\"is \\(b)\", de: \"ist c\")])\n"),
    ("translations", "Sources/Product/Relay/A.swift", "let a = LocalizedText(\"is \\(b)\", de: \"ist c\")\n"),
    ("translations", "Sources/Product/Relay/A.swift",
     "let a = LocalizedText(\"is \\(b(1, \"x\"))\" + \"!\", de: \"ist \\(c)\" + \"!\")\n"),
    ("length", "Sources/Product/Relay/A.swift", "\n" * 501),
    ("machine-paths", "README.md", "cd /home/" + "somebody/twoefay\n"),
    ("machine-paths", "deploy/x", "cp /roo" + "t/x .\n"),
    ("documented", "docs/internals/architecture.md", PAGE.replace("| `Relay` | the product |", "| Relay | the product |")),
    ("documented", "docs/internals/architecture.md", PAGE.replace("`TestSupport`", "something")),
    ("documented", "docs/internals/architecture.md", PAGE.replace("`CSQLite`", "`CSQLite` `CCurl`")),
    ("layers", "docs/internals/architecture.md", PAGE.replace("| `Network` | loops | `World` |\n", "")),
    ("layers", "docs/internals/architecture.md", PAGE.replace("loops | `World` |", "loops | |")),
    ("layers", "docs/internals/architecture.md", PAGE.replace("loops | `World` |", "loops | `World` `C` |")),
    ("layers", "docs/internals/architecture.md", PAGE.replace("### Network\n", "### Base\n")),
    ("index", "docs/start/b.md", "# Forgotten\n"),
    ("index", "docs/start/a.md", "# Start\n\n# And again\n"),
    ("index", "docs/start/a.md", "Nothing but text\n"),
    ("index", "README.md", "Nothing but text\n"),
    ("index", "docs/README.md", "# Documentation\n\n- [Architecture](internals/architecture.md)\n- [Start](start/a.md)\n"
                                "- [Trouble](operators/troubleshooting.md)\n- [Again](start/a.md)\n"),
    ("links", "README.md", "# Twoefay\n\n[gone](docs/gone.md)\n"),
    ("links", "docs/start/a.md", "# Start\n\n[gone](../internals/architecture.md#elsewhere)\n"),
    ("links", "docs/start/a.md", "# Start\n\n[gone](#elsewhere)\n"),
    ("paths", "docs/start/a.md", "# Start\n\nSee `Sources/Product/Gone.swift`.\n"),
    ("paths", "Sources/Product/Relay/A.swift", "/// See docs/gone.md.\n"),
    ("prose-width", "docs/start/a.md", "# Start\n\n" + "many words " * 10 + "\n"),
    ("cell-length", "docs/start/a.md", "# Start\n\n| a | " + "many words " * 20 + "|\n"),
    ("messages", "docs/operators/troubleshooting.md", "# Trouble\n\n| `INSERT … nowhere` | a cause |\n"),
    ("log-events", "Sources/Product/Relay/A.swift", "log.notice(\"login.unheard\")\n"),
    ("log-events", "Sources/Product/Relay/A.swift", "log.error(\n    \"login.unheard\", [:])\n"),
    ("audit-rows", "Sources/Storage/Storage/SQL/A.swift",
     "let a = Statement(\n    \"\"\"\n    INSERT INTO audit (event) SELECT :event\n    \"\"\")\n"),
    ("sql-names", "Sources/Storage/Storage/SQL/A.swift", "let a = \"SELECT 1 FROM user WHERE id = ?\"\n"),
    ("sql-names", "Sources/Storage/Storage/Rows/A.swift", "let a = \"INSERT INTO user VALUES (?, 1)\"\n"),
    ("sql-names", "Tests/Product/RelayTests/A.swift", "let a = \"UPDATE user SET state = ?\"\n"),
    ("sql-names", "Benchmarks/Codes/A.swift", "let a = \"SELECT ? FROM user\"\n"),
    ("openers", "Sources/Product/Relay/A.swift", "/// Of the users, the oldest.\nlet oldest = 1\n"),
    ("floor", "Benchmarks/floor.json", kept("Logins", "another", "more")),
    ("floor", "Benchmarks/floor.json", kept("Others", "sqlite: rate", "more")),
    ("floor", "Benchmarks/floor.json", kept("Logins", "sqlite: rate", "less")),
    ("floor", "Benchmarks/floor.json", kept("Logins", "time", "more")),
    ("versions", "clients/go/README.md", "# Go\n\n`twoefay@v1.1.0`\n"),
    ("versions", "clients/node/package.json", '{\n  "version": "1.2.1"\n}\n'),
    ("versions", "clients/php/composer.json", "{}\n"),
    ("versions", "clients/python/pyproject.toml", 'version = "1.2"\n'),
    ("versions", "deploy/debian/changelog", "twoefay (1.3.0) bookworm; urgency=medium\n"),
    ("licences", "clients/php/LICENSE", "Not free\n"),
    ("licences", "clients/python/README.md", "# Python\n"),
    ("type-names", "Sources/Product/Relay/A.swift", "enum HostDesk {}\n"),
    ("type-names", "Sources/Product/Relay/A.swift", "struct Outer {\n    final class TidyUp {}\n}\n"),
    ("allow", "dev/check-allow", "length Sources/Product/Relay/Ask.swift it was long once\n"),
    ("allow", "dev/check-allow", "length Sources/Product/Relay/Ask.swift\n"),
]

# The same, where the fault is in Package.swift: rule, target, its dependencies
BAD_TARGETS = [
    ("targets", "World", ["CLinux", "Log"]),
    ("targets", "Log", ["World", "TestSupport"]),
    ("targets", "Relay", ["World", "EventLoop"]),
    ("layers", "Relay", ["World", "EventLoop"]),
    ("layers", "Storage", ["CSQLite", "Relay", "World", "Log"]),
    ("documented", "Elsewhere", []),
]

# The same, where it is the folder of a target: target, folder
BAD_PATHS = [
    ("layers", "World", "Sources/World"),
    ("layers", "World", "Sources/Network/World"),
    ("layers", "World", "Elsewhere/Base/World"),
    ("layers", "RelayTests", "Tests/RelayTests"),
    ("layers", "RelayTests", "Tests/Base/RelayTests"),
]


# The same, where it is the subject of a commit.
BAD_SUBJECTS = ["Reset streams over the budget", "http2:", "http2: " + "reset streams and so on " * 3]


def breaches(files, targets, paths=PATHS, subjects=("http2: reset streams", "api, http2: end holds")):
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)) or root, exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(text)
        package = {"targets": [
            {"name": name, "type": "test" if name.endswith("Tests") else "regular",
             "path": paths.get(name, f"Sources/{name}"),
             "dependencies": [{"byName": [other, None]} for other in dependencies]}
            for name, dependencies in targets.items()]}
        project = rules.Project(root, package)
        project.subjects = [*subjects, words.BEFORE_AREAS, "Any subject of before"]
        return rules.check(project)


def run():
    wrong = [f"the good sample was refused: {breach}" for breach in breaches(GOOD, TARGETS)]
    long = {**GOOD, "Sources/Product/Relay/A.swift": "\n" * 501,
            "dev/check-allow": "length Sources/Product/Relay/A.swift a table\n"}
    wrong += [f"an allowed file was refused: {breach}" for breach in breaches(long, TARGETS)]
    cases = [(name, ({**GOOD, path: text}, TARGETS), f"{path}: {text[:60]!r}") for name, path, text in BAD]
    cases += [(name, (GOOD, {**TARGETS, target: on}), f"{target} on {on}") for name, target, on in BAD_TARGETS]
    cases += [(name, (GOOD, TARGETS, {**PATHS, target: path}), f"{target} in {path}") for name, target, path in BAD_PATHS]
    cases += [("subjects", (GOOD, TARGETS, PATHS, [subject]), subject) for subject in BAD_SUBJECTS]
    for name, project, described in cases:
        if not any(f"[{name}]" in breach for breach in breaches(*project)):
            wrong.append(f"not refused by {name}: {described}")
    tried = {case[0] for case in cases}
    wrong += [f"rule {name} has no bad sample" for name in rules.RULES if name not in tried]
    for line in wrong:
        print(f"dev/check --self-test: {line}")
    print(f"dev/check --self-test: {len(cases)} bad samples, {len(rules.RULES)} rules, {len(wrong)} faults")
    return 1 if wrong else 0
