import Bytes
import World

/// What the terminal's addresses carry: who has not seen them, though on this machine, is not let in.
public struct RunSecret: Sendable {
    private let text: String
    /// Under which a browser keeps it. The theatre's port is in it, so that two demos on one machine do not take it for theirs.
    let cookie: String

    static let parameter = "run"

    init(theatre port: UInt16, randomness: any Randomness) {
        text = Base64URL.encode(randomness.bytes(32))
        cookie = "twoefay_run_\(port)"
    }

    func address(of origin: String, path: String = "/") -> String {
        "\(origin)\(path)\(path.contains("?") ? "&" : "?")\(Self.parameter)=\(text)"
    }

    func matches(_ given: String?) -> Bool { given.map { Secret.matches($0.utf8, text.utf8) } ?? false }

    /// For the one cookie that keeps it.
    var value: String { text }
}
