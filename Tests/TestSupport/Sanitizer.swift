import Glibc

/// Whether a sanitizer watches this run. Everything is some times slower and larger then: what a test measures in seconds
/// or bytes says nothing, everything else has to hold as ever.
public enum Sanitizer {
    public static let isOn = ["__asan_init", "__tsan_init"].contains { dlsym(nil, $0) != nil }

    /// How much longer things may take.
    public static var patience: Int { isOn ? 10 : 1 }
}
