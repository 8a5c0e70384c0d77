import Daemon
import Glibc
import JSON
import TestSupport
import Testing

/// A caller of the control socket that is another program than `twoefay`: it sends what a test wants,
/// also as another account of the operating system.
enum ControlPeer {
    /// An account that each Debian has, and which owns nothing, by its number and name.
    static let (account, name) = ("5", "games")
    /// A number that no account has.
    static let nobody = "123456789"
    private static let python = "/usr/bin/python3"

    /// Whether this process may act as another account.
    static var canChangeAccount: Bool {
        getuid() == 0 && access("/usr/bin/setpriv", X_OK) == 0 && access(python, X_OK) == 0
    }

    /// The answer to one command.
    struct Answer {
        /// The exit status as a word.
        let word: String
        let output: String
        /// The message of a failure with the next step; empty otherwise.
        let failure: String
        /// The question before something is destroyed.
        let question: String?
    }

    static func group(of role: ControlRole) -> Int {
        switch role {
        case .auditor: 4001
        case .helpdesk: 4002
        case .operator: 4003
        }
    }

    /// Sets a control socket, at which a group of its own has each role.
    static func giveRoles(_ settings: inout String) throws {
        try settings.set("control.socket", to: "unix:control")
        try settings.set("control.auditors", to: "\(group(of: .auditor))")
        try settings.set("control.helpdesk", to: "\(group(of: .helpdesk))")
        try settings.set("control.operators", to: "\(group(of: .operator))")
    }

    /// Lets other accounts reach the socket of a relay.
    static func open(_ relay: RunningRelay) {
        for path in [relay.directory.path, relay.installation] { chmod(path, 0o711) }
    }

    /// Sends each request as bytes over a connection of its own, and returns the answers as bytes.
    private static let script = """
        import json, socket, sys
        answers = []
        for request in json.loads(sys.argv[2]):
            line = socket.socket(socket.AF_UNIX)
            line.connect(sys.argv[1])
            answer = b''
            try:
                line.sendall(request.encode())
            except OSError:
                pass
            try:
                while chunk := line.recv(65536):
                    answer += chunk
            except OSError:
                pass
            answers.append(answer.decode())
        print(json.dumps(answers))
        """

    /// Connects as an account without a role, again and again, until the process is ended.
    static func flood(_ socket: String) throws -> Child {
        let script = """
            import socket, sys, threading
            def connect():
                while True:
                    line = socket.socket(socket.AF_UNIX)
                    try:
                        line.connect(sys.argv[1])
                        print("connected", flush=True) if not told.is_set() else None
                        told.set()
                    except OSError:
                        pass
                    line.close()
            told = threading.Event()
            for _ in range(40):
                threading.Thread(target=connect).start()
            """
        return try Child(
            "/usr/bin/setpriv",
            ["--reuid", account, "--regid", account, "--groups", "4999", python, "-c", script, socket])
    }

    /// Returns what the relay answers to these bytes, each sent over a connection of its own.
    ///
    /// - Parameters:
    ///   - group: the group of an account without any right; nil for this account.
    ///   - account: the number of that account.
    static func send(
        _ requests: [String], to socket: String, as group: Int? = nil, _ account: String = account
    ) async throws -> [String] {
        let text = JSONWriter.text(.array(requests.map { .string($0) }))
        var words = [python, "-c", script, socket, text]
        if let group {
            words = ["/usr/bin/setpriv", "--reuid", account, "--regid", account, "--groups", "\(group)"] + words
        }
        let ended = try await Child.run(words[0], Array(words.dropFirst()))
        try #require(ended.status == 0, "\(ended)")
        let answers = try JSONReader.read(Array(ended.output.utf8)).array ?? []
        return answers.compactMap(\.string)
    }

    /// Has the relay perform commands, one after the other.
    static func run(
        _ commands: [[String]], at socket: String, as group: Int? = nil, _ account: String = account
    ) async throws -> [Answer] {
        let requests = commands.map { words in
            JSONWriter.text(.object(["arguments": .array(words.map { .string($0) }), "color": false])) + "\n"
        }
        return try await send(requests, to: socket, as: group, account).map { try answer($0) }
    }

    private static func answer(_ text: String) throws -> Answer {
        let lines = try text.split(separator: "\n").map { try #require(try JSONReader.read(Array($0.utf8)).object) }
        let end = try #require(lines.last, "no answer")
        let error = end["error"]?.object
        let output = lines.dropLast().compactMap { $0["out"]?.string }.joined()
        let failure = [error?["message"]?.string, error?["next"]?.string].compactMap(\.self).joined(separator: "\n")
        let word = end["status"]?.string ?? error?["code"]?.string ?? "question"
        return Answer(word: word, output: output, failure: failure, question: end["confirm"]?.string)
    }
}
