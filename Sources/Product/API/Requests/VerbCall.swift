import Domain
import HTTP
import JSON
import Log
import Relay

/// The input of a verb: a request after its caller was looked up and its parameters were checked.
struct VerbCall: Sendable {
    let api: API
    /// The identity that the caller has presented.
    let claim: PresentedIdentity
    /// The decoded parameters of the path.
    let pathParameters: [String: String]
    /// The parameters of the body, all of them valid.
    let body: JSONObject
    /// The operation of the change, with the languages that the request asks for. It is the same if
    /// the request comes again under its idempotency key.
    let operation: Operation
    /// The request under its idempotency key, if the verb may claim the key with its own change.
    var unclaimed: IdempotentRequest?
    /// Whether the request was counted in the website's limits before.
    var isCounted = false
    /// The source address of the request.
    let remote: String
    /// The seconds that the caller is willing to wait (`Prefer: wait=N`).
    let waitLimit: Int?
    /// The header fields of the request.
    let fields: Fields
    /// The trace of which the request is a part; nil if its caller named none.
    let trace: TraceParent?

    var relay: Relay { api.relay }

    /// The value of a parameter; nil if it was not given.
    subscript<Value>(field: Field<Value>) -> Value? {
        guard let value = body[field.name] else { return nil }
        var faults: [FieldFault] = []
        return field.read(value, field.name, &faults)
    }

    /// The value of a required parameter. A request without it was refused before.
    func required<Value>(_ field: Field<Value>) throws(Refusal) -> Value {
        guard let value = self[field] else {
            api.log.error("api.undeclared", [.name: field.name])
            throw .broken
        }
        return value
    }

    /// The value of a parameter in the path.
    func place(_ name: String) throws(Refusal) -> String {
        guard let text = pathParameters[name] else {
            api.log.error("api.undeclared", [.name: name])
            throw .broken
        }
        return text
    }

    /// The id in a parameter; nil if it was not given. A malformed id gets the same answer as an
    /// unknown one.
    func id<Thing>(_ field: Field<String>) throws(Refusal) -> Identifier<Thing>? {
        guard let text = self[field] else { return nil }
        guard let id = Identifier<Thing>(text) else { throw .notFound }
        return id
    }

    /// The token of the user who logs in; nil if it was not given. A text that is none is a fault of
    /// the website's program: it must not look like a user who is not there.
    func userToken() throws(Refusal) -> UserToken? {
        let field = Parameters.token
        guard let text = self[field] else { return nil }
        guard let token = UserToken(text) else {
            throw .invalid([
                FieldFault(
                    field.name, .format,
                    LocalizedText(
                        "must be 32 hexadecimal digits, as the relay gave them",
                        de: "muss aus 32 hexadezimalen Ziffern bestehen, wie das Relay sie ausgegeben hat"))
            ])
        }
        return token
    }
}
