import Domain
import HTTP

extension Request {
    /// The trace that the caller names; nil if it names none, several or a malformed one. Such a
    /// field is no error, as the standard demands.
    var traceParent: TraceParent? {
        let values = fields.values(TraceParent.field)
        return values.count == 1 ? TraceParent(values[0]) : nil
    }
}
