import Bytes
import World

/// The secret in the addresses that the terminal prints. Another user of this machine, who has not
/// seen them, gets no access.
public struct RunSecret: Sendable {
    private let text: String
    /// The name of the cookie with the secret. It contains the dashboard's port, so that two demos
    /// on one machine do not overwrite each other's cookie.
    let cookie: String

    static let parameter = "run"

    init(dashboardPort port: UInt16, randomness: any Randomness) {
        text = Base64URL.encode(randomness.bytes(32))
        cookie = "twoefay_run_\(port)"
    }

    func address(of origin: String, path: String = "/") -> String {
        "\(origin)\(path)\(path.contains("?") ? "&" : "?")\(Self.parameter)=\(text)"
    }

    func matches(_ given: String?) -> Bool { given.map { Secret.matches($0.utf8, text.utf8) } ?? false }

    /// The value of the cookie.
    var value: String { text }
}
