/// The members of an object in their order. Lookup walks them: the objects of this program are small.
public struct JSONObject: Sendable, ExpressibleByDictionaryLiteral {
    public struct Member: Sendable, Equatable {
        public let name: String
        public var value: JSONValue

        public init(name: String, value: JSONValue) {
            self.name = name
            self.value = value
        }
    }

    public private(set) var members: [Member] = []

    public init() {}

    /// A name given twice keeps its first place and its last value.
    public init(_ members: some Sequence<(String, JSONValue)>) {
        for (name, value) in members { self[name] = value }
    }

    public init(dictionaryLiteral elements: (String, JSONValue)...) { self.init(elements) }

    public var count: Int { members.count }
    public var isEmpty: Bool { members.isEmpty }
    public var names: [String] { members.map(\.name) }

    /// Setting nil takes the member out; setting a name that is there keeps its place.
    public subscript(name: String) -> JSONValue? {
        get { index(of: name).map { members[$0].value } }
        set {
            switch (index(of: name), newValue) {
            case (let at?, let value?): members[at].value = value
            case (let at?, nil): members.remove(at: at)
            case (nil, let value?): members.append(Member(name: name, value: value))
            case (nil, nil): break
            }
        }
    }

    /// The same as the subscript, for a value that may be missing.
    public mutating func set(_ name: String, _ value: JSONValue?) { self[name] = value }

    func index(of name: String) -> Int? {
        // Swift's == takes U+212A (the kelvin sign) for "K". With the lengths compared as well, a name in ASCII
        // equals itself alone.
        let length = name.utf8.count
        return members.firstIndex { $0.name.utf8.count == length && $0.name == name }
    }

    /// For the reader, which has made sure that the name is new.
    mutating func append(_ name: String, _ value: JSONValue) {
        if members.isEmpty { members.reserveCapacity(8) }
        members.append(Member(name: name, value: value))
    }
}

extension JSONObject: Equatable {
    /// The order of members means nothing in JSON.
    public static func == (a: JSONObject, b: JSONObject) -> Bool {
        a.count == b.count && a.members.allSatisfy { b[$0.name] == $0.value }
    }
}
