import Glibc
import TestSupport

/// A software token (SoftHSM) in the test's own directory, with the key of the phones' authority.
struct SoftToken {
    static let module = "/usr/lib/softhsm/libsofthsm2.so"
    static var isThere: Bool { access(module, R_OK) == 0 }

    let environment: [String: String]
    private let directory: TemporaryDirectory

    /// - Parameter key: the file with the private key in PEM.
    init(key: String) async throws {
        directory = try TemporaryDirectory()
        let configuration = directory("softhsm2.conf")
        mkdir(directory("tokens"), 0o700)
        try TextFile.write("directories.tokendir = \(directory("tokens"))\n", to: configuration)
        environment = ["SOFTHSM2_CONF": configuration]
        try await run(
            "--init-token", "--free", "--label", "phones", "--pin", "123456", "--so-pin", "654321")
        try await run(
            "--import", key, "--token", "phones", "--label", "phone-authority", "--id", "01", "--pin", "123456")
    }

    private func run(_ arguments: String...) async throws {
        let ended = try await Child("softhsm2-util", arguments, environment: environment).ended()
        guard ended.status == 0 else { throw Unexpected(text: "softhsm2-util: \(ended.output)\(ended.errors)") }
    }

    /// Names this token in the settings.
    static func set(in settings: inout String, pinFile: String) throws {
        try settings.set("pkcs11.module", to: module)
        try settings.set("pkcs11.token", to: "phones")
        try settings.set("pkcs11.key", to: "phone-authority")
        try settings.set("pkcs11.pin_file", to: pinFile)
    }
}
