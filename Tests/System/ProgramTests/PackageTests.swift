import Daemon
import Glibc
import TestSupport
import Testing

/// The Debian package, built from the programs under test. `deploy/package --test` installs, upgrades
/// and purges the real one; that takes minutes and a network.
@Suite(.timeLimit(.minutes(15)), .mayBlock) struct PackageTests {
    private static let root = #filePath.split(separator: "/").dropLast(4).map { "/\($0)" }.joined()
    private static let tools = ["dpkg-deb", "dpkg-shlibdeps", "dpkg-parsechangelog", "strip"]
    private static let canBuild = !Sanitizer.isOn && tools.allSatisfy { access("/usr/bin/\($0)", X_OK) == 0 }

    @Test(.enabled(if: canBuild, "dpkg-dev is missing, or the programs have a sanitizer"))
    func packageIsComplete() async throws {
        let directory = try TemporaryDirectory()
        let programs = try BuiltProgram.twoefay.path.split(separator: "/").dropLast().map { "/\($0)" }.joined()
        let built = try await Child(
            "\(Self.root)/deploy/package", ["--programs", programs, "--out", directory.path],
            environment: ["TWOEFAY_DEB_COMPRESSION": "none", "TMPDIR": directory.path]
        ).ended()
        try #require(built.status == 0, "\(built.errors)")
        let package = try #require(built.output.split(separator: "\n").last.map(String.init))

        let fields = try await Child.run("dpkg-deb", ["--field", package]).output
        #expect(fields.contains("Package: twoefay\n") && fields.contains("Version: \(Program.version)\n"), "\(fields)")
        for library in ["libc6", "libssl3", "libnghttp2-14", "libsqlite3-0", "libmariadb3", "adduser"] {
            #expect(fields.contains(library), "\(library) in \(fields)")
        }
        let list = try await Child.run("dpkg-deb", ["--contents", package]).output.split(separator: "\n")
        #expect(list.allSatisfy { $0.contains(" root/root ") })
        let units = ServiceUnitTests.units.map { "lib/systemd/system/\($0)" }
        let manual = ["man1/twoefay.1", "man8/twoefayd.8", "man8/twoefay-keys.8", "man5/twoefay.yaml.5"]
        let files =
            ["usr/bin/twoefay", "usr/bin/twoefayd", "usr/bin/twoefay-keys"] + units
            + manual.map { "usr/share/man/\($0).gz" } + [
                "usr/share/bash-completion/completions/twoefay", "usr/share/zsh/vendor-completions/_twoefay",
                "usr/share/fish/vendor_completions.d/twoefay.fish", "usr/share/doc/twoefay/copyright",
                "usr/share/doc/twoefay/changelog.gz", "usr/share/doc/twoefay/operators/running.md",
            ]
        for file in files {
            let line = list.first { $0.hasSuffix(" ./\(file)") }
            let mode = file.hasPrefix("usr/bin/") ? "-rwxr-xr-x" : "-rw-r--r--"
            #expect(line?.hasPrefix(mode) == true, "\(file): \(line ?? "missing")")
        }
        // Settings and keys are the operator's, and no file of the package.
        #expect(!list.contains { $0.contains(" ./etc") || $0.contains(" ./var") })
    }

    /// A package without the dependencies of its programs would not run.
    @Test(.enabled(if: canBuild, "dpkg-dev is missing, or the programs have a sanitizer"))
    func unknownLibraryEndsTheBuild() async throws {
        let directory = try TemporaryDirectory()
        try TextFile.write("#!/bin/sh\necho 'no library' >&2\nexit 25\n", to: directory("dpkg-shlibdeps"))
        chmod(directory("dpkg-shlibdeps"), 0o755)
        let programs = try BuiltProgram.twoefay.path.split(separator: "/").dropLast().map { "/\($0)" }.joined()
        let ended = try await Child(
            "\(Self.root)/deploy/package", ["--programs", programs, "--out", directory("out")],
            environment: ["PATH": "\(directory.path):/usr/bin:/bin", "TMPDIR": directory.path]
        ).ended()
        #expect(ended.status == 1 && ended.errors.hasSuffix("no library\n"), "\(ended)")
        #expect(access(directory("out"), F_OK) != 0)
    }

    @Test(arguments: ["postinst", "prerm", "postrm", "test", "../package"])
    func scriptsAreShell(_ name: String) async throws {
        let ended = try await Child.run("sh", ["-n", "\(Self.root)/deploy/debian/\(name)"])
        #expect(ended.status == 0, "\(ended.errors)")
    }
}
