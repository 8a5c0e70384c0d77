"""The packages in clients and the Debian package have the version of the programs, and the packages the project's licence."""
import re
from rules import found, read, rule

PROGRAMS = "Sources/Programs/Daemon/Program/Program.swift"
STATED = {
    "clients/go/README.md": r"twoefay@v(\S+)",  # a Go module has its version from those who require it
    "clients/node/package.json": r'^ *"version": "([^"]*)"',
    "clients/php/composer.json": r'^ *"version": "([^"]*)"',
    "clients/python/pyproject.toml": r'^version = "([^"]*)"',
    "clients/python/src/twoefay/__init__.py": r'^__version__ = "([^"]*)"',
    "clients/swift/README.md": r'from: "([^"]*)"',
    "deploy/debian/changelog": r"\A\S+ \(([^)]*)\)",
}


@rule
def versions(project):
    programs = re.search(r'static let version = "([^"]*)"', read(project.root, PROGRAMS)) if PROGRAMS in project.files else None
    if PROGRAMS in project.files and not programs:
        yield PROGRAMS, 1, "states no version, with which those of the packages are compared"
    for path, pattern in STATED.items() if programs else ():
        if path not in project.files:
            continue
        stated = list(found(pattern, read(project.root, path)))
        if not stated:
            yield path, 1, f"states no version: it should have {programs[1]}, as {PROGRAMS} says"
        for line, match in stated:
            if match[1] != programs[1]:
                yield path, line, f"states version {match[1]}, but {PROGRAMS} has {programs[1]}"


@rule
def licences(project):
    """Each package carries the licence itself: an archive of it holds nothing from above its folder."""
    for package in sorted({path.rsplit("/", 1)[0] for path in STATED if re.fullmatch(r"clients/[^/]+/[^/]+", path)}):
        if f"{package}/LICENSE" not in project.files and any(path.startswith(f"{package}/") for path in project.files):
            yield f"{package}/README.md", 1, "its package has no LICENSE: copy the project's"
    for path in project.files:
        if re.fullmatch(r"clients/[^/]+/LICENSE", path) and read(project.root, path) != read(project.root, "LICENSE"):
            yield path, 1, "differs from LICENSE: copy it"
