import Domain
import JSON
import Log
import Relay

/// A request once it has been read, checked and told whose it is: what a verb gets.
struct VerbCall: Sendable {
    let api: API
    /// What stood in the path's places, decoded.
    let pathParameters: [String: String]
    /// The parameters, all of them right.
    let body: JSONObject
    /// Under which a change is made; the same when the request comes again under its Idempotency-Key.
    let operation: Operation
    /// The address that the request came from.
    let remote: String
    /// How long the caller would wait for an answer (`Prefer: wait=N`).
    let waitLimit: Int?
    /// What the person reads, as far as the caller says so (`Accept-Language`).
    let language: String?

    var relay: Relay { api.relay }

    /// The parameter's value, if it was given.
    subscript<Value>(field: Field<Value>) -> Value? {
        guard let value = body[field.name] else { return nil }
        var faults: [FieldFault] = []
        return field.read(value, field.name, &faults)
    }

    /// The value of a parameter without which the request would have been refused.
    func required<Value>(_ field: Field<Value>) throws(Refusal) -> Value {
        guard let value = self[field] else {
            api.log.error("api.undeclared", [.name: field.name])
            throw .broken
        }
        return value
    }

    /// What stood in a place of the path.
    func place(_ name: String) throws(Refusal) -> String {
        guard let text = pathParameters[name] else {
            api.log.error("api.undeclared", [.name: name])
            throw .broken
        }
        return text
    }

    /// Malformed ids are told apart from wrong ones by nobody.
    func id<Thing>(_ field: Field<String>) throws(Refusal) -> Identifier<Thing>? {
        guard let text = self[field] else { return nil }
        guard let id = Identifier<Thing>(text) else { throw .notFound }
        return id
    }
}
