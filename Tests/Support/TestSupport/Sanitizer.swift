import Glibc

/// Whether this run uses a sanitizer. Programs are then several times slower and larger, so limits
/// of time and memory do not apply. All other checks still do.
public enum Sanitizer {
    public static let isOn = dlsym(nil, "__asan_init") != nil || dlsym(nil, "__tsan_init") != nil

    /// The factor by which timeouts are longer.
    public static var timeout: Int { isOn ? 10 : 1 }
}
