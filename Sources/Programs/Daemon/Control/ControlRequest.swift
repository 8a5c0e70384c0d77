import JSON

/// The request at the control socket: one line of JSON, `{"arguments": […], "color": false, "progress":
/// false}`.
struct ControlRequest: Equatable {
    let arguments: [String]
    let isColored: Bool
    let showsProgress: Bool
    private static let names: Set = ["arguments", "color", "progress"]
    private static let mostArguments = 256

    init(arguments: [String], isColored: Bool, showsProgress: Bool) {
        self.arguments = arguments
        self.isColored = isColored
        self.showsProgress = showsProgress
    }

    init(_ line: [UInt8]) throws(Failure) {
        guard let value = try? JSONReader.read(line), let members = value.object,
            members.members.allSatisfy({ Self.names.contains($0.name) }),
            let arguments = members["arguments"]?.array, arguments.count <= Self.mostArguments,
            arguments.allSatisfy({ $0.string != nil })
        else {
            throw Failure(
                .usage, "the request is not a line of JSON with the member arguments",
                next: "Use the program twoefay of the same version as the relay.")
        }
        self.init(
            arguments: arguments.compactMap(\.string), isColored: members["color"] == .bool(true),
            showsProgress: members["progress"] == .bool(true))
    }

    /// The line. A member that is false is left out, so that a relay that does not know it yet performs
    /// the command all the same.
    var line: [UInt8] {
        var members: JSONObject = ["arguments": .array(arguments.map { .string($0) })]
        if isColored { members.set("color", true) }
        if showsProgress { members.set("progress", true) }
        return JSONWriter.write(.object(members)) + [UInt8(ascii: "\n")]
    }
}
