import JSON
import TestSupport
import Testing

@Suite("twoefay init", .timeLimit(.minutes(15)), .mayBlock) struct InitTests {
    @Test func initMakesAWorkingInstallation() async throws {
        let installed = try await Installed()
        let directory = installed.directory("relay")
        #expect(
            TemporaryDirectory.names(in: directory) == [
                "ca.key", "ca.pem", "device-ca.key", "device-ca.pem", "master.key", "server.key", "server.pem",
                "twoefay.db", "twoefay.yaml", "vapid.key", "website-ca.key", "website-ca.pem",
            ])
        #expect(TemporaryDirectory.mode(of: directory) == 0o700)
        for name in TemporaryDirectory.names(in: directory) {
            let expected: UInt32 = name.hasSuffix(".pem") ? 0o644 : 0o600
            #expect(TemporaryDirectory.mode(of: "\(directory)/\(name)") == expected, "\(name)")
        }
        let checked = try await BuiltProgram.twoefayd("--config", installed.settings, "--check", "--json")
        #expect(checked.status == 0, "\(checked.errors)")
        #expect(try checked.json["schema_version"]?.integer != nil)
    }

    /// docs/start/install.md turns the control socket on by a replacement in this line.
    @Test func settingsHaveTheLineOfTheControlSocket() async throws {
        let installed = try await Installed()
        let edit = "s|# socket: unix:/run/twoefay/control|socket: unix:\(installed.directory("control"))|"
        #expect(try await Child.run("sed", ["-i", edit, installed.settings]).status == 0)
        #expect(try text(installed.settings).contains("control:\n"))
        let checked = try await BuiltProgram.twoefayd("--config", installed.settings, "--check")
        #expect(checked.status == 0, "\(checked.errors)")
        #expect(try text(installed.settings).contains("\n  socket: unix:\(installed.directory("control"))\n"))
        let root = #filePath.split(separator: "/").dropLast(4).joined(separator: "/")
        let page = try TextFile.read("/\(root)/docs/start/install.md")
        #expect(page.contains("sed -i 's|# socket: unix:/run/twoefay/control|socket: "))
    }

    @Test func installationWorksFromAnyDirectory() async throws {
        let installed = try await Installed()
        let checked = try await BuiltProgram.twoefayd(
            "--config", "twoefay.yaml", "--check", in: installed.directory("relay"))
        #expect(checked.status == 0, "\(checked.errors)")
    }

    /// OpenSSL verifies the certificates.
    @Test func serverCertificateHasTheGivenNames() async throws {
        let installed = try await Installed("--host", "login.example.com", "192.0.2.7", "--listen", "[::1]:9443")
        let directory = installed.directory("relay")
        for (option, name) in [("-verify_hostname", "login.example.com"), ("-verify_ip", "192.0.2.7")] {
            let verified = try await Child.run(
                "openssl",
                [
                    "verify", "-purpose", "sslserver", "-CAfile", "\(directory)/ca.pem", option, name,
                    "\(directory)/server.pem",
                ])
            #expect(verified.status == 0, "\(verified.output)\(verified.errors)")
        }
        let other = try await Child.run(
            "openssl",
            ["verify", "-CAfile", "\(directory)/ca.pem", "-verify_hostname", "localhost", "\(directory)/server.pem"])
        #expect(other.status != 0)
        // Phones know only the key of the authority, so the server sends its certificate.
        let chain = try text("\(directory)/server.pem")
        #expect(chain.hasSuffix(try text("\(directory)/ca.pem")) && chain.split(separator: "-----BEGIN").count == 2)
        let settings = try text(installed.settings)
        #expect(settings.contains("\norigin: https://login.example.com:9443\n"))
        #expect(settings.contains("\nlisten: \"[::1]:9443\"\n"))
    }

    @Test func initNeverOverwritesAnInstallation() async throws {
        let installed = try await Installed()
        let before = try text(installed.directory("relay/master.key"))
        let again = try await BuiltProgram.twoefay("init", installed.directory("relay"), "--json")
        #expect(again.status == 4)
        #expect(try again.json["error"]?.object?["code"]?.string == "conflict")
        #expect(try text(installed.directory("relay/master.key")) == before)
    }

    @Test func initNeverOverwritesAKeyOrStore() async throws {
        let directory = try TemporaryDirectory()
        _ = try await Child.run("sh", ["-c", "mkdir relay && echo mine > relay/ca.key"], in: directory.path)
        let refused = try await BuiltProgram.twoefay("init", directory("relay"))
        #expect(refused.status == 4)
        #expect(refused.errors.contains("ca.key exists already"))
        #expect(TemporaryDirectory.names(in: directory("relay")) == ["ca.key"])
        #expect(try text(directory("relay/ca.key")) == "mine\n")

        let installed = try await Installed()
        let database = installed.directory("relay/twoefay.db")
        let second = try await BuiltProgram.twoefay("init", directory("second"), "--storage", "sqlite:\(database)")
        #expect(second.status == 4)
        #expect(directory.names == ["relay"])
    }

    @Test func initMakesMariaDBTablesOnce() async throws {
        let server = try MariaDBServer.shared()
        let url = server.url(try server.freshDatabase())
        let installed = try await Installed("--storage", url)
        #expect(!TemporaryDirectory.names(in: installed.directory("relay")).contains("twoefay.db"))
        let added = try await BuiltProgram.twoefay(
            "--config", installed.settings, "website", "add", "shop", "--out", installed.directory.path)
        #expect(added.status == 0, "\(added.errors)")
        let checked = try await BuiltProgram.twoefayd("--config", installed.settings, "--check")
        #expect(checked.status == 0, "\(checked.errors)")

        let second = try await BuiltProgram.twoefay("init", installed.directory("second"), "--storage", url)
        #expect(second.status == 4)
        #expect(second.errors.contains("belongs to an installation"))
        #expect(installed.directory.names == ["relay", "shop.key", "shop.pem"])
    }

    @Test func failedInitLeavesNothingBehind() async throws {
        let directory = try TemporaryDirectory()
        let failed = try await BuiltProgram.twoefay(
            "init", directory("relay"), "--storage", "sqlite:/nowhere/at/all.db")
        #expect(failed.status == 5)
        #expect(directory.names == [])
    }

    @Test(
        arguments: [
            (["--listen", "8080"], "--listen must be HOST:PORT"), (["--listen", "a:0"], "--listen needs a port"),
            (["--host", "a b"], "--host a b is neither a host name nor an address"),
            (["--host", "a:8080"], "--host a:8080 is neither a host name nor an address"),
            (["--storage", "mysql://x"], "--storage: must begin with sqlite: or mariadb://"),
            (["--storage", "sqlite::memory:"], "a store in memory is lost when the program ends"),
        ])
    func invalidInitOptionsAreRefused(arguments: [String], message: String) async throws {
        let directory = try TemporaryDirectory()
        let refused = try await Child.run(
            try BuiltProgram.twoefay.path, ["init", directory("relay")] + arguments)
        #expect(refused.status == 2)
        #expect(refused.errors.contains(message), "\(refused.errors)")
        #expect(directory.names == [])
    }
}
