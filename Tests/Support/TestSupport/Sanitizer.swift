import Glibc

/// Whether a sanitizer watches this run. Everything is some times slower and larger then: what a test measures in seconds
/// or bytes says nothing, everything else has to hold as ever.
public enum Sanitizer {
    public static let isOn = dlsym(nil, "__asan_init") != nil || dlsym(nil, "__tsan_init") != nil

    /// How much longer things may take.
    public static var timeout: Int { isOn ? 10 : 1 }
}
