import Bytes
import Crypto
import World

/// An intended change. The ids that it creates are derived from the operation's id and the
/// installation's key. A change repeated after a crash is therefore the same change. Secrets are
/// never derived from it: see `OperationSecret`.
///
/// The ids of most operations begin with the time, so that their rows go to the end of each index.
/// With random ids, every row of a commit changes another page. An operation that another process
/// may repeat has random ids: both must derive the same ones, and may be of different releases.
public struct Operation: Sendable {
    public let id: OperationID
    /// Whether the change may have been made before; the store then looks for its result first.
    public let mayHaveRun: Bool
    /// Whether another process or a later request may repeat it, so that its secret must be stored.
    public let isRepeatable: Bool
    /// The time of the first request, if this one is a repetition.
    public let begunAt: Timestamp?
    /// The languages of the person for whom the change is made, in which the change sends messages.
    /// They are no part of its identity: a repetition in another language is the same change.
    public private(set) var languages = RequestedLanguages.none
    private let key: Secret
    /// Whether the ids that it creates begin with the time of its own.
    private let isTimed: Bool

    init(
        id: OperationID, mayHaveRun: Bool, isRepeatable: Bool, isTimed: Bool = false, begunAt: Timestamp? = nil,
        key: Secret
    ) {
        self.id = id
        self.isTimed = isTimed
        self.mayHaveRun = mayHaveRun
        self.isRepeatable = isRepeatable
        self.begunAt = begunAt
        self.key = key
    }

    /// Returns the operation of a part of this change that has an audit row of its own.
    public func part(_ label: String) -> Operation {
        Operation(
            id: identifier(label), mayHaveRun: mayHaveRun, isRepeatable: isRepeatable, isTimed: isTimed,
            begunAt: begunAt, key: key
        ).speaking(languages)
    }

    /// The same change once more, by this process.
    public var repeated: Operation {
        Operation(
            id: id, mayHaveRun: true, isRepeatable: isRepeatable, isTimed: isTimed, begunAt: begunAt, key: key
        ).speaking(languages)
    }

    /// The same operation as another relay repeats it, which knows only its id.
    public var shared: Operation {
        Operation(id: id, mayHaveRun: mayHaveRun, isRepeatable: true, begunAt: begunAt, key: key).speaking(languages)
    }

    /// Returns the same operation for a person with these languages.
    public func speaking(_ languages: RequestedLanguages) -> Operation {
        var operation = self
        operation.languages = languages
        return operation
    }

    /// Returns an id that is different for every label. It is not secret.
    public func identifier<Thing>(_ label: String) -> Identifier<Thing> {
        var message = id.bytes
        message.append(contentsOf: label.utf8)
        let derived = Identifier<Thing>(leading: HMAC.sha256(key: key, message))
        return isTimed ? derived.timed(as: id) : derived
    }
}

/// The source of operations: a new one for every request, or the earlier one for a repeated
/// request.
public struct Operations: Sendable {
    private let key: Secret
    private let randomness: any Randomness
    private let time: any TimeSource

    /// - Parameter key: the key that `key(from:)` derives.
    public init(key: Secret, randomness: any Randomness, time: any TimeSource = SystemTime()) {
        self.key = key
        self.randomness = randomness
        self.time = time
    }

    public init(masterKey: Secret, randomness: any Randomness, time: any TimeSource = SystemTime()) {
        self.init(key: Self.key(from: masterKey), randomness: randomness, time: time)
    }

    /// Derives the key for operations; the master key cannot be computed from it.
    public static func key(from masterKey: Secret) -> Secret {
        Secret(HMAC.sha256(key: masterKey, Array("twoefay operations".utf8)))
    }

    /// - Parameter isRepeatable: whether others will know its id and may repeat it.
    public func new(isRepeatable: Bool = false) -> Operation {
        let id: OperationID = draw()
        return Operation(
            id: isRepeatable ? id : id.timed(time.now()), mayHaveRun: false, isRepeatable: isRepeatable,
            isTimed: !isRepeatable, key: key)
    }

    /// Returns the operation that this process or another one has created as repeatable.
    public func again(_ id: OperationID, begunAt: Timestamp? = nil) -> Operation {
        Operation(id: id, mayHaveRun: true, isRepeatable: true, begunAt: begunAt, key: key)
    }

    /// Returns the operation that is always the same for this content. For example, every enrolment
    /// of the same key is the same operation.
    public func fixed(_ label: String, _ content: [UInt8]) -> Operation {
        let id = OperationID(leading: HMAC.sha256(key: key, Array(label.utf8) + [0] + content))
        return Operation(id: id, mayHaveRun: true, isRepeatable: true, key: key)
    }

    /// Returns a random id.
    public func draw<Thing>() -> Identifier<Thing> {
        Identifier(leading: randomness.bytes(16))
    }
}
