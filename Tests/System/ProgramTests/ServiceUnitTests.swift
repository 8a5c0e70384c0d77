import Glibc
import TestSupport
import Testing

/// The units in deploy/systemd, as systemd itself reads them.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct ServiceUnitTests {
    static let units = [
        "twoefayd.service", "twoefay-keys.service", "twoefayd.socket", "twoefayd-phone.socket",
        "twoefayd-metrics.socket",
    ]
    private static let directory =
        #filePath.split(separator: "/").dropLast(4).map { "/\($0)" }.joined() + "/deploy/systemd"

    private static let canAnalyze = access("/usr/bin/systemd-analyze", X_OK) == 0

    private static func unit(_ name: String) throws -> String { try TextFile.read("\(directory)/\(name)") }

    /// systemd also looks whether the programs exist, so the units name the built ones here.
    @Test(.enabled(if: canAnalyze, "systemd-analyze is missing")) func systemdAcceptsTheUnits() async throws {
        let place = try TemporaryDirectory()
        let programs = try BuiltProgram.twoefayd.path.split(separator: "/").dropLast().map { "/\($0)" }.joined()
        for name in Self.units {
            let text = try Self.unit(name).replacing("=/usr/bin/twoefay", with: "=\(programs)/twoefay")
            try TextFile.write(text, to: place(name))
        }
        let ended = try await Child.run(
            "systemd-analyze", ["verify", "--man=no", "--recursive-errors=no"] + Self.units.map { place($0) })
        #expect(ended.status == 0 && ended.errors.isEmpty, "\(ended.errors)")
    }

    @Test(
        .enabled(if: canAnalyze, "systemd-analyze is missing"), arguments: ["twoefayd.service", "twoefay-keys.service"])
    func exposureIsLow(_ name: String) async throws {
        let ended = try await Child.run(
            "systemd-analyze",
            ["security", "--offline=true", "--threshold=15", "--no-pager", "\(Self.directory)/\(name)"])
        #expect(ended.status == 0, "\(ended.output)\(ended.errors)")
    }

    /// A store that is down at boot ends the relay with status 5 (`DatabaseDownTests`).
    @Test(arguments: ["twoefayd.service", "twoefay-keys.service"]) func restartsNeverEnd(_ name: String) throws {
        let lines = try Self.unit(name).split(separator: "\n")
        #expect(lines.contains("Restart=on-failure"))
        #expect(lines.contains("StartLimitIntervalSec=0"))
        #expect(lines.filter { $0.hasPrefix("RestartPreventExitStatus=") } == ["RestartPreventExitStatus=2"])
    }
}
