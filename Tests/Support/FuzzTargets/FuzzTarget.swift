/// A property of code that reads foreign bytes.
///
/// `Fuzz/run` looks for bytes that break the property, and the tests check it for the seeds and for
/// every case that was found. Each target has one file here, or a folder of its name, which compiles
/// with this file and the modules that it imports. `FuzzTargets.all` lists the targets.
public protocol FuzzTarget {
    /// The inputs from which the fuzzer starts.
    static var seeds: [[UInt8]] { get }
    /// The longest input that is worth trying.
    static var longest: Int { get }

    /// Reads the bytes, and throws a `Violation` if the property does not hold. A trap, a fault of
    /// memory, or more memory than 256 MiB breaks it, too.
    static func check(_ bytes: [UInt8]) throws

    /// Returns the meaning that the code gave to the bytes, as text, for `Fuzz/References`. Returns
    /// nil if it accepted nothing.
    static func meaning(_ bytes: [UInt8]) -> String?
}

extension FuzzTarget {
    public static var longest: Int { 4096 }
    public static func meaning(_ bytes: [UInt8]) -> String? { nil }
}

/// The reason why a property does not hold.
public struct Violation: Error, CustomStringConvertible {
    public let description: String

    public init(_ description: String) { self.description = description }
}

/// Writes bytes as hexadecimal digits.
func hexadecimal(_ bytes: some Sequence<UInt8>) -> String {
    var text = ""
    for byte in bytes { text += (byte < 16 ? "0" : "") + String(byte, radix: 16) }
    return text
}
