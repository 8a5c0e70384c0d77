import Bytes
import JSON

/// A request for a run of the command that issues certificates, from `twoefay-keys` to its launcher.
///
/// It has no program and no arguments: the launcher got those when it was started, and runs nothing
/// else.
struct CommandRun: Sendable, Equatable {
    let id: Int64
    /// The name of the certificate, such as `twoefay:device:` and 32 digits.
    let name: String
    /// The one extended key usage of the certificate: `clientAuth` or `documentSigning`.
    let usage: String
    let isRenewal: Bool
    /// The certificate request, in PEM.
    let request: [UInt8]

    init(id: Int64, name: String, usage: String, isRenewal: Bool, request: [UInt8]) {
        self.id = id
        self.name = name
        self.usage = usage
        self.isRenewal = isRenewal
        self.request = request
    }

    /// Reads a message; nil if it is none.
    init?(message: [UInt8]) {
        guard let object = (try? JSONReader.read(message))?.object, let id = object["id"]?.integer,
            let name = object["name"]?.string, let usage = object["usage"]?.string,
            let isRenewal = object["renewal"]?.bool, let request = object["request"]?.string
        else { return nil }
        self.init(id: id, name: name, usage: usage, isRenewal: isRenewal, request: Array(request.utf8))
    }

    var message: [UInt8] {
        let object: JSONObject = [
            "id": .integer(id), "name": .string(name), "usage": .string(usage), "renewal": .bool(isRenewal),
            "request": .string(String(decoding: request, as: UTF8.self)),
        ]
        return JSONWriter.write(object)
    }

    /// The environment of the command. It has nothing of the environment of `twoefay-keys`.
    var environment: [String] {
        [
            "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8",
            "TWOEFAY_NAME=\(name)", "TWOEFAY_USAGE=\(usage)", "TWOEFAY_RENEWAL=\(isRenewal ? "yes" : "no")",
        ]
    }
}

/// The end of a run, from the launcher to `twoefay-keys`.
struct CommandEnd: Sendable, Equatable {
    enum Cause: Sendable, Equatable {
        /// It has ended with this status.
        case exited(Int32)
        /// A signal has ended it.
        case signalled(Int32)
        /// It was killed because it ran for too long.
        case timeout
        /// It was killed because it wrote more than `mostOutput`.
        case tooLong
        /// It could not be started.
        case unstarted(String)
    }

    /// The most bytes that the command may write to standard output.
    static let mostOutput = 65_536

    let cause: Cause
    /// The bytes that it wrote to standard output; empty unless it has exited.
    let output: [UInt8]
    /// The last line that it wrote to standard error.
    let lastError: String

    init(_ cause: Cause, output: [UInt8] = [], lastError: String = "") {
        self.cause = cause
        self.output = output
        self.lastError = lastError
    }

    /// Reads a message; nil if it is none.
    init?(message: [UInt8]) {
        guard let object = (try? JSONReader.read(message))?.object, let word = object["end"]?.string,
            let output = object["output"]?.string.flatMap({ Base64URL.decode($0) }),
            let lastError = object["error"]?.string
        else { return nil }
        let number = object["number"]?.integer.flatMap { Int32(exactly: $0) } ?? -1
        switch word {
        case "exited": cause = .exited(number)
        case "signalled": cause = .signalled(number)
        case "timeout": cause = .timeout
        case "too-long": cause = .tooLong
        case "unstarted": cause = .unstarted(lastError)
        default: return nil
        }
        self.output = output
        self.lastError = lastError
    }

    /// The id of the run in a message.
    static func id(of message: [UInt8]) -> Int64? { (try? JSONReader.read(message))?.object?["id"]?.integer }

    func message(of id: Int64) -> [UInt8] {
        var object: JSONObject = ["id": .integer(id)]
        var error = lastError
        switch cause {
        case .exited(let status):
            object.set("end", "exited")
            object.set("number", .integer(Int64(status)))
        case .signalled(let number):
            object.set("end", "signalled")
            object.set("number", .integer(Int64(number)))
        case .timeout: object.set("end", "timeout")
        case .tooLong: object.set("end", "too-long")
        case .unstarted(let reason):
            object.set("end", "unstarted")
            error = reason
        }
        object.set("output", .string(Base64URL.encode(output)))
        object.set("error", .string(error))
        return JSONWriter.write(object)
    }
}
