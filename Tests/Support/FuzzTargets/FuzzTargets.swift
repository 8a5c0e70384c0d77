/// The targets of the fuzzer.
public enum FuzzTargets {
    public static var all: [any FuzzTarget.Type] { [HTTP1RequestTarget.self, HTTP1ResponseTarget.self] }

    /// The name that `Fuzz/run` takes: the type without `Target`.
    public static func name(_ target: any FuzzTarget.Type) -> String { String("\(target)".dropLast("Target".count)) }
}
