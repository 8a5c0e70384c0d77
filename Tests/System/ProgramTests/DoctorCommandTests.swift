import Glibc
import JSON
import TestSupport
import Testing

/// `twoefay doctor`, with a relay that runs and without one.
@Suite(.timeLimit(.minutes(15)), .mayBlock) struct DoctorCommandTests {
    /// Returns the checks by name.
    private func checks(_ ended: Child.Ended) throws -> [String: (state: String, measured: String)] {
        let json = try #require(try JSONReader.read(Array(ended.output.utf8)).object, "\(ended.errors)")
        #expect(json["healthy"] == .bool(ended.status == 0))
        var checks: [String: (state: String, measured: String)] = [:]
        for check in json["checks"]?.array ?? [] {
            let object = try #require(check.object)
            let (name, state) = (object["check"]?.string ?? "", object["state"]?.string ?? "")
            checks[name] = (state, object["measured"]?.string ?? "")
            if state == "failure" || state == "warning" {
                #expect(object["remedy"]?.string?.isEmpty == false, "\(object)")
            }
        }
        return checks
    }

    @Test(arguments: [StoreKind.file, .mariadb]) func runningRelayIsExamined(kind: StoreKind) async throws {
        let fixture = try await Fixture(kind)
        let found = try checks(try await fixture.tool(["doctor", "--json"]))
        #expect(found["relay"]?.measured.hasPrefix("\(fixture.relay.origin) is ready") == true, "\(found)")
        for check in ["clock.relay", "relay.certificate", "store", "port.listen", "certificates.websites", "relays"] {
            #expect(found[check]?.state == "ok", "\(check): \(String(describing: found[check]))")
        }
        #expect(found["relays"]?.measured.hasPrefix("1 of 1 are alive: ") == true, "\(found)")
        let version = try await BuiltProgram.twoefay("--version").output.dropLast()
        #expect(found["relays"]?.measured.hasSuffix("(version \(version))") == true, "\(found)")
        // A server of the store has a clock of its own.
        #expect((found["clock.store"]?.state == "ok") == (kind == .mariadb))

        // A renewed certificate that nobody has reloaded.
        try fixture.relay.renewCertificate()
        let renewed = try checks(try await fixture.tool(["doctor", "--json"]))
        #expect(renewed["relay.certificate"]?.state == "warning", "\(renewed)")
        #expect(renewed["relay.certificate"]?.measured.contains("the file has another one") == true)
    }

    @Test func installationWithoutARelayIsExamined() async throws {
        let port = try FreePort()
        let installed = try await Installed("--listen", "127.0.0.1:\(port.port)", "--host", "localhost")
        let arguments = ["--config", installed.settings, "doctor"]
        let dump = [installed.directory("relay/twoefay.db"), ".dump"]
        let before = try await Child.run("sqlite3", dump)
        let found = try checks(try await Child.run(try BuiltProgram.twoefay.path, arguments + ["--json"]))
        #expect(found["settings"]?.state == "ok" && found["store"]?.state == "ok", "\(found)")
        #expect(found["relay"]?.state == "warning" && found["relays"]?.measured == "no relay runs", "\(found)")
        #expect(found["port.listen"]?.measured == "nobody listens on 127.0.0.1:\(port.port), which is free")
        let offline = try await Child.run(try BuiltProgram.twoefay.path, arguments + ["--offline"])
        #expect(offline.output.contains("skipped  relay"), "\(offline.output)")
        // The store is as it was.
        #expect(before.status == 0 && before.output.contains("task_lease"), "\(before.errors)")
        #expect(try await Child.run("sqlite3", dump).output == before.output)
    }

    /// A user who may read the settings and not the keys gets what can be judged without them.
    @Test(.enabled(if: ControlPeer.canChangeAccount, "only root can act as another account"))
    func userWithoutTheMasterKeyGetsTheRest() async throws {
        let installed = try await Installed()
        let relay = installed.directory("relay")
        for path in [installed.directory.path, relay] { chmod(path, 0o711) }
        var settings = try TextFile.read(installed.settings)
        try settings.set("audit.heads", to: "heads.jsonl")
        try TextFile.write(settings, to: installed.settings)
        chmod(installed.settings, 0o644)
        let program = try BuiltProgram.twoefay.path
        let ended = try await Child.run(
            "setpriv",
            [
                "--reuid", "65534", "--regid", "65534", "--clear-groups", program, "--config",
                installed.settings, "doctor", "--offline", "--json",
            ])
        let found = try checks(ended)
        #expect(found["settings"]?.state == "warning", "\(found)")
        #expect(found["settings"]?.measured.contains("this user may not read") == true, "\(found)")
        #expect(found["settings"]?.measured.contains("\(relay)/master.key") == true, "\(found)")
        // The relay's rights are judged, and not those of this user, who may not write there.
        #expect(found["audit.heads"]?.state == "ok", "\(found)")
        #expect(found["audit.heads"]?.measured.contains("by root (the owner of \(relay)/server.key)") == true)
        #expect(found["secrets"]?.state == "skipped" && found["certificates"]?.state == "ok", "\(found)")
    }

    @Test func brokenSettingsAreReportedAsEverywhere() async throws {
        let installed = try await Installed()
        _ = try await Child.run(
            "sh", ["-c", "printf 'lissten: 1\\n' >> twoefay.yaml"], in: installed.directory("relay"))
        let ended = try await BuiltProgram.twoefay("--config", installed.settings, "doctor")
        #expect(ended.status == 1 && ended.errors.contains("lissten is not a setting"), "\(ended.errors)")
    }
}
