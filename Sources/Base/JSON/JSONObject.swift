/// The members of an object in their order. Look-up is linear, because the objects of this program
/// are small.
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

    /// Makes an object. A name that occurs twice keeps its first position and its last value.
    public init(_ members: some Sequence<(String, JSONValue)>) {
        self.members.reserveCapacity(members.underestimatedCount)
        for (name, value) in members { self[name] = value }
    }

    /// Makes an object of members with different names, without a search for each.
    public init(distinct members: [Member]) {
        assert(Set(members.map(\.name)).count == members.count, "a name occurs twice")
        self.members = members
    }

    public init(dictionaryLiteral elements: (String, JSONValue)...) { self.init(elements) }

    public var count: Int { members.count }
    public var isEmpty: Bool { members.isEmpty }
    public var names: [String] { members.map(\.name) }

    /// The value of a member. Setting nil removes the member; setting an existing name keeps its
    /// position.
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

    /// Sets a member, like the subscript, for a value that may be missing.
    public mutating func set(_ name: String, _ value: JSONValue?) { self[name] = value }

    func index(of name: String) -> Int? {
        // Swift's == treats U+212A (the Kelvin sign) as equal to "K". With equal lengths as well,
        // an ASCII name equals only itself.
        let length = name.utf8.count
        return members.firstIndex { $0.name.utf8.count == length && $0.name == name }
    }

    /// Appends a member, for the reader, which has checked that the name is new.
    mutating func append(_ name: String, _ value: JSONValue) {
        if members.isEmpty { members.reserveCapacity(8) }
        members.append(Member(name: name, value: value))
    }
}

extension JSONObject: Equatable {
    /// Compares members without regard to their order, which has no meaning in JSON.
    public static func == (a: JSONObject, b: JSONObject) -> Bool {
        a.count == b.count && a.members.allSatisfy { b[$0.name] == $0.value }
    }
}
